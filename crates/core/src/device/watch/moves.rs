//! The moves: the requests that issue, and where reads find their data, if the bytes are followed.

use super::{Issue, Probe, Ram};
use crate::flash::moves::{Move, Moves};
use crate::ftl::Running;
use crate::workload::Op;

pub type Keys = ();

/// The moves, noted in the order in which the FTL and the write buffer do.
#[derive(Debug)]
pub(in crate::device) struct Followed(pub Moves);

impl Followed {
    /// Notes where a read finds its pages.
    fn read(&self, issue: &Issue, ftl: &impl Running) {
        let Issue { pages, entries, buffer, .. } = issue;
        for lpn in pages.first..pages.first + pages.pages {
            let named =
                entries.get((lpn - pages.first) as usize).and_then(|&entry| ftl.slot_named(lpn, entry));
            // A version on its way to the flash already has its slot there.
            self.0.note(match buffer.is_some_and(|buffer| buffer.is_dirty(lpn)) {
                true => Move::Kept { lpn },
                false => Move::Read { lpn, slot: named.unwrap_or_else(|| ftl.slot(lpn)) },
            });
        }
    }
}

impl Probe for Followed {
    const WORKS: bool = false;

    fn issues(&mut self, issue: &Issue, ftl: &impl Running) {
        let request = issue.request;
        self.0.note(Move::Issue { request: (!request.mark.pad).then_some(request.id) });
        if request.op == Op::Read {
            self.read(issue, ftl);
        }
    }

    fn answers(&mut self, issue: &Issue, ftl: &impl Running) {
        self.0.note(Move::Issue { request: Some(issue.request.id) });
        self.read(issue, ftl);
    }

    fn ram(&mut self, what: Ram, _now_ns: u64) {
        match what {
            Ram::Flush { .. } => {}
            Ram::Keep { number, lpn, slot } => {
                self.0.note(Move::Issue { request: Some(number) });
                self.0.note(Move::Keep { lpn, slot });
            }
            Ram::Destage { lpn } => {
                self.0.note(Move::Issue { request: None });
                self.0.note(Move::Destage { lpn });
            }
            Ram::Pass { lpn } => self.0.note(Move::Destage { lpn }),
            Ram::Drop { lpn } => self.0.note(Move::Drop { lpn }),
        }
    }
}
