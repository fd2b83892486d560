//! A kinetic tournament: it tells which of a number of items is ahead while their values change with time.
//!
//! Source: Basch, Guibas and Hershberger, "Data structures for mobile data", SODA 1997.

use super::NONE;

/// How two items compare at a given time: which of them is ahead, and until when that certainly remains so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// Whether the first of the two is ahead.
    pub first: bool,
    /// A time, later than that of the race, until which the same item certainly stays ahead; `u64::MAX` if it always
    /// will.
    pub until: u64,
}

/// A match, with all matches below it.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The item that won, or [`NONE`].
    winner: u32,
    /// The time at which this match, or a match below it, has to be played again.
    until: u64,
}

const EMPTY: Node = Node { winner: NONE, until: u64::MAX };

/// A tournament over small numbers. A change costs one match on each level, and a match is played again only when its
/// result may have changed. Time never goes back.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Node 1 is the root; the nodes below node `n` are `2n` and `2n + 1`; the second half of the list holds the items.
    nodes: Vec<Node>,
}

impl Default for Tournament {
    fn default() -> Tournament {
        Tournament { nodes: vec![EMPTY; 256] }
    }
}

impl Tournament {
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Adds an item or, if it has changed, plays its matches again; if it is not `present`, removes it.
    pub fn set(&mut self, item: u32, present: bool, now: u64, race: &impl Fn(u32, u32, u64) -> Race) {
        while item as usize >= self.leaves() {
            self.grow(now, race);
        }
        let mut at = self.leaves() + item as usize;
        self.nodes[at].winner = if present { item } else { NONE };
        while at > 1 {
            at /= 2;
            let before = self.nodes[at].winner;
            self.play(at, now, race);
            let Node { winner, until } = self.nodes[at];
            if winner == before && winner != item {
                return self.hurry(at / 2, until);
            }
        }
    }

    /// Makes the match at a node, and those above it, due at a time or earlier; no winner below them has changed.
    fn hurry(&mut self, mut at: usize, until: u64) {
        while at > 0 && self.nodes[at].until > until {
            self.nodes[at].until = until;
            at /= 2;
        }
    }

    /// Returns the item that is ahead, or [`NONE`].
    #[inline]
    pub fn leader(&mut self, now: u64, race: &impl Fn(u32, u32, u64) -> Race) -> u32 {
        self.refresh(1, now, race);
        self.nodes[1].winner
    }

    fn refresh(&mut self, at: usize, now: u64, race: &impl Fn(u32, u32, u64) -> Race) {
        if self.nodes[at].until > now {
            return;
        }
        self.refresh(2 * at, now, race);
        self.refresh(2 * at + 1, now, race);
        self.play(at, now, race);
    }

    /// Plays a match between the winners of the two nodes below.
    fn play(&mut self, at: usize, now: u64, race: &impl Fn(u32, u32, u64) -> Race) {
        let [left, right] = self.nodes.as_chunks().0[at];
        let until = left.until.min(right.until);
        self.nodes[at] = if right.winner == NONE {
            Node { winner: left.winner, until }
        } else if left.winner == NONE {
            Node { winner: right.winner, until }
        } else {
            let result = race(left.winner, right.winner, now);
            debug_assert!(result.until > now);
            let winner = if result.first { left.winner } else { right.winner };
            Node { winner, until: until.min(result.until) }
        };
    }

    /// Doubles the room for items.
    fn grow(&mut self, now: u64, race: &impl Fn(u32, u32, u64) -> Race) {
        let leaves = self.leaves();
        let mut nodes = vec![EMPTY; 4 * leaves];
        nodes[2 * leaves..3 * leaves].copy_from_slice(&self.nodes[leaves..]);
        self.nodes = nodes;
        (1..2 * leaves).rev().for_each(|at| self.play(at, now, race));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the race of items on straight lines, each with a value at time 0 and a growth.
    fn race(lines: &[(i64, i64)]) -> impl Fn(u32, u32, u64) -> Race {
        |a, b, now| {
            let [(start_a, grows_a), (start_b, grows_b)] = [a, b].map(|item| lines[item as usize]);
            let [left, right] = [start_a + grows_a * now as i64, start_b + grows_b * now as i64];
            let first = (left, b) > (right, a);
            let (lead, loses) =
                if first { (left - right, grows_b - grows_a) } else { (right - left, grows_a - grows_b) };
            let until = if loses > 0 { now + (lead / loses).max(1) as u64 } else { u64::MAX };
            Race { first, until }
        }
    }

    proptest! {
        /// The leader is the item that a search of all items finds, while items are added, changed and removed and time
        /// goes on.
        #[test]
        fn the_leader_is_the_greatest(
            steps in proptest::collection::vec((0u8..4, 0u32..300, 0i64..1000, 0i64..50, 0u64..5), 1..300),
        ) {
            let mut lines = vec![(0, 0); 300];
            let mut present = std::collections::BTreeSet::new();
            let mut tournament = Tournament::default();
            let mut now = 0;
            for (step, item, start, grows, passes) in steps {
                now += passes;
                if step == 0 {
                    present.remove(&item);
                    tournament.set(item, false, now, &race(&lines));
                } else if step < 3 {
                    lines[item as usize] = (start, grows);
                    present.insert(item);
                    tournament.set(item, true, now, &race(&lines));
                }
                let value = |item: u32| lines[item as usize].0 + lines[item as usize].1 * now as i64;
                let best = present.iter().copied().max_by_key(|&item| (value(item), std::cmp::Reverse(item)));
                prop_assert_eq!(tournament.leader(now, &race(&lines)), best.unwrap_or(NONE));
            }
        }
    }
}
