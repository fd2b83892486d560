//! The clock's memory: at most one due time per resource, and the earliest of them.

/// No event is due.
pub const NEVER: u64 = u64::MAX;

/// Neighbours that make room for a time one by one, before those that remain move as a block.
const STEPS: usize = 12;

/// Due times of resources (chips and channel buses), in their order. Setting a time replaces the one before, so
/// suspending a resource is an overwrite; ties go to the resource with the lower number.
///
/// What is due next is taken from the front and most new times belong near the end, so that a sorted array needs
/// fewer operations than a heap or a tree of as many chips as devices have.
#[derive(Clone, Debug)]
pub struct Clock {
    /// What is due, from `first` on.
    due: Vec<(u64, u32)>,
    first: usize,
    /// By resource; [`NEVER`]: not due.
    times: Vec<u64>,
}

impl Clock {
    /// For `resources` resources, none due.
    pub fn new(resources: u32) -> Clock {
        let resources = resources as usize;
        // Room for as many again, so that they move to the front now and then, not each time.
        Clock { due: Vec::with_capacity((2 * resources).max(64)), first: 0, times: vec![NEVER; resources] }
    }

    /// The resource due next and its time; [`NEVER`] if none is.
    #[inline]
    pub fn next(&self) -> (u64, u32) {
        self.due.get(self.first).copied().unwrap_or((NEVER, 0))
    }

    /// Sets a resource's due time; [`NEVER`] for none.
    #[inline]
    pub fn set(&mut self, resource: u32, time_ns: u64) {
        let before_ns = std::mem::replace(&mut self.times[resource as usize], time_ns);
        if before_ns != NEVER {
            self.remove((before_ns, resource));
        }
        if time_ns != NEVER {
            self.insert((time_ns, resource));
        }
    }

    #[inline]
    fn remove(&mut self, due: (u64, u32)) {
        if self.due[self.first] == due {
            self.first += 1;
        } else {
            let at = self.first + self.due[self.first..].partition_point(|&other| other < due);
            self.due.remove(at);
        }
    }

    #[inline]
    fn insert(&mut self, due: (u64, u32)) {
        if self.due.len() == self.due.capacity() {
            self.due.drain(..std::mem::take(&mut self.first));
        }
        let mut at = self.due.len();
        self.due.push(due);
        let least = self.first.max(at.saturating_sub(STEPS));
        while at > least && self.due[at - 1] > due {
            self.due[at] = self.due[at - 1];
            at -= 1;
        }
        if at > self.first && self.due[at - 1] > due {
            let to = self.first + self.due[self.first..at].partition_point(|&other| other < due);
            self.due.copy_within(to..at, to + 1);
            at = to;
        }
        self.due[at] = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_the_earliest_and_lowest(resources in 1u32..600, sets in proptest::collection::vec((0u32..600, 0u64..20), 1..300)) {
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
