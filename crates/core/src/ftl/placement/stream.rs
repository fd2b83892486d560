//! Stream: each stream of the host in an open block of its own.
//!
//! Source: NVM Express, Flexible Data Placement (ratified as TP 4146, part of NVM Express Base Specification 2.1): a
//! write names a placement handle, which stands for a reclaim unit handle, and data of different reclaim unit handles
//! goes to different reclaim units. Two types of handles differ in what may happen later. Under "initially isolated",
//! data that the controller moves may share a reclaim unit with data of other handles of that type; under "persistently
//! isolated", it stays with the data of its own handle. A placement identifier that is not valid does not make a write
//! fail: the emulations of FDP in QEMU and FEMU take the first placement handle instead, as for a write without one.
//!
//! Interpretation: a stream is a placement handle, and an open block of each LUN is the handle's reclaim unit. The
//! first handle is stream 0, which is also the stream of requests without one. Copies of initially isolated streams go
//! to one open block for all of them, which is the most that this type permits to mix. There are eight streams unless
//! `ftl.fronts` says otherwise, as many as the reclaim unit handles of the drives with which FDP was introduced.

use super::{Own, Page, Placement, Space, Writable};
use crate::config::{choice, section};

pub(super) const NAME: &str = "stream";
pub(super) const DOC: &str =
    "each stream of the host in an open block of its own (NVMe Flexible Data Placement)";

choice! {
    /// The values of `ftl.copies`: where copies go.
    pub enum Copies {
        /// to an open block of their own, those of all streams together (FDP: initially isolated)
        Apart = "apart",
        /// to the open block of their stream (FDP: persistently isolated)
        Kept = "kept",
    }
}

section! {
    /// The key that only stream has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Where ftl.placement stream puts the pages that garbage collection copies.
        copies: Copies = "ftl.copies", "apart";
    }
}

/// Number of streams unless `ftl.fronts` is set.
const STREAMS: u32 = 8;

#[derive(Clone, Debug)]
pub(super) struct Stream {
    streams: u32,
    copies: Copies,
}

impl Placement for Stream {
    fn new(keys: &Own, space: Space) -> Stream {
        let copies = keys.stream.copies;
        let rest = u32::from(copies == Copies::Apart);
        Stream { streams: space.fronts.map_or(STREAMS, |most| most.saturating_sub(rest).max(1)), copies }
    }

    fn fronts(&self) -> u32 {
        self.streams + u32::from(self.copies == Copies::Apart)
    }

    fn front_name(&self, front: u32) -> String {
        if front < self.streams { format!("stream {front}") } else { "copies".into() }
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        match (page.is_copy(), self.copies) {
            (false, _) if u32::from(page.stream) < self.streams => page.stream.into(),
            (false, _) => 0,
            (true, Copies::Apart) => self.streams,
            (true, Copies::Kept) => page.from.unwrap_or(0),
        }
    }
}
