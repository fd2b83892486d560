//! A latency histogram with bins of bounded relative width; mergeable, never saturating.

/// Sub-buckets per power of two: fio's layout (64), relative error of a bin's midpoint at most 1/128.
const SUB_BITS: u32 = 6;
const SUB: usize = 1 << SUB_BITS;
/// Number of bins: more than there are, and a power of two, so that no index needs to be checked.
const BINS: usize = (64 * SUB).next_power_of_two();

/// Counts of values, with exact count, sum, sum of squares, least and greatest.
#[derive(Clone, Debug)]
pub struct Histogram {
    bins: Box<[u64; BINS]>,
    count: u64,
    sum: u128,
    squares: Wide,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let squares = Wide::default();
        Histogram { bins: Box::new([0; BINS]), count: 0, sum: 0, squares, min: u64::MAX, max: 0 }
    }
}

/// A sum of squares: those of a few hundred latencies of years no longer fit into 128 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Wide {
    high: u64,
    low: u128,
}

impl Wide {
    #[inline(always)]
    fn add(&mut self, other: Wide) {
        let (low, carry) = self.low.overflowing_add(other.low);
        *self = Wide { high: self.high + other.high + u64::from(carry), low };
    }

    #[inline(always)]
    fn add_square(&mut self, value: u64, count: u64) {
        let square = u128::from(value) * u128::from(value);
        let half = |part: u64| u128::from(part) * u128::from(count);
        let (lower, upper) = (half(square as u64), half((square >> 64) as u64));
        self.add(Wide { high: 0, low: lower });
        self.add(Wide { high: (upper >> 64) as u64, low: upper << 64 });
    }

    /// Returns the sum, if it fits.
    fn exact(self) -> Option<u128> {
        (self.high == 0).then_some(self.low)
    }

    fn approximate(self) -> f64 {
        self.high as f64 * 2f64.powi(128) + self.low as f64
    }
}

#[inline]
fn bin_of(value: u64) -> usize {
    // Values below SUB have a bin each, as if they were of the first power of two that is cut into SUB bins.
    let shift = (value | SUB as u64).ilog2() - SUB_BITS;
    shift as usize * SUB + (value >> shift) as usize
}

/// Returns the least value of a bin.
fn lower_of(bin: usize) -> u64 {
    if bin < SUB { bin as u64 } else { ((SUB + bin % SUB) as u64) << (bin / SUB - 1) }
}

