//! The clock's memory: at most one due time per resource, and the earliest of them.

/// No event is due.
pub const NEVER: u64 = u64::MAX;

/// A winner tree over resources (chips and channel buses). Setting a time replaces the one before,
/// so suspending a resource is an overwrite; ties go to the resource with the lower number.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Times of the leaves; a power of two of them.
    times: Vec<u64>,
    /// `winners[1]` is the resource with the earliest time; children of `n` are `2n` and `2n + 1`.
    winners: Vec<u32>,
    /// Time of the earliest, and which that is.
    next: (u64, u32),
}

impl Clock {
    /// For `resources` resources, none due.
    pub fn new(resources: u32) -> Clock {
        let leaves = resources.next_power_of_two().max(2) as usize;
        let mut clock = Clock { times: vec![NEVER; leaves], winners: vec![0; leaves], next: (NEVER, 0) };
        (0..leaves as u32).step_by(2).for_each(|leaf| clock.play(leaf));
        clock
    }

    /// The resource due next and its time; [`NEVER`] if none is.
    #[inline]
    pub fn next(&self) -> (u64, u32) {
        self.next
    }

    /// Sets a resource's due time; [`NEVER`] for none.
    #[inline]
    pub fn set(&mut self, resource: u32, time_ns: u64) {
        self.times[resource as usize] = time_ns;
        self.play(resource);
    }

    /// Plays the matches from a leaf up to the root.
    #[inline]
    fn play(&mut self, leaf: u32) {
        let pair = leaf as usize & !1;
        let mut winner = if self.times[pair + 1] < self.times[pair] { pair as u32 + 1 } else { pair as u32 };
        let mut node = (leaf as usize + self.times.len()) / 2;
        loop {
            self.winners[node] = winner;
            if node == 1 {
                self.next = (self.times[winner as usize], winner);
                return;
            }
            let (left, right) = (self.winners[node & !1], self.winners[node | 1]);
            winner = if self.times[right as usize] < self.times[left as usize] { right } else { left };
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_the_earliest_and_lowest(resources in 1u32..70, sets in proptest::collection::vec((0u32..70, 0u64..20), 1..300)) {
            let mut clock = Clock::new(resources);
            let mut model = vec![NEVER; resources as usize];
            for (resource, time) in sets {
                let resource = resource % resources;
                let time = if time == 19 { NEVER } else { time };
                clock.set(resource, time);
                model[resource as usize] = time;
                let least = *model.iter().min().unwrap();
                let (at, winner) = clock.next();
                prop_assert_eq!(at, least);
                if least != NEVER {
                    prop_assert_eq!(winner as usize, model.iter().position(|&t| t == least).unwrap());
                }
            }
        }
    }
}
