//! Puts rows in order of their stamps: a recorder with a buffer for each CPU writes them out of order.

use ftlab_core::workload::{Record, SourceError};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Number of rows that are held, so that a later row with an earlier stamp can be put in its place; it bounds the
/// memory.
pub(crate) const WINDOW: usize = 1 << 14;

/// Puts rows in order of their stamps; rows with the same stamp stay in the order of the file.
#[derive(Default)]
pub(crate) struct Order {
    /// Rows that are in order.
    run: VecDeque<Record>,
    /// Rows that came late.
    late: BinaryHeap<Late>,
    /// Stamp of the row last returned.
    out_ns: u64,
    /// What follows the rows that are held, once that is known: the end, or an error.
    end: Option<Result<(), SourceError>>,
    /// Number of rows moved forward to their place.
    pub(crate) moved: u64,
    /// Largest difference, ns, between the stamp of a moved row and that of the latest row before it.
    pub(crate) back_ns: u64,
}

/// A row whose stamp is earlier than that of a row before it; the earliest compares as the greatest.
struct Late(Record);

impl Ord for Late {
    fn cmp(&self, other: &Late) -> Ordering {
        (other.0.time_ns, other.0.line).cmp(&(self.0.time_ns, self.0.line))
    }
}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Late) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Late) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Late {}

impl Order {
    /// Returns the next row; `rows` returns them in the order of the file. An error of `rows` is passed on after the
    /// rows before it, but an interruption is passed on immediately.
    #[inline]
    pub(crate) fn next(
        &mut self,
        mut rows: impl FnMut() -> Result<Option<Record>, SourceError>,
    ) -> Result<Option<Record>, SourceError> {
        while self.end.is_none() && self.run.len() + self.late.len() < WINDOW {
            match rows() {
                Ok(Some(record)) => self.hold(record),
                Ok(None) => self.end = Some(Ok(())),
                Err(SourceError::Interrupted) => return Err(SourceError::Interrupted),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        let next = self.earliest();
        match &next {
            Some(record) => self.out_ns = record.time_ns,
            None => self.end.replace(Ok(())).unwrap_or(Ok(()))?,
        }
        Ok(next)
    }

    #[inline]
    fn hold(&mut self, record: Record) {
        match self.run.back() {
            Some(last) if record.time_ns < last.time_ns => {
                // A row that is earlier than one already returned can no longer be put in its place.
                if record.time_ns >= self.out_ns {
                    self.moved += 1;
                    self.back_ns = self.back_ns.max(last.time_ns - record.time_ns);
                }
                self.late.push(Late(record));
            }
            _ => self.run.push_back(record),
        }
    }

    #[inline]
    fn earliest(&mut self) -> Option<Record> {
        match (self.run.front(), self.late.peek()) {
            (Some(first), Some(late)) if first.time_ns <= late.0.time_ns => self.run.pop_front(),
            (_, Some(_)) => self.late.pop().map(|late| late.0),
            (_, None) => self.run.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::workload::Op;

    /// Returns stamps and lines as they come out, the number of rows moved, and the largest distance of a move, ns.
    fn sorted(stamps: impl IntoIterator<Item = u64>) -> (Vec<(u64, u64)>, u64, u64) {
        let mut rows = (1..).zip(stamps).map(|(line, time_ns)| Record {
            time_ns,
            op: Op::Read,
            size: 1,
            line,
            ..Record::FLUSH
        });
        let mut order = Order::default();
        let next = || order.next(|| Ok(rows.next())).unwrap().map(|record| (record.time_ns, record.line));
        let found = std::iter::from_fn(next).collect();
        (found, order.moved, order.back_ns)
    }

    #[test]
    fn rows_find_their_places() {
        let (found, moved, back_ns) = sorted([5, 9, 5, 7, 9, 4, 9]);
        assert_eq!(found, [(4, 6), (5, 1), (5, 3), (7, 4), (9, 2), (9, 5), (9, 7)]);
        assert_eq!((moved, back_ns), (3, 5));
        assert_eq!(sorted([1, 2, 2, 3]), (vec![(1, 1), (2, 2), (2, 3), (3, 4)], 0, 0));
    }

    /// A row that comes too late for the window stays where it is.
    #[test]
    fn the_window_is_bounded() {
        let most = WINDOW as u64;
        let with_early = |at: u64| (2..2 * most).chain([1]).chain(2 * most..2 * most + at);
        let (found, moved, _) = sorted(with_early(5));
        assert_eq!((found[0].0, moved), (2, 0));
        let (found, moved, back_ns) = sorted((2..most + 1).chain([1]).chain(most + 1..most + 5));
        assert_eq!((found[0].0, moved, back_ns), (1, 1, most - 1));
    }

    #[test]
    fn an_error_comes_after_the_rows_before_it() {
        let mut rows = [Some(7), Some(3), None].into_iter().chain(std::iter::repeat(None));
        let mut order = Order::default();
        let mut next = || {
            order.next(|| match rows.next().flatten() {
                Some(time_ns) => Ok(Some(Record { time_ns, op: Op::Read, size: 1, ..Record::FLUSH })),
                None => Err(SourceError::Input("at fault".into())),
            })
        };
        assert_eq!([3, 7], [(); 2].map(|()| next().unwrap().unwrap().time_ns));
        assert!(next().is_err());
        assert!(next().unwrap().is_none());
    }
}
