//! Converts between wall time and simulated time.

use std::time::{Duration, Instant};

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// A request completes when the simulated device says so, by the wall clock; simulated time runs this many times
    /// as fast as wall time.
    Real {
        /// Simulated time divided by wall time; 1: simulated time runs as fast as the wall clock.
        speed: f64,
    },
    /// A request completes immediately; simulated time runs ahead by itself.
    Free,
}

/// The moment at which wall time and simulated time both started, and how they pass.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    time: Time,
    start: Instant,
}

impl Pace {
    /// Starts both times now, with simulated time at 0.
    pub fn new(time: Time) -> Pace {
        Pace { time, start: Instant::now() }
    }

    /// Returns how time passes.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Returns the simulated time at a moment, ns; `None` if time is free.
    pub fn simulated_ns(&self, at: Instant) -> Option<u64> {
        let wall = at.saturating_duration_since(self.start);
        match self.time {
            // Computed exactly if both times run at the same rate.
            Time::Real { speed: 1.0 } => Some(wall.as_nanos() as u64),
            Time::Real { speed } => Some((wall.as_nanos() as f64 * speed) as u64),
            Time::Free => None,
        }
    }

    /// Returns the moment at which a simulated time is reached; `None` if time is free, or the moment is beyond any
    /// clock.
    pub fn moment(&self, simulated_ns: u64) -> Option<Instant> {
        let Time::Real { speed } = self.time else { return None };
        let wall_ns = if speed == 1.0 { simulated_ns } else { (simulated_ns as f64 / speed).ceil() as u64 };
        self.start.checked_add(Duration::from_nanos(wall_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated time that is converted to a moment and back comes out no earlier, except for a nanosecond of
    /// rounding, and hardly later, at any speed.
    #[test]
    fn both_directions_agree() {
        for speed in [1.0, 0.01, 3.7, 1000.0] {
            let pace = Pace::new(Time::Real { speed });
            for ns in [0, 1, 999, 123_456_789, 86_400_000_000_000] {
                let moment = pace.moment(ns).unwrap();
                let back = pace.simulated_ns(moment).unwrap();
                assert!(
                    back + 1 >= ns && back as f64 <= ns as f64 + speed + 1.0,
                    "{speed}: {ns} gives {back}"
                );
            }
        }
        assert_eq!(Pace::new(Time::Free).moment(5), None);
    }
}
