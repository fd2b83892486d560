//! Stages 2 and 3: which step a die takes.
//!
//! Stage 2 names a read and a write, each the first of its queue that can begin. The classes have turns, 8 for urgent,
//! 4 for high, 2 for medium and 1 for low; a class with nothing that can begin is passed over. Reads and writes have
//! turns of their own.
//!
//! Stage 3 compares the two: each would have waited, if the other went first, for its time in the queue so far, for the
//! other, and for what remains of the collections that the write's tenant has to do at this die. The one whose wait is
//! longer in proportion to the time that it takes itself goes first; if both are the same, the read.

use super::{CLASSES, FIRST, Flin, LAST, QUEUES, Ticket};
use crate::flash::Cause;
use crate::util::NONE;

/// Number of turns in a round.
const TURNS: u8 = (1 << CLASSES) - 1;

/// Returns the class whose turn it is: every second turn is the first class's, every second of the rest the next one's,
/// and so on.
fn class_of_turn(turn: u8) -> usize {
    (turn + 1).trailing_zeros() as usize
}

/// Returns the next turn of a class, counted from `turn`.
fn next_turn(turn: u8, class: usize) -> u8 {
    let turns = (turn..TURNS).chain(0..turn);
    turns.into_iter().find(|&turn| class_of_turn(turn) == class).expect("every class has a turn")
}

impl Flin {
    /// Returns the step that a die takes next, of those that are `able` to begin.
    pub(super) fn select(&self, die: u32, now_ns: u64, able: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let first = self.first(die, FIRST, able);
        if first.is_some() {
            return first;
        }
        let [read, write] = [0, 1].map(|kind| self.slot_of(die, kind, able));
        match (read, write) {
            (Some(read), Some(write)) => Some(self.longer(read, write, now_ns)),
            (one, None) | (None, one) => one.or_else(|| self.first(die, LAST, able)),
        }
    }

    /// Returns the first step of a queue that can begin.
    fn first(&self, die: u32, queue: usize, able: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.queues[die as usize * QUEUES + queue].head;
        while at != NONE && (self.is_behind(at) || !able(at)) {
            at = self.tickets[at as usize].links.behind;
        }
        (at != NONE).then_some(at)
    }

    /// Stage 2: names the read (`kind` 0) or the write (1) of a die.
    fn slot_of(&self, die: u32, kind: usize, able: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let turn = self.turns[die as usize][kind];
        let found =
            |class| self.first(die, 2 * class + kind, able).map(|slot| (turn_distance(turn, class), slot));
        (0..CLASSES).filter_map(found).min().map(|(_, slot)| slot)
    }

    /// Stage 3: returns the one of a read and a write that goes first.
    fn longer(&self, read: u32, write: u32, now_ns: u64) -> u32 {
        let Ticket { tenant, arrival, .. } = self.tickets[write as usize];
        let own_ns = if arrival.cause == Cause::Host { 0 } else { arrival.service_ns };
        let extra_ns = self.activity[tenant * self.dies + arrival.die as usize][1].extra_ns - own_ns;
        let waited_ns = |slot: u32| now_ns - self.tickets[slot as usize].since_ns + extra_ns;
        let service_ns = |slot: u32| self.tickets[slot as usize].arrival.service_ns;
        // The proportions are compared without dividing, since an operation may take no time.
        let of_read = u128::from(waited_ns(read) + service_ns(write)) * u128::from(service_ns(write));
        let of_write = u128::from(waited_ns(write) + service_ns(read)) * u128::from(service_ns(read));
        if of_read >= of_write { read } else { write }
    }

    /// Notes that a step has had a turn of its class.
    pub(super) fn pass_turn(&mut self, slot: u32) {
        let Ticket { queue, arrival, .. } = self.tickets[slot as usize];
        let (class, kind) = (queue % QUEUES / 2, queue % QUEUES % 2);
        let turn = &mut self.turns[arrival.die as usize][kind];
        *turn = (next_turn(*turn, class) + 1) % TURNS;
    }
}

/// Returns how many turns come before the next one of a class.
fn turn_distance(turn: u8, class: usize) -> u8 {
    (next_turn(turn, class) + TURNS - turn) % TURNS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 15 turns the classes have 8, 4, 2 and 1.
    #[test]
    fn each_class_has_half_the_turns_of_the_one_before() {
        let order: Vec<usize> = (0..TURNS).map(class_of_turn).collect();
        assert_eq!(order, [0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0]);
        assert_eq!((next_turn(0, 3), next_turn(8, 3), next_turn(12, 2)), (7, 7, 3));
        assert_eq!((turn_distance(8, 3), turn_distance(12, 2)), (14, 6));
    }
}
