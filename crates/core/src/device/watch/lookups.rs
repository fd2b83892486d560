//! What requests look up in the mapping, for results about caches of other sizes.

use super::{Issue, Probe};
use crate::ftl::{Ftl, Inspect, LookUp, Running};
use crate::util::StackDistances;

pub type Keys = ();

/// Up to this number of entries, or units, all are followed; if there are more, only a sample is.
const EXACT: u32 = 1 << 20;

/// The run's lookups: one for each logical page of a request, in the order in which requests issue.
#[derive(Clone, Debug)]
pub struct Lookups {
    /// Stack distances of mapping entries.
    pub entries: StackDistances,
    /// Stack distances of the translation units that hold the entries.
    pub units: StackDistances,
}

impl Lookups {
    /// Makes a record without lookups; `None` if the whole map is in RAM.
    pub fn new(ftl: &Ftl) -> Option<Lookups> {
        let (lpns, on_flash) = (ftl.logical_pages(), ftl.units().unit_bytes > 0);
        let units = || ftl.translation_page(lpns - 1) + 1;
        on_flash.then(|| Lookups {
            entries: StackDistances::new(lpns, EXACT),
            units: StackDistances::new(units(), EXACT),
        })
    }
}

impl Probe for Lookups {
    const WORKS: bool = false;

    fn issues(&mut self, issue: &Issue, ftl: &impl Running) {
        for lpn in issue.pages.first..issue.pages.first + issue.pages.pages {
            self.entries.reference(lpn);
            self.units.reference(ftl.translation_page(lpn));
        }
    }
}
