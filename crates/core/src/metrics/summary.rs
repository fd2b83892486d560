//! Distributions as results show them.

use serde::Serialize;

use super::Histogram;

/// Percentiles of a summary: fio's list.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// A time t(i) of reads, of writes, and of both.
#[derive(Clone, Debug, Serialize)]
pub struct Parts {
    /// Reads.
    pub read: Summary,
    /// Writes.
    pub write: Summary,
    /// Reads and writes.
    pub all: Summary,
}

/// A distribution of times t(i), over a set of n requests (or of whatever else the field names).
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// n.
    pub count: u64,
    /// Sum of t(i) / n; 0 if n = 0.
    pub mean_ns: f64,
    /// Square root of (sum of (t(i) - mean)^2 / n).
    pub stddev_ns: f64,
    /// Least t(i).
    pub min_ns: u64,
    /// Greatest t(i).
    pub max_ns: u64,
    /// At p (fio's notation, `99.000000`): the ceil(n p / 100)-th smallest t(i), as the midpoint of its bin,
    /// but within min and max: at most 1/128 off; none if n = 0.
    pub percentile_ns: Percentiles,
    /// The bins, with `results.histograms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Bins>,
}

/// Percentile (fio's notation, "99.000000") to value, in ascending order.
#[derive(Clone, Debug)]
pub struct Percentiles(pub Vec<(f64, u64)>);

impl Serialize for Percentiles {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(percent, ns)| (format!("{percent:.6}"), ns)))
    }
}

/// A histogram; the histograms of two runs can be added bin by bin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bins {
    /// For each bin that is not empty, in ascending order: its least value, ns, and the number of values it holds. A
    /// bin that begins at `v` is 1 ns wide for `v` up to 127, and 2^(floor(log2 v) - 6) ns wide above.
    pub bins: Vec<(u64, u64)>,
}

impl Summary {
    /// Makes the figures of a histogram; with `bins`, the histogram is included.
    pub fn new(histogram: &Histogram, bins: bool) -> Summary {
        let percentiles = if histogram.count() == 0 { &[][..] } else { &PERCENTILES[..] };
        Summary {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            stddev_ns: histogram.stddev(),
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            percentile_ns: Percentiles(
                percentiles.iter().map(|&percent| (percent, histogram.percentile(percent))).collect(),
            ),
            histogram: bins.then(|| Bins { bins: histogram.bins().collect() }),
        }
    }
}

impl Parts {
    /// Makes the figures of reads, of writes, and of both.
    pub fn new([read, write]: [&Histogram; 2], bins: bool) -> Parts {
        let mut all = read.clone();
        all.merge(write);
        let [read, write, all] = [read, write, &all].map(|histogram| Summary::new(histogram, bins));
        Parts { read, write, all }
    }
}
