//! Drops requests that a trace logged twice.

use ftlab_core::workload::{Op, Record};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

type Key = (Op, u16, u64, u64);

/// Remembers the requests kept within the window.
///
/// A request is a repeat if the last kept request with the same op, stream, offset and size has a recorded stamp that
/// is at most the window away from its own, in either direction. Requests are forgotten once the latest stamp seen is
/// later than theirs by more than the window.
pub(crate) struct Dedup {
    window_ns: u64,
    latest_ns: u64,
    /// For each key, the stamp and the serial number of the request kept last.
    kept: FxHashMap<Key, (u64, u64)>,
    /// For each request kept: the latest stamp at that time, its serial number and its key; oldest first.
    order: VecDeque<(u64, u64, Key)>,
    serial: u64,
}

impl Dedup {
    /// Makes a memory of requests with a window of `window_ns`, which must not be 0.
    pub(crate) fn new(window_ns: u64) -> Dedup {
        Dedup { window_ns, latest_ns: 0, kept: FxHashMap::default(), order: VecDeque::new(), serial: 0 }
    }

    /// Returns whether the request is a repeat; if not, it is remembered.
    pub(crate) fn is_repeat(&mut self, record: &Record) -> bool {
        self.latest_ns = self.latest_ns.max(record.time_ns);
        self.forget();
        let key = (record.op, record.stream, record.offset, record.size);
        let kept = self.kept.get(&key);
        if kept.is_some_and(|&(kept_ns, _)| record.time_ns.abs_diff(kept_ns) <= self.window_ns) {
            return true;
        }
        self.serial += 1;
        self.kept.insert(key, (record.time_ns, self.serial));
        self.order.push_back((self.latest_ns, self.serial, key));
        false
    }

    fn forget(&mut self) {
        while let Some(&(at_ns, serial, key)) = self.order.front() {
            if self.latest_ns - at_ns <= self.window_ns {
                break;
            }
            self.order.pop_front();
            // A later request with the same key may have replaced this one in `kept`.
            if self.kept.get(&key).is_some_and(|&(_, last)| last == serial) {
                self.kept.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64, offset: u64) -> Record {
        Record { time_ns, op: Op::Write, offset, size: 4096, ..Record::FLUSH }
    }

    #[test]
    fn compares_with_the_one_last_kept() {
        let mut dedup = Dedup::new(50);
        let repeats: Vec<_> =
            [0, 30, 50, 51, 100, 101, 102].iter().map(|&t| dedup.is_repeat(&at(t, 0))).collect();
        // The request at 51 is 51 after the kept request at 0, so it is kept; the one at 101 is within 50 of it, the
        // one at 102 is not.
        assert_eq!(repeats, [false, true, true, false, true, true, false]);
    }

    #[test]
    fn other_requests_are_none_of_its_business() {
        let mut dedup = Dedup::new(50);
        assert!(!dedup.is_repeat(&at(0, 0)));
        assert!(!dedup.is_repeat(&at(1, 4096)));
        assert!(!dedup.is_repeat(&Record { op: Op::Read, ..at(1, 0) }));
        assert!(!dedup.is_repeat(&Record { size: 512, ..at(1, 0) }));
        assert!(!dedup.is_repeat(&Record { stream: 1, ..at(1, 0) }));
        assert!(dedup.is_repeat(&at(1, 0)));
    }

    #[test]
    fn earlier_stamps_count_too() {
        let mut dedup = Dedup::new(50);
        assert!(!dedup.is_repeat(&at(1000, 0)));
        assert!(dedup.is_repeat(&at(950, 0)));
        assert!(!dedup.is_repeat(&at(949, 0)));
    }

    #[test]
    fn memory_is_that_of_the_window() {
        let mut dedup = Dedup::new(50);
        for t in 0..100_000 {
            assert!(!dedup.is_repeat(&at(t, t * 4096)));
        }
        assert!(dedup.kept.len() <= 52 && dedup.order.len() <= 52);
        assert!(dedup.order.capacity() <= 256);
    }
}
