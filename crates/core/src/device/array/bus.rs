//! A channel's bus, which serves its users in order of arrival; if so configured, commands go before data transfers.

use std::collections::VecDeque;

/// One bus and the users that wait for it. The caller decides what a user's number means.
#[derive(Clone, Debug, Default)]
pub(super) struct Bus {
    user: Option<u32>,
    /// Users that wait to send a command; they are served before those in `queue`.
    commands: VecDeque<u32>,
    queue: VecDeque<u32>,
    /// Time for which the bus has been in use, ns; the current use counts up to its end.
    pub busy_ns: u64,
}

impl Bus {
    /// Returns whether `who` can have the bus now; if not, `who` joins the queue, or the queue of commands if
    /// `goes_first`.
    #[inline]
    pub fn ask(&mut self, who: u32, goes_first: bool) -> bool {
        let free = self.is_free();
        if !free {
            let line = if goes_first { &mut self.commands } else { &mut self.queue };
            line.push_back(who);
        }
        free
    }

    /// Gives `who` the bus for `ns` nanoseconds.
    #[inline]
    pub fn grant(&mut self, who: u32, ns: u64) {
        self.user = Some(who);
        self.busy_ns += ns;
    }

    /// Ends the current use of the bus; returns its user, and the user whose turn is next.
    #[inline]
    pub fn release(&mut self) -> (u32, Option<u32>) {
        let next = self.commands.pop_front().or_else(|| self.queue.pop_front());
        (self.user.take().expect("the bus was in use"), next)
    }

    /// Whether `who` uses the bus.
    pub fn is_used_by(&self, who: u32) -> bool {
        self.user == Some(who)
    }

    /// Whether nobody uses the bus.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.user.is_none()
    }
}