/// Returns the midpoint of a bin.
fn value_of(bin: usize) -> u64 {
    if bin < SUB { bin as u64 } else { lower_of(bin) + ((1u64 << (bin / SUB - 1)) >> 1) }
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Counts a value `count` times.
    #[inline(always)] // for every request
    pub fn add_many(&mut self, value: u64, count: u64) {
        self.bins[bin_of(value) % BINS] += count;
        self.count += count;
        self.sum += u128::from(value) * u128::from(count);
        self.squares.add_square(value, count);
        // Both are rare, and a store is not free.
        if value < self.min && count > 0 {
            self.min = value;
        }
        if value > self.max && count > 0 {
            self.max = value;
        }
    }

    /// Counts all of another histogram's values.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.bins.iter_mut().zip(&*other.bins) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares.add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the exact mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns the standard deviation of the values (of the population); 0 without values.
    pub fn stddev(&self) -> f64 {
        let n = u128::from(self.count);
        if n == 0 {
            return 0.0;
        }
        // n * sum(x^2) - sum(x)^2 in integers where it fits: no cancellation.
        let scaled = self.squares.exact().and_then(|squares| squares.checked_mul(n));
        let variance = match (scaled, self.sum.checked_mul(self.sum)) {
            (Some(scaled), Some(square)) => (scaled - square) as f64 / (n as f64 * n as f64),
            _ => self.squares.approximate() / n as f64 - self.mean() * self.mean(),
        };
        variance.max(0.0).sqrt()
    }

    /// Returns the least value; 0 without values.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Returns the greatest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the least value and the count of each bin that holds a value, in ascending order.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let held = self.bins.iter().enumerate().filter(|&(_, &count)| count > 0);
        held.map(|(bin, &count)| (lower_of(bin), count))
    }

    /// Returns the value, to within 1/128, at or below which `percent` percent of the values lie.
    pub fn percentile(&self, percent: f64) -> u64 {
        // In integers: 99.9 / 100 * 1000 is more than 999 in floating point.
        let ppm = (percent * 10_000.0).round() as u128;
        let rank = ((u128::from(self.count) * ppm).div_ceil(1_000_000) as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return value_of(bin).clamp(self.min(), self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn midpoints_err_by_at_most_a_128th(value: u64) {
            let middle = value_of(bin_of(value));
            prop_assert!(middle.abs_diff(value) as u128 * 128 <= u128::from(value));
        }

        #[test]
        fn agrees_with_sorted_values(values in proptest::collection::vec(0u64..10_000_000, 1..200), split in 0usize..200) {
            let (mut left, mut right) = (Histogram::default(), Histogram::default());
            for (index, &value) in values.iter().enumerate() {
                if index < split { left.add(value) } else { right.add(value) }
            }
            left.merge(&right);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(left.count(), values.len() as u64);
            prop_assert_eq!((left.min(), left.max()), (sorted[0], *sorted.last().unwrap()));
            for percent in [1.0, 50.0, 90.0, 99.9, 100.0] {
                let rank = (values.len() * (percent * 10.0) as usize).div_ceil(1000).max(1);
                let exact = sorted[rank - 1];
                let got = left.percentile(percent);
                prop_assert!(got.abs_diff(exact) * 128 <= exact, "{} against {}", got, exact);
            }
            // A bin begins at its least value and is as wide as results state.
            let mut at = sorted.iter().peekable();
            for (lower, count) in left.bins() {
                let width = if lower < 128 { 1 } else { 1 << (lower.ilog2() - 6) };
                let within = std::iter::from_fn(|| at.next_if(|&&value| value < lower + width)).collect::<Vec<_>>();
                prop_assert!(within.iter().all(|&&value| value >= lower) && within.len() as u64 == count);
            }
            prop_assert!(at.next().is_none());
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / values.len() as f64;
            prop_assert!((left.mean() - mean).abs() <= 1e-9 * mean);
            prop_assert!((left.stddev() - variance.sqrt()).abs() <= 1e-6 * (1.0 + variance.sqrt()));
        }
    }

    /// Regression: the rank was one too high for every multiple of 1,000 values.
    #[test]
    fn one_slow_value_in_a_thousand_is_above_the_99_9th_percentile() {
        let mut histogram = Histogram::default();
        (0..999).for_each(|_| histogram.add(35_000));
        histogram.add(3_500_000);
        assert_eq!(histogram.percentile(99.9).abs_diff(35_000) * 128 / 35_000, 0);
        assert!(histogram.percentile(99.95) > 3_400_000);
    }

    /// Regression: the sum of squares overflowed for latencies of years, which commands of a month each reach.
    #[test]
    fn squares_have_room_for_any_latencies() {
        let (mut one_by_one, mut together) = (Histogram::default(), Histogram::default());
        for value in [u64::MAX, u64::MAX / 3] {
            (0..600).for_each(|_| one_by_one.add(value));
            together.add_many(value, 600);
        }
        one_by_one.merge(&together.clone());
        let (a, b) = (u64::MAX as f64, (u64::MAX / 3) as f64);
        for (histogram, count) in [(one_by_one, 2400), (together, 1200)] {
            assert_eq!(histogram.count(), count);
            assert!((histogram.mean() / ((a + b) / 2.0) - 1.0).abs() < 1e-12);
            assert!((histogram.stddev() / ((a - b) / 2.0) - 1.0).abs() < 1e-6, "{}", histogram.stddev());
        }
    }

    #[test]
    fn empty_is_all_zero() {
        let empty = Histogram::default();
        assert_eq!((empty.min(), empty.max(), empty.percentile(99.0)), (0, 0, 0));
        assert_eq!((empty.mean(), empty.stddev()), (0.0, 0.0));
    }
}
