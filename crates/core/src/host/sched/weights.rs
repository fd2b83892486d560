//! The weights of the tenants, for schedulers that share by weight themselves, and the numbers of their streams.

use crate::config::section::Section;
use crate::config::{Key, Values};
use crate::util::NONE;
use crate::workload::tenants::Tenants;

/// The weight of each tenant, by its number, which is the stream of its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(pub Vec<u32>);

/// The weights have no keys of their own.
impl Section for Weights {
    fn declare(_keys: &mut Vec<Key>) {}

    fn read(values: &Values) -> Weights {
        Weights(Tenants::read(values).0.iter().map(|tenant| tenant.own.weight).collect())
    }
}

/// Numbers of the streams in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    weights: Vec<u32>,
    /// For each stream from `first` on its number, or [`NONE`]. A queue of one tenant has one stream, and needs no room
    /// for those before it.
    numbers: Vec<u32>,
    first: u16,
    count: u32,
}

impl Streams {
    /// Begins without streams; the first ones will have these weights, others 1.
    pub fn new(weights: Vec<u32>) -> Streams {
        Streams { weights, numbers: Vec::new(), first: 0, count: 0 }
    }

    /// Returns the number of a stream, the next one if it is new, and its weight.
    pub fn number(&mut self, stream: u16) -> (u32, u32) {
        let at =
            self.at(stream).filter(|&at| at < self.numbers.len()).unwrap_or_else(|| self.make_room(stream));
        if self.numbers[at] == NONE {
            self.numbers[at] = self.count;
            self.count += 1;
        }
        (self.numbers[at], self.weights.get(usize::from(stream)).copied().unwrap_or(1))
    }

    /// Returns where the number of a stream is, if it is not before the first one.
    fn at(&self, stream: u16) -> Option<usize> {
        stream.checked_sub(self.first).map(usize::from)
    }

    /// Makes room for the number of a stream; returns where it is.
    #[cold]
    fn make_room(&mut self, stream: u16) -> usize {
        if self.numbers.is_empty() {
            self.first = stream;
        } else if stream < self.first {
            // From the start, so that this happens once.
            let before = std::iter::repeat_n(NONE, usize::from(std::mem::take(&mut self.first)));
            self.numbers.splice(..0, before);
        }
        let at = usize::from(stream - self.first);
        self.numbers.resize(self.numbers.len().max(at + 1), NONE);
        at
    }

    /// Whether a stream has this number.
    pub fn is(&self, stream: u16, number: u32) -> bool {
        self.at(stream).and_then(|at| self.numbers.get(at)) == Some(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_arrival_from_any_stream_on() {
        let mut streams = Streams::new(vec![5, 7]);
        let came = [60_000, 60_001, 1, 60_000, 1, 65_535, 0].map(|stream| streams.number(stream));
        assert_eq!(came, [(0, 1), (1, 1), (2, 7), (0, 1), (2, 7), (3, 1), (4, 5)]);
        assert!(streams.is(60_000, 0) && !streams.is(59_999, 0) && !streams.is(2, 0));
    }

    #[test]
    fn one_stream_takes_one_place() {
        let mut streams = Streams::new(Vec::new());
        assert_eq!([streams.number(u16::MAX), streams.number(u16::MAX)], [(0, 1); 2]);
        assert!(!streams.is(0, 0));
        assert_eq!(streams.numbers.capacity().min(8), streams.numbers.capacity());
    }
}
