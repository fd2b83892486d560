//! Address ranges of the devices (disks, volumes, files) that one trace names.

use crate::fields::{Trouble, shown};
use rustc_hash::FxHashMap;

/// Bytes from the start of one device of a trace to the start of the next: 64 TiB.
pub const DEVICE_STRIDE: u64 = 1 << 46;

/// Gives each device its own range, in order of first appearance.
pub(crate) struct Devices {
    /// Bytes from the start of one device to the start of the next.
    stride: u64,
    last: Box<[u8]>,
    last_base: u64,
    bases: FxHashMap<Box<[u8]>, u64>,
    /// Names of up to eight devices, for the note.
    names: Vec<String>,
    /// Whether a request of the first device ended beyond the stride.
    first_is_long: bool,
}

impl Default for Devices {
    fn default() -> Devices {
        Devices::spaced(DEVICE_STRIDE)
    }
}

impl Devices {
    /// Makes ranges of this many bytes.
    pub(crate) fn spaced(stride: u64) -> Devices {
        Devices {
            stride,
            last: Box::default(),
            last_base: 0,
            bases: FxHashMap::default(),
            names: Vec::new(),
            first_is_long: false,
        }
    }

    /// Returns the size of a range, for people.
    fn range(&self) -> String {
        match self.stride {
            large if large >= 1 << 40 => format!("{} TiB", large >> 40),
            small => format!("{} MiB", small >> 20),
        }
    }

    /// Returns the trace-wide address of `offset` on the device named `key`.
    ///
    /// # Errors
    /// If a device does not fit into its range while there are others, or there are too many devices.
    #[inline]
    pub(crate) fn place(&mut self, key: &[u8], offset: u64, size: u64) -> Result<u64, Trouble> {
        if *self.last != *key || self.bases.is_empty() {
            self.select(key)?;
        }
        if offset >= self.stride || self.stride - offset < size {
            self.long_request(offset, size)?;
        }
        Ok(self.last_base + offset)
    }

    #[cold]
    fn long_request(&mut self, offset: u64, size: u64) -> Result<(), Trouble> {
        if self.bases.len() > 1 {
            return Err(Trouble::Line(format!(
                "{size} B at byte {offset} of device {} do not fit into the {} that each device \
                 of a trace of several gets",
                shown(&self.last),
                self.range()
            )));
        }
        self.first_is_long = true;
        Ok(())
    }

    fn select(&mut self, key: &[u8]) -> Result<(), Trouble> {
        self.last_base = match self.bases.get(key) {
            Some(&base) => base,
            None => self.add(key)?,
        };
        if self.last.len() == key.len() {
            self.last.copy_from_slice(key);
        } else {
            self.last = key.into();
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8]) -> Result<u64, Trouble> {
        let count = self.bases.len() as u64;
        if count > u64::MAX / self.stride {
            return Err(Trouble::Input(format!("more than {count} devices in one trace")));
        }
        if count == 1 && self.first_is_long {
            return Err(Trouble::Input(format!(
                "a second device ({}) appears, and the first does not fit into the {} that each \
                 device of a trace of several gets",
                shown(key),
                self.range()
            )));
        }
        let base = count * self.stride;
        self.bases.insert(key.into(), base);
        if self.names.len() < 8 {
            self.names.push(shown(key));
        }
        Ok(base)
    }

    /// Returns a note about the trace's addresses, if it names several devices.
    pub(crate) fn notes(&self) -> Vec<String> {
        if self.bases.len() < 2 {
            return Vec::new();
        }
        let more = if self.bases.len() > self.names.len() { ", ..." } else { "" };
        vec![format!(
            "{} devices ({}{more}): each has its own range of {}, in this order",
            self.bases.len(),
            self.names.join(", "),
            self.range()
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_disjoint_and_in_order_of_appearance() {
        let mut devices = Devices::default();
        assert_eq!(devices.place(b"3", 4096, 512).unwrap(), 4096);
        assert!(devices.notes().is_empty());
        assert_eq!(devices.place(b"0", 4096, 512).unwrap(), DEVICE_STRIDE + 4096);
        assert_eq!(devices.place(b"3", 0, 512).unwrap(), 0);
        assert_eq!(devices.place(b"0", DEVICE_STRIDE - 512, 512).unwrap(), 2 * DEVICE_STRIDE - 512);
        assert!(devices.place(b"0", DEVICE_STRIDE - 512, 513).is_err());
        assert!(devices.notes()[0].starts_with("2 devices (3, 0)"));
    }

    #[test]
    fn ranges_may_be_smaller() {
        let mut devices = Devices::spaced(64 << 20);
        assert_eq!([b"a", b"b", b"a"].map(|key| devices.place(key, 5, 1).unwrap()), [5, (64 << 20) + 5, 5]);
        assert!(devices.place(b"b", 64 << 20, 1).is_err());
        assert!(devices.notes()[0].ends_with("each has its own range of 64 MiB, in this order"));
    }

    #[test]
    fn one_device_may_be_larger_than_its_range() {
        let mut devices = Devices::default();
        assert_eq!(devices.place(b"", 1 << 60, 512).unwrap(), 1 << 60);
        assert!(matches!(devices.place(b"1", 0, 512), Err(Trouble::Input(_))));
    }
}
