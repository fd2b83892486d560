//! When a load is steady: fio's `steadystate`.
//!
//! Each second gives a figure, and the last ones together a criterion; the load is steady when it is below the limit.

use std::collections::VecDeque;

/// When a job is steady, so that it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Whether bytes are counted; otherwise requests are.
    pub bytes: bool,
    /// Whether the criterion is the slope of the regression line; otherwise it is the largest deviation from the mean.
    pub slope: bool,
    /// What the criterion has to be below.
    pub limit: f64,
    /// Whether that is a share of the mean, percent.
    pub percent: bool,
    /// Number of figures that count (`steadystate_duration`); 0: the job does not end by this.
    pub count: u64,
    /// Time between a figure and the next, ns (`steadystate_check_interval`).
    pub interval_ns: u64,
    /// Time before the first of them, ns (`steadystate_ramp_time`).
    pub ramp_ns: u64,
}

impl Steady {
    /// fio's default, which a duration brings into effect.
    pub(super) const DEFAULT: Steady = Steady {
        bytes: false,
        slope: true,
        limit: 0.01,
        percent: true,
        count: 0,
        interval_ns: 1_000_000_000,
        ramp_ns: 0,
    };

    /// Returns the criterion of these figures, as fio computes it; not a number if there is none.
    fn criterion(&self, figures: &VecDeque<u64>) -> f64 {
        let count = figures.len() as u64;
        let sum: u64 = figures.iter().sum();
        let mean = sum as f64 / count as f64;
        if !self.slope {
            let off = figures.iter().map(|&figure| (figure as f64 - mean).abs()).fold(0.0, f64::max);
            return if self.percent { 100.0 * off / mean } else { off };
        }
        let weighed: u128 = (0..).zip(figures).map(|(at, &figure)| at * u128::from(figure)).sum();
        let (x, x_squared) = (count * (count - 1) / 2, (count - 1) * count * (2 * count - 1) / 6);
        let slope = (weighed as f64 - x as f64 * mean) / (x_squared as f64 - (x * x) as f64 / count as f64);
        if self.percent { 100.0 * slope / (sum / count) as f64 } else { slope }
    }
}

/// The figures of a load.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    steady: Steady,
    /// When the load began, and what has been counted since the last figure.
    begun_ns: Option<u64>,
    counted: u64,
    /// Number of figures so far, and the last of them.
    taken: u64,
    figures: VecDeque<u64>,
}

impl Figures {
    pub fn new(steady: Steady) -> Figures {
        let figures = VecDeque::with_capacity(steady.count as usize);
        Figures { steady, begun_ns: None, counted: 0, taken: 0, figures }
    }

    /// Begins to count at this time; without a time, it ends.
    pub fn begin(&mut self, now_ns: Option<u64>) {
        *self = Figures { begun_ns: now_ns, ..Figures::new(self.steady) };
    }

    /// Returns whether the load was steady at a time before this one.
    pub fn is_steady(&mut self, now_ns: u64) -> bool {
        let Some(begun_ns) = self.begun_ns else { return false };
        let Steady { interval_ns, ramp_ns, count, limit, .. } = self.steady;
        let past_ns = now_ns - begun_ns;
        while (self.taken + 1).saturating_mul(interval_ns) < past_ns {
            self.taken += 1;
            let counted = u128::from(std::mem::take(&mut self.counted)) * 1_000_000_000;
            let figure = (counted / u128::from(interval_ns)) as u64;
            // fio's clock is a little older than the job: a ramp of whole seconds ends with the next.
            if ramp_ns > 0 && self.taken.saturating_mul(interval_ns) <= ramp_ns.saturating_add(interval_ns) {
                continue;
            }
            if self.figures.len() as u64 == count {
                self.figures.pop_front();
            }
            self.figures.push_back(figure);
            if self.figures.len() as u64 == count && self.steady.criterion(&self.figures).abs() < limit {
                return true;
            }
        }
        false
    }

    /// Counts requests that have ended, and their bytes.
    pub fn count(&mut self, requests: u64, bytes: u64) {
        self.counted += if self.steady.bytes { bytes } else { requests };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fio 3.33 printed of these figures ("criterion" in its JSON).
    #[test]
    fn criteria_are_those_of_fio() {
        let of = |steady: Steady, figures: &[u64]| {
            format!("{:.6}", steady.criterion(&figures.iter().copied().collect()))
        };
        let off = Steady { slope: false, ..Steady::DEFAULT };
        assert_eq!(of(off, &[1000, 978, 1017]), "2.036728");
        assert_eq!(of(Steady { percent: false, ..off }, &[1000, 978, 1017]), "20.333333");
        let slope = Steady::DEFAULT;
        assert_eq!(of(slope, &[1000, 1000, 991, 1008]), "0.150150");
        assert_eq!(of(slope, &[4_080_716, 4_112_384, 4_100_100, 4_096_000]), "0.081927");
        assert_eq!(of(Steady { percent: false, ..slope }, &[998, 1002, 1000, 1000]), "0.400000");
    }
}
