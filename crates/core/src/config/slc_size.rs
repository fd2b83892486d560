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
