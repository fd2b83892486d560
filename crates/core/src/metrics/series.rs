//! Values over simulated time, in a bounded number of points.

use serde::Serialize;

/// Upper bound on the number of points of a series.
const POINTS: usize = 1024;
/// Width of a point at first, ns.
const FIRST_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    count: u64,
    sum: u128,
    max: u64,
}

/// Values over time: points of equal width, each with count, mean and greatest. When time runs past the
/// last point, neighbours are joined and the width doubles.
#[derive(Clone, Debug)]
pub struct Series {
    from_ns: u64,
    width_ns: u64,
    points: Vec<Point>,
}

/// Points over time.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesReport {
    /// Start of the first point.
    pub from_ns: u64,
    /// Width of each point.
    pub width_ns: u64,
    /// Number of values in each point.
    pub count: Vec<u64>,
    /// Mean of these values; null where there are none.
    pub mean: Vec<Option<f64>>,
    /// Greatest of these values; 0 where there are none.
    pub max: Vec<u64>,
}

impl Series {
    /// Makes an empty series from `from_ns` on.
    pub fn new(from_ns: u64) -> Series {
        Series { from_ns, width_ns: FIRST_NS, points: Vec::with_capacity(POINTS) }
    }

    /// Adds a value `count` times, at a time that is not before the start of the series.
    pub fn add(&mut self, now_ns: u64, value: u64, count: u64) {
        let mut at = (now_ns - self.from_ns) / self.width_ns;
        while at >= POINTS as u64 {
            self.halve();
            at = (now_ns - self.from_ns) / self.width_ns;
        }
        if self.points.len() <= at as usize {
            self.points.resize(at as usize + 1, Point::default());
        }
        let point = &mut self.points[at as usize];
        point.count += count;
        point.sum += u128::from(value) * u128::from(count);
        point.max = point.max.max(value);
    }

    fn halve(&mut self) {
        self.width_ns *= 2;
        let half = self.points.len().div_ceil(2);
        for at in 0..half {
            let mut joined = self.points[2 * at];
            if let Some(other) = self.points.get(2 * at + 1) {
                joined.count += other.count;
                joined.sum += other.sum;
                joined.max = joined.max.max(other.max);
            }
            self.points[at] = joined;
        }
        self.points.truncate(half);
    }

    /// Returns the series for a result.
    pub fn report(&self) -> SeriesReport {
        SeriesReport {
            from_ns: self.from_ns,
            width_ns: self.width_ns,
            count: self.points.iter().map(|point| point.count).collect(),
            mean: self
                .points
                .iter()
                .map(|point| (point.count > 0).then(|| point.sum as f64 / point.count as f64))
                .collect(),
            max: self.points.iter().map(|point| point.max).collect(),
        }
    }

    /// Returns the mean over all values.
    pub fn mean(&self) -> Option<f64> {
        let count: u64 = self.points.iter().map(|point| point.count).sum();
        let sum: u128 = self.points.iter().map(|point| point.sum).sum();
        (count > 0).then(|| sum as f64 / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_bounded_and_lose_nothing() {
        let mut series = Series::new(5);
        for at in 0..10_000u64 {
            series.add(5 + at * 700_000, at, 2);
        }
        let report = series.report();
        assert!(report.count.len() <= POINTS && report.count.len() > POINTS / 4);
        assert_eq!(report.count.iter().sum::<u64>(), 20_000);
        assert_eq!(report.max.iter().max(), Some(&9_999));
        assert_eq!(series.mean(), Some(4999.5));
        assert_eq!((report.from_ns, report.width_ns % FIRST_NS), (5, 0));
        // The first point holds what came within its width, and nothing else.
        let within = (0..10_000u64).filter(|at| at * 700_000 < report.width_ns).count() as u64;
        assert_eq!((report.count[0], report.max[0]), (2 * within, within - 1));
    }
}
