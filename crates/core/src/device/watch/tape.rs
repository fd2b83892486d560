//! The tape, which records every request that issues, if power cuts are simulated.

use super::{Issue, Probe, Ram};
use crate::flash::media::{DESTAGED, Tape};
use crate::ftl::Running;

pub type Keys = ();

/// The tape, written to in the order in which the FTL and the write buffer do.
#[derive(Debug)]
pub(in crate::device) struct Taped(pub Tape);

impl Probe for Taped {
    const WORKS: bool = false;

    fn issues(&mut self, issue: &Issue, _ftl: &impl Running) {
        let mark = issue.request.mark;
        // Padding is not a request of the workload.
        let number = if mark.pad { u64::MAX } else { issue.request.id };
        self.0.issue(number, issue.now_ns, mark.fua());
    }

    fn ram(&mut self, what: Ram, now_ns: u64) {
        match what {
            Ram::Flush { number } => self.0.issue(number, now_ns, false),
            Ram::Keep { number, lpn, .. } => {
                self.0.issue(number, now_ns, false);
                self.0.next(Some(lpn), false);
            }
            Ram::Destage { .. } => self.0.issue(DESTAGED, now_ns, false),
            Ram::Pass { .. } | Ram::Drop { .. } => {}
        }
    }
}
