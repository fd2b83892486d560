//! How the device came to its state at time 0.

use serde::{Deserialize, Serialize};

/// What was done before time 0. None of it is in the run's own counters, but its erases are in `wear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preconditioning {
    /// `device.precondition`.
    pub kind: String,
    /// Logical pages written.
    pub pages_written: u64,
    /// NAND pages programmed, of all causes.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// With kind `steady`: number of rounds, each of one user capacity, after the device had been filled twice.
    pub rounds: u32,
    /// With kind `steady`: programs x L / logical pages written, for each of the last rounds (at most five).
    pub waf: Vec<f64>,
    /// With kind `steady`: whether write amplification became steady, or the limit of rounds was reached first.
    pub outcome: Option<Outcome>,
}

/// How a search for the steady state ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Write amplification is steady.
    Reached,
    /// It was still not steady after the last round allowed.
    Capped,
}

/// Number of rounds whose write amplifications are compared.
pub const WINDOW: usize = 5;

impl Preconditioning {
    /// Makes the record of a preconditioning that has done nothing yet.
    pub fn new(kind: &str) -> Preconditioning {
        Preconditioning {
            kind: kind.to_owned(),
            pages_written: 0,
            programs: 0,
            erases: 0,
            rounds: 0,
            waf: Vec::with_capacity(WINDOW),
            outcome: None,
        }
    }

    /// Adds a round's write amplification.
    pub fn add_round(&mut self, waf: f64) {
        self.rounds += 1;
        if self.waf.len() == WINDOW {
            self.waf.remove(0);
        }
        self.waf.push(waf);
    }

    /// Returns the difference between the greatest and the least write amplification of the last five rounds, divided
    /// by their mean; `None` while there are fewer rounds.
    pub fn spread(&self) -> Option<f64> {
        (self.waf.len() == WINDOW).then(|| {
            let (least, most) =
                self.waf.iter().fold((f64::MAX, f64::MIN), |(low, high), &waf| (low.min(waf), high.max(waf)));
            (most - least) * WINDOW as f64 / self.waf.iter().sum::<f64>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_last_five() {
        let mut done = Preconditioning::new("steady");
        for waf in [9.0, 2.0, 2.1, 1.9, 2.0] {
            assert_eq!(done.spread(), None);
            done.add_round(waf);
        }
        assert!((done.spread().unwrap() - 7.1 / 3.4).abs() < 1e-12);
        done.add_round(2.0);
        assert_eq!((done.rounds, done.waf.len()), (6, 5));
        assert!((done.spread().unwrap() - 0.1).abs() < 1e-12);
    }
}
