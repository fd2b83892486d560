//! Whether a device keeps up with what arrives.

/// Waits below this time, ns, occur even if a device keeps up.
const LONG_NS: u64 = 1_000_000_000;

/// The time in which a backlog made reads or writes wait for more than a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Length of that time, ns.
    pub ns: u64,
    /// Length of the time over which the requests that waited arrived, ns.
    pub arrivals_ns: u64,
    /// The latest arrival so far of a request that waited, and the latest end of such a wait, ns.
    last_ns: u64,
    until_ns: u64,
}

impl Behind {
    /// Counts the wait of a read or write until its dispatch; calls must be in order of dispatch.
    #[inline]
    pub fn waited(&mut self, arrival_ns: u64, dispatch_ns: u64) {
        if dispatch_ns - arrival_ns > LONG_NS {
            self.add(arrival_ns, dispatch_ns);
        }
    }

    #[cold]
    fn add(&mut self, arrival_ns: u64, dispatch_ns: u64) {
        self.ns += dispatch_ns.saturating_sub(self.until_ns.max(arrival_ns));
        // If no request was waiting, this one begins another backlog.
        if arrival_ns < self.until_ns {
            self.arrivals_ns += arrival_ns.saturating_sub(self.last_ns);
        }
        self.last_ns = self.last_ns.max(arrival_ns);
        self.until_ns = self.until_ns.max(dispatch_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlogs_are_joined_where_they_overlap() {
        const S: u64 = LONG_NS;
        let behind = |waits: &[[u64; 2]]| {
            let mut behind = Behind::default();
            waits.iter().for_each(|&[arrival, dispatch]| behind.waited(arrival * S, dispatch * S));
            (behind.ns / S, behind.arrivals_ns / S)
        };
        assert_eq!(behind(&[[0, 1], [3, 4]]), (0, 0));
        assert_eq!(behind(&[[0, 2], [1, 4], [2, 6], [3, 8]]), (8, 3));
        // Two backlogs, and one request that others passed.
        assert_eq!(behind(&[[5, 8], [6, 9], [20, 22], [21, 24], [4, 25]]), (4 + 5, 1 + 1));
    }
}
