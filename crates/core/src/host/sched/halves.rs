//! Reads before writes, and RoW's alternation.

use crate::request::{Half, Pool, Queue, Request};

/// Decides which half goes next.
///
/// "Read queue is prioritized for once" (Ji et al., TCAD 2018, section VI-A): reads go first, but two in
/// succession only if no write waits. Without alternation reads always go first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    alternate: bool,
    read_last: bool,
}

impl Turn {
    pub fn new(alternate: bool) -> Turn {
        Turn { alternate, read_last: false }
    }

    /// Returns the half to serve, given whether reads and whether writes wait; `None` if neither do.
    #[inline]
    pub fn pick(&self, reads: bool, writes: bool) -> Option<Half> {
        match (reads, writes) {
            (true, true) if self.alternate && self.read_last => Some(Half::Write),
            (true, _) => Some(Half::Read),
            (false, true) => Some(Half::Write),
            (false, false) => None,
        }
    }

    /// Notes from which half the last choice was made.
    #[inline]
    pub fn served(&mut self, half: Half) {
        self.read_last = half == Half::Read;
    }
}

/// A queue of reads and one of writes, each in arrival order.
#[derive(Clone, Debug, Default)]
pub(super) struct Halves {
    queues: [Queue; 2],
}

impl Halves {
    #[inline]
    pub fn push(&mut self, id: u32, pool: &mut Pool) {
        self.queues[pool[id].half() as usize].push(id, pool);
    }

    /// Takes the next request, as `turn` decides.
    #[inline]
    pub fn pop(&mut self, turn: &mut Turn, pool: &mut Pool) -> Option<u32> {
        let half = turn.pick(!self.queues[0].is_empty(), !self.queues[1].is_empty())?;
        turn.served(half);
        self.queues[half as usize].pop(pool)
    }

    pub fn unlink(&mut self, id: u32, pool: &mut Pool) {
        self.queues[pool[id].half() as usize].unlink(id, pool);
    }

    /// Checks both queues as [`Queue::verify`] does; returns the number of requests in them.
    pub fn verify(&self, pool: &Pool, of: impl Fn(&Request) -> bool) -> Result<u32, String> {
        let [reads, writes] = [Half::Read, Half::Write].map(|half| {
            self.queues[half as usize].verify(pool, |request| request.half() == half && of(request))
        });
        Ok(reads? + writes?)
    }
}
