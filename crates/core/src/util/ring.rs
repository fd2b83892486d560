//! A first-in first-out queue of times.

/// Times in order of arrival. The queue grows when it is full; indices wrap by a mask.
#[derive(Clone, Debug)]
pub struct Ring {
    times: Vec<u64>,
    /// How many entries have been put in so far, and how many have been taken out.
    pushed: usize,
    popped: usize,
}

impl Ring {
    /// Makes an empty queue with room for this many times.
    pub fn new(capacity: usize) -> Ring {
        Ring { times: vec![0; capacity.next_power_of_two()], pushed: 0, popped: 0 }
    }

    /// Appends a time.
    #[inline]
    pub fn push(&mut self, time: u64) {
        if self.pushed - self.popped == self.times.len() {
            self.grow();
        }
        let at = self.pushed & (self.times.len() - 1);
        self.times[at] = time;
        self.pushed += 1;
    }

    /// Appends a time as often as `times` says.
    #[cold]
    pub fn push_many(&mut self, time: u64, times: u32) {
        (0..times).for_each(|_| self.push(time));
    }

    /// Removes the first time and returns it, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        (self.pushed != self.popped).then(|| {
            let first = self.times[self.popped & (self.times.len() - 1)];
            self.popped += 1;
            first
        })
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.popped & (self.times.len() - 1);
        self.times.rotate_left(first);
        (self.pushed, self.popped) = (self.times.len(), 0);
        self.times.resize(self.times.len() * 2, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn is_a_queue(capacity in 0usize..9, steps in proptest::collection::vec(proptest::option::of(0u64..100), 0..200)) {
            let mut ring = Ring::new(capacity);
            let mut model = VecDeque::new();
            for step in steps {
                match step {
                    Some(time) if time % 4 == 0 => {
                        ring.push_many(time, time as u32 / 4);
                        (0..time / 4).for_each(|_| model.push_back(time));
                    }
                    Some(time) => {
                        ring.push(time);
                        model.push_back(time);
                    }
                    None => prop_assert_eq!(ring.pop(), model.pop_front()),
                }
            }
            while let Some(time) = model.pop_front() {
                prop_assert_eq!(ring.pop(), Some(time));
            }
        }
    }
}
