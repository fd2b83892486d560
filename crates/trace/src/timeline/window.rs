//! The stretch of time that a timeline shows.

use ftlab_core::config::units::{NANOS, QuantityError};

/// A stretch of simulated time: `start_ns..end_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start, ns.
    pub start_ns: u64,
    /// End, ns.
    pub end_ns: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window { start_ns: 0, end_ns: u64::MAX }
    }
}

impl Window {
    /// Parses `START:END`, for example `10ms:20ms`; if START or END is missing, the window is open on that side.
    ///
    /// # Errors
    /// A message that says what is wrong and what to write.
    pub fn parse(text: &str) -> Result<Window, String> {
        let Some((start, end)) = text.split_once(':') else {
            return Err("write START:END, for example 10ms:20ms".into());
        };
        let Window { start_ns, end_ns } = Window::default();
        let window = Window { start_ns: time(start, start_ns)?, end_ns: time(end, end_ns)? };
        if window.start_ns >= window.end_ns {
            return Err("it ends before it begins; write START:END, for example 10ms:20ms".into());
        }
        Ok(window)
    }

    /// Returns the part of a stretch of time that is within the window, if any. An empty stretch is returned unchanged
    /// if it lies within the window.
    pub fn clip(&self, begin_ns: u64, end_ns: u64) -> Option<(u64, u64)> {
        let inside = begin_ns < self.end_ns && (end_ns > self.start_ns || begin_ns >= self.start_ns);
        inside.then(|| (begin_ns.max(self.start_ns), end_ns.min(self.end_ns)))
    }
}

/// Parses a time; returns `open` if the text is empty.
fn time(text: &str, open: u64) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(open);
    }
    NANOS.parse(text).map_err(|error| match error {
        QuantityError::NotANumber => format!("{text} is not a time; write for example 10ms:20ms"),
        QuantityError::Negative => format!("{text} is negative; simulated time begins at 0ns"),
        QuantityError::NoUnit(texts) => format!("{text} has no unit; write {}", texts.join(" or ")),
        QuantityError::Ambiguous(a, b) => format!("{text} is ambiguous; write {a} or {b}"),
        QuantityError::UnknownUnit(name) => {
            format!("unknown unit {name}; the units are {}", NANOS.listed().collect::<Vec<_>>().join(", "))
        }
        QuantityError::NotWhole(counted) => format!("{text} is not a whole number of {counted}"),
        QuantityError::TooLarge => format!("{text} is beyond 64 bits of nanoseconds"),
    })
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn reads_both_open_and_closed_windows() {
        let window = |start_ns, end_ns| Ok(Window { start_ns, end_ns });
        assert_eq!(Window::parse("10ms:20ms"), window(10_000_000, 20_000_000));
        assert_eq!(Window::parse("1.5us:"), window(1_500, u64::MAX));
        assert_eq!(Window::parse(": 2s"), window(0, 2_000_000_000));
        for text in ["10ms", "10:20ms", "20ms:10ms", "1ms:1ms", "-1ms:2ms", "x:y", "1m:2m", "1ms:2ks"] {
            assert!(Window::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn clips_to_its_bounds() {
        let window = Window { start_ns: 10, end_ns: 20 };
        assert_eq!(window.clip(5, 10), None);
        assert_eq!(window.clip(5, 11), Some((10, 11)));
        assert_eq!(window.clip(10, 10), Some((10, 10)));
        assert_eq!(window.clip(19, 25), Some((19, 20)));
        assert_eq!(window.clip(20, 25), None);
        assert_eq!(window.clip(5, 25), Some((10, 20)));
    }
}
