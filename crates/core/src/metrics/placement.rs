//! What went to each front, as results show it.

use serde::Serialize;

use super::flash::ratio;
use crate::ftl::placement::FrontCount;

/// The classes of data that `ftl.placement` keeps in open blocks of their own.
#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    /// What went to each front.
    pub fronts: Vec<Front>,
}

/// What went to the open blocks of a class of data.
#[derive(Clone, Debug, Serialize)]
pub struct Front {
    /// Name of the front.
    pub name: String,
    /// Pages that the host wrote to it, padding included, whether they have been programmed or wait in a page buffer.
    pub written: u64,
    /// Pages that the device moved to it.
    pub moved: u64,
    /// (written + moved) / written; null for a front to which the host writes nothing.
    pub waf: Option<f64>,
}

impl Placement {
    /// Makes the section of these counts; `None` if there are no fronts to tell apart.
    pub(super) fn new(counts: Vec<FrontCount>) -> Option<Placement> {
        let front = |FrontCount { name, written, moved }| {
            let waf = ratio(written + moved, written);
            Front { name, written, moved, waf }
        };
        (!counts.is_empty()).then(|| Placement { fronts: counts.into_iter().map(front).collect() })
    }
}
