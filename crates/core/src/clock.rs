//! The clock's memory: at most one due time per resource, and the earliest of them.

/// The due time of something that never happens.
pub const NEVER: u64 = u64::MAX;

/// Number of neighbours that move one by one to make room for a time; beyond that, the rest moves as a block.
const STEPS: usize = 12;

/// Due times of resources (LUNs and channel buses), sorted; on a tie the resource with the lower number comes
/// first.
///
/// The next due time is taken from the front and most new times belong near the end, so for the number of
/// LUNs that devices have a sorted array needs fewer operations than a heap or a tree.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The due times, sorted, in `first..end`: each has the time in its upper half and the resource in its lower half.
    due: Vec<u128>,
    first: usize,
    end: usize,
}

impl Clock {
    /// Makes a clock for `resources` resources, none of which is due.
    pub fn new(resources: u32) -> Clock {
        let resources = resources as usize;
        // There is room for twice as many, so that the due times need to be moved to the front only now and then.
        Clock { due: vec![0; (2 * resources).max(64)], first: 0, end: 0 }
    }

    /// Returns when the next resource is due; [`NEVER`] if none is.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        if self.first == self.end { NEVER } else { (self.due[self.first] >> 64) as u64 }
    }

    /// Returns when a resource is due; `None` if it is not.
    pub fn due_ns(&self, resource: u32) -> Option<u64> {
        let due = self.due[self.first..self.end].iter().find(|&&due| due as u32 == resource)?;
        Some((due >> 64) as u64)
    }

    /// Takes the next resource that is due at `now_ns` or earlier.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Option<u32> {
        if self.first == self.end {
            return None;
        }
        let due = self.due[self.first];
        if (due >> 64) as u64 > now_ns {
            return None;
        }
        self.first += 1;
        Some(due as u32)
    }

    /// Replaces a resource's due time, which has to be searched for; [`NEVER`] removes it.
    pub fn set(&mut self, resource: u32, time_ns: u64) {
        let mut due = self.due[self.first..self.end].iter();
        if let Some(at) = due.position(|&due| due as u32 == resource) {
            self.due.copy_within(self.first + at + 1..self.end, self.first + at);
            self.end -= 1;
        }
        if time_ns != NEVER {
            self.add(resource, time_ns);
        }
    }

    /// Sets the due time of a resource that is not due.
    #[inline(always)] // for every event
    pub(crate) fn add(&mut self, resource: u32, time_ns: u64) {
        let due = u128::from(time_ns) << 64 | u128::from(resource);
        if self.first == self.end {
            (self.due[0], self.first, self.end) = (due, 0, 1);
            return;
        }
        if self.end == self.due.len() {
            self.due.copy_within(self.first..self.end, 0);
            self.end -= std::mem::take(&mut self.first);
        }
        let line = &mut self.due[self.first..=self.end];
        self.end += 1;
        let last = line.len() - 1;
        if last > STEPS && line[last - STEPS] > due {
            let to = line[..last].partition_point(|&other| other < due);
            line.copy_within(to..last, to + 1);
            line[to] = due;
            return;
        }
        // From the back, so that no index is checked.
        let Some((mut free, earlier)) = line.split_last_mut() else { return };
        for other in earlier.iter_mut().rev() {
            if *other <= due {
                break;
            }
            *free = *other;
            free = other;
        }
        *free = due;
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
                let set = if time == 19 { NEVER } else { time };
                clock.set(resource, set);
                model[resource as usize] = set;
                let least = *model.iter().min().unwrap();
                prop_assert_eq!(clock.next_ns(), least);
                let now = time / 2;
                let first = model.iter().position(|&t| t == least && t <= now);
                prop_assert_eq!(clock.take(now), first.map(|resource| resource as u32));
                first.into_iter().for_each(|resource| model[resource] = NEVER);
            }
        }
    }
}
