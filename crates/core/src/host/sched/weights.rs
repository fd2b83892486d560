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
    /// For each stream its number, or [`NONE`].
    numbers: Vec<u32>,
    count: u32,
}

impl Streams {
    /// Begins without streams; the first ones will have these weights, others 1.
    pub fn new(weights: Vec<u32>) -> Streams {
        Streams { weights, numbers: Vec::new(), count: 0 }
    }

    /// Returns the number of a stream, the next one if it is new, and its weight.
    pub fn number(&mut self, stream: u16) -> (u32, u32) {
        let at = usize::from(stream);
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, NONE);
        }
        if self.numbers[at] == NONE {
            self.numbers[at] = self.count;
            self.count += 1;
        }
        (self.numbers[at], self.weights.get(at).copied().unwrap_or(1))
    }

    /// Whether a stream has this number.
    pub fn is(&self, stream: u16, number: u32) -> bool {
        self.numbers.get(usize::from(stream)) == Some(&number)
    }
}
