//! What follows from the geometry of the flash.

use super::Settings;
use crate::flash::parallel::Spread;

impl Settings {
    /// Logical pages the user may address: the raw capacity less over-provisioning, rounded down to
    /// whole pages or erase blocks.
    pub fn user_pages(&self) -> u64 {
        let logical = u128::from(self.flash.raw_bytes()) / u128::from(self.ftl.logical_page_bytes);
        let pages = (logical * u128::from(1_000_000 - self.ftl.over_provisioning_ppm) / 1_000_000) as u64;
        let per_page = u64::from(self.flash.page_bytes / self.ftl.logical_page_bytes);
        let step = if self.ftl.whole_blocks { per_page * u64::from(self.flash.pages_per_block) } else { 1 };
        pages / step * step
    }

    /// Bytes of a translation unit: what the mapping reads and writes on flash as one. The NAND page
    /// unless the FTL has smaller ones.
    pub fn unit_bytes(&self) -> u32 {
        crate::ftl::unit_bytes(self)
    }

    /// Whether writes choose their block by its speed: the device's scheduler does, and blocks differ.
    pub fn allocates_by_speed(&self) -> bool {
        self.flash.variation.is_some() && crate::device::sched::by_speed(&self.device.scheduler)
    }

    /// Bytes the user may address.
    pub fn user_bytes(&self) -> u64 {
        self.user_pages() * u64::from(self.ftl.logical_page_bytes)
    }

    /// How pages are spread over the units.
    pub fn spread(&self) -> Spread {
        Spread::new(&self.flash, self.ftl.allocation)
    }
}
