//! The size of an SLC cache.

use super::units::BYTES;
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

    /// Reads a size; `bytes` reads the number of bytes of a part. `None`: it is not a size, or states a part twice.
    ///
    /// # Errors
    /// Those of `bytes`.
    pub fn parse<E>(text: &str, bytes: impl Fn(&str) -> Result<u64, E>) -> Result<Option<SlcSize>, E> {
        let mut size = SlcSize { fixed: 0, dynamic: None };
        for part in text.split('+').map(str::trim) {
            let stated = match part.strip_prefix(SlcSize::DYNAMIC).map(str::trim) {
                Some("") => size.dynamic.replace(u64::MAX).is_some(),
                Some(most) if most.starts_with(':') => {
                    size.dynamic.replace(bytes(most[1..].trim())?).is_some()
                }
                _ if !part.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
                    return Ok(None);
                }
                _ => std::mem::replace(&mut size.fixed, bytes(part)?) > 0,
            };
            if stated {
                return Ok(None);
            }
        }
        Ok(Some(size))
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
