//! The keys of the write buffer.

use crate::config::section::{bytes, share};
use crate::config::{Contradiction, Ignored, choice, section};

choice! {
    /// `device.write_buffer_policy`.
    pub enum Policy {
        /// the page that has been in the buffer longest
        Fifo = "fifo",
        /// the least recently written page
        Lru = "lru",
        /// all pages of the logical block, as large as a reclaim unit (ftl.reclaim_unit), that has most pages in the
        /// buffer
        Block = "block",
        /// all pages in the buffer, in ascending order of their numbers
        Sorted = "sorted",
        /// as fifo; when the power of a live device is cut, a seed draws which unflushed writes persist, sector by
        /// sector
        Adversarial = "adversarial",
    }
}

section! {
    /// The write buffer.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// RAM of the device that holds written pages until they are on flash; 0B: none.
        bytes: u64 = "device.write_buffer", bytes(0, 1 << 40), "0B";
        /// Which pages of the buffer go to the flash first.
        policy: Policy = "device.write_buffer_policy", "fifo";
        /// Share of the buffer in use above which pages begin to go to the flash.
        high_ppm: u64 = "device.write_buffer_high", share(0, 1_000_000), "80%";
        /// Share of the buffer in use below which that ends.
        low_ppm: u64 = "device.write_buffer_low", share(0, 1_000_000), "60%";
        /// How far the device reads on, into RAM, where reads go on where an earlier one ended.
        read_ahead: u64 = "device.read_ahead", bytes(0, 1 << 30), "0B";
        /// Whether a power cut leaves all that was acknowledged; flushes and writes with FUA then wait for no flash.
        protected: bool = "device.power_loss_protection", "false";
    }
}

/// What the buffer knows about the device around it.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// Bytes of a logical page.
    pub page_bytes: u32,
    /// Number of logical pages that fill a NAND page.
    pub unit: u32,
    /// Number of logical pages that fill an erase block.
    pub block: u32,
    /// Number of logical pages of the device.
    pub pages: u32,
    /// Number of LUNs.
    pub luns: u32,
    /// Whether the FTL chooses the LUN of a page only when the page is written.
    pub dynamic: bool,
    /// Whether the rest of a page that was written in part is read from flash.
    pub completes: bool,
}

impl Settings {
    /// Whether there is a write buffer.
    pub fn on(&self) -> bool {
        self.bytes > 0
    }

    /// Whether the device reads ahead.
    pub fn reads_ahead(&self) -> bool {
        self.read_ahead > 0
    }

    /// Whether commands may be answered from RAM.
    pub fn any(&self) -> bool {
        self.on() || self.reads_ahead()
    }

    /// Whether there is a buffer, and what it holds outlasts a power cut.
    pub fn protects(&self) -> bool {
        self.on() && self.protected
    }

    /// Collects the keys without effect, with the reason.
    pub(crate) fn ignored(&self, found: &mut Ignored) {
        let keys = [
            "device.write_buffer_policy",
            "device.write_buffer_high",
            "device.write_buffer_low",
            "device.power_loss_protection",
        ];
        found.unless(self.on(), &keys, "device.write_buffer = \"0B\"");
    }

    /// Checks that the buffer, if there is one, has room for a page, and that its lower bound is not above its upper
    /// one.
    pub(crate) fn check(&self, logical_page_bytes: u32) -> Result<(), Contradiction> {
        let wrong = |key, message| Err(Contradiction { key, message });
        if self.reads_ahead() && self.read_ahead < u64::from(logical_page_bytes) {
            let message =
                format!("it is less than a logical page of {logical_page_bytes} B (ftl.logical_page)");
            return wrong("device.read_ahead", message);
        }
        if self.on() && self.bytes < u64::from(logical_page_bytes) {
            let message = format!(
                "the buffer is smaller than a logical page of {logical_page_bytes} B (ftl.logical_page)"
            );
            return wrong("device.write_buffer", message);
        }
        if self.on() && self.low_ppm > self.high_ppm {
            return wrong("device.write_buffer_low", "it is above device.write_buffer_high".into());
        }
        Ok(())
    }
}
