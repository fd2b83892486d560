//! The commands of the row that go on at a time.

use crate::clock::NEVER;

/// Where a command goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    /// It comes through the stages from this one on.
    Come(u8),
    /// It goes back through the stages before this one.
    Back(u8),
}

/// Number of events, the last ones, among which a new one is put in place one by one.
const NEAR: usize = 16;

/// A command goes on.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_ns: u64,
    id: u32,
    to: To,
}

/// The commands, in the order of their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Events, of which those from the index `first` on are to come, by time; of equal times the one that was found
    /// first. Most events are found in this order.
    events: Vec<Event>,
    first: usize,
}

impl Line {
    /// Returns when the next command goes on, ns, or [`NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.events.get(self.first).map_or(NEVER, |event| event.at_ns)
    }

    /// Takes out the next command, if it goes on by now.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Option<(u32, To)> {
        let &Event { id, to, .. } = self.events.get(self.first).filter(|event| event.at_ns <= now_ns)?;
        self.first += 1;
        Some((id, to))
    }

    /// Lets a command go on at a time, ns.
    pub fn add(&mut self, at_ns: u64, id: u32, to: To) {
        // The line moves to the front only if that gains as much room as it moves; otherwise it grows.
        let (all, full) = (self.events.len(), self.events.len() == self.events.capacity());
        if self.first == all || full && 2 * self.first >= all {
            self.events.drain(..std::mem::take(&mut self.first));
        }
        let event = Event { at_ns, id, to };
        self.events.push(event);
        let line = &mut self.events[self.first..];
        let mut place = line.len() - 1;
        if place > NEAR && line[place - NEAR].at_ns > at_ns {
            let to = line[..place].partition_point(|other| other.at_ns <= at_ns);
            line.copy_within(to..place, to + 1);
            place = to;
        }
        while place > 0 && line[place - 1].at_ns > at_ns {
            line[place] = line[place - 1];
            place -= 1;
        }
        line[place] = event;
    }

    /// Forgets all commands.
    pub fn clear(&mut self) {
        self.events.clear();
        self.first = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: with many commands under way, each event moved all others to the front of a full line.
    #[test]
    fn a_full_line_grows_rather_than_moving() {
        let mut line = Line { events: Vec::with_capacity(1024), first: 0 };
        let full = line.events.capacity();
        (0..full).for_each(|at| line.add(at as u64, 0, To::Come(0)));
        line.first = 1;
        (0..2).for_each(|_| line.add(full as u64, 0, To::Come(0)));
        assert!(line.first == 1 && line.events.capacity() > full + 1);
    }
}
