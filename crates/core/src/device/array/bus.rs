//! A channel's bus: first come, first served.

use std::collections::VecDeque;

/// One bus and those who wait for it, by numbers of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct Bus {
    user: Option<u32>,
    queue: VecDeque<u32>,
    /// Time it was used, ns.
    pub busy_ns: u64,
}

impl Bus {
    /// Whether `who` gets the bus now; else it waits for its turn.
    #[inline]
    pub fn ask(&mut self, who: u32) -> bool {
        let free = self.is_free();
        if !free {
            self.queue.push_back(who);
        }
        free
    }

    /// It is used for `ns`.
    #[inline]
    pub fn grant(&mut self, who: u32, ns: u64) {
        self.user = Some(who);
        self.busy_ns += ns;
    }

    /// Its use has ended: who used it, and whose turn it is.
    #[inline]
    pub fn release(&mut self) -> (u32, Option<u32>) {
        (self.user.take().expect("the bus was in use"), self.queue.pop_front())
    }

    /// Whether nobody uses it.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.user.is_none()
    }
}
