//! The size of an SLC cache.

use crate::config::form::{Bytes, Form, Formed, Misfit};
use crate::config::units::BYTES;
use std::fmt;

/// The size of an SLC cache: "6GiB", "dynamic", "6GiB+dynamic", "6GiB+dynamic:100GiB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcSize {
    /// Bytes of data for which there is always room.
    pub fixed: u64,
    /// The largest number of bytes of data beyond these that erased blocks may take; `u64::MAX`: as many as they can.
    /// `None`: none.
    pub dynamic: Option<u64>,
}

impl SlcSize {
    /// The word for the part that erased blocks take.
    pub const DYNAMIC: &'static str = "dynamic";
}

crate::formed!(SlcSize);

impl Formed for SlcSize {
    const FORM: Form = Form {
        takes: "a size such as \"6GiB\", \"dynamic\", or both: \"6GiB+dynamic\"",
        parts: "`size`, `dynamic`, `dynamic:size`, or both with `+`, sizes",
        pattern: "^([^+:]+|dynamic(:[^+:]+)?|[^+:]+\\+dynamic(:[^+:]+)?)$",
        canonical: SlcSize::canonical,
    };

    /// Reads a size; one that states a part twice is none.
    fn read(text: &str, bytes: &mut Bytes) -> Result<SlcSize, Misfit> {
        let mut size = SlcSize { fixed: 0, dynamic: None };
        for part in text.split('+').map(str::trim) {
            let stated = match part.strip_prefix(SlcSize::DYNAMIC).map(str::trim) {
                Some("") => size.dynamic.replace(u64::MAX).is_some(),
                Some(most) if most.starts_with(':') => {
                    size.dynamic.replace(bytes(most[1..].trim()).ok_or(None)?).is_some()
                }
                _ if !part.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
                    return Err(None);
                }
                _ => std::mem::replace(&mut size.fixed, bytes(part).ok_or(None)?) > 0,
            };
            if stated {
                return Err(None);
            }
        }
        Ok(size)
    }
}

impl fmt::Display for SlcSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fixed > 0 {
            write!(f, "{}{}", BYTES.format(self.fixed), if self.dynamic.is_some() { "+" } else { "" })?;
        }
        match self.dynamic {
            None => Ok(()),
            Some(u64::MAX) => f.write_str(SlcSize::DYNAMIC),
            Some(most) => write!(f, "{}:{}", SlcSize::DYNAMIC, BYTES.format(most)),
        }
    }
}
