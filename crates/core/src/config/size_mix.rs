//! Request sizes with their weights, in the style of fio's `bssplit`.

use super::form::{Bytes, Form, Formed, Misfit};
use super::units::BYTES;
use std::fmt;

/// The largest number of sizes in a mix.
const MOST_SIZES: usize = 64;

/// Sizes and how often each is drawn: "4KiB/60:64KiB/40". Weights are relative to their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeMix {
    /// Sizes in bytes, each with its weight.
    parts: Vec<(u64, u32)>,
}

impl SizeMix {
    /// Makes a mix of `(bytes, weight)`.
    ///
    /// # Panics
    /// If there is no part, or if a size or weight is 0.
    pub fn new(parts: Vec<(u64, u32)>) -> SizeMix {
        assert!(!parts.is_empty() && parts.iter().all(|&(bytes, weight)| bytes > 0 && weight > 0));
        SizeMix { parts }
    }

    /// Makes a mix of one size.
    pub fn single(bytes: u64) -> SizeMix {
        SizeMix::new(vec![(bytes, 1)])
    }

    /// Returns the sizes in bytes with their weights, as stated.
    pub fn parts(&self) -> &[(u64, u32)] {
        &self.parts
    }

    /// Returns the smallest and the largest size, bytes.
    pub fn range(&self) -> (u64, u64) {
        let sizes = || self.parts.iter().map(|part| part.0);
        (sizes().min().expect("not empty"), sizes().max().expect("not empty"))
    }
}

crate::formed!(SizeMix);

impl Formed for SizeMix {
    const FORM: Form = Form {
        takes: "sizes with weights such as \"4KiB/60:64KiB/40\"",
        parts: "`size/weight:size/weight:...`, sizes",
        pattern: "^[^/:]+(/[0-9]+)?(:[^/:]+/[0-9]+)*$",
        canonical: SizeMix::canonical,
    };

    fn read(text: &str, bytes: &mut Bytes) -> Result<SizeMix, Misfit> {
        let mut parts = Vec::new();
        for part in text.split(':') {
            let (size, weight) = match part.trim().split_once('/') {
                Some((size, weight)) => (size.trim(), weight.trim().parse::<u32>().ok().filter(|n| *n > 0)),
                None if text.contains(':') => (part.trim(), None),
                None => (part.trim(), Some(1)),
            };
            let bytes = bytes(size).ok_or(None)?;
            let Some(weight) = weight else {
                let part: String = part.trim().chars().take(40).collect();
                return Err(Some(format!(
                    "{text}: {part} needs a weight, a whole number from 1: \"4KiB/60:64KiB/40\""
                )));
            };
            parts.push((bytes, weight));
        }
        if parts.len() > MOST_SIZES {
            return Err(Some(format!("{} sizes; at most {MOST_SIZES} are taken", parts.len())));
        }
        Ok(SizeMix::new(parts))
    }
}

impl fmt::Display for SizeMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(bytes, weight)) in self.parts.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{}/{weight}", BYTES.format(bytes))?;
        }
        Ok(())
    }
}
