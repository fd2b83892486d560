//! How many requests were under way when a trace was recorded, where the recording states that.

/// The name of the column: client requests under way when a request arrived, including itself.
pub(crate) const NAME: &str = "outstanding";

/// How a line of a recording begins that notes what the device was told; no request.
pub const TOLD: &str = "# told";

/// Least number of requests from which anything can be concluded about the clients that made them.
const ENOUGH: u64 = 100;

/// A summary of the values in a column of outstanding requests.
#[derive(Default)]
pub(crate) struct Depth {
    rows: u64,
    sum: u64,
    most: u64,
    told: u64,
}

impl Depth {
    /// Counts a line that notes what the device was told; returns false for any other line.
    pub(crate) fn notes(&mut self, line: &[u8]) -> bool {
        let told = line.starts_with(TOLD.as_bytes());
        self.told += u64::from(told);
        told
    }

    /// Returns how often the device was told something that changed what it did.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Adds the next row's value.
    #[inline]
    pub(crate) fn add(&mut self, outstanding: u64) {
        self.rows += 1;
        self.sum = self.sum.saturating_add(outstanding);
        self.most = self.most.max(outstanding);
    }

    /// Returns a note for people who read the figures.
    pub(crate) fn note(&self) -> Option<String> {
        let mean = self.sum as f64 / self.rows as f64;
        let most = self.most;
        (most > 0).then(|| format!("recorded with {mean:.1} requests under way on average, {most} at most"))
    }

    /// Returns the queue depth if the clients waited for answers, that is, if they had about the same number of
    /// requests under way all the time, rather than a number that varied with the work that came to them.
    pub(crate) fn waited(&self) -> Option<u64> {
        let steady = u128::from(self.sum) * 2 >= u128::from(self.most) * u128::from(self.rows);
        (self.most > 0 && self.rows >= ENOUGH && steady).then_some(self.most)
    }
}
