//! What follows from the geometry of the flash.

use super::{Flash, Settings};
use crate::flash::parallel::{MultiPlane, Parallel, Spread};

impl Flash {
    /// Chips in the device.
    pub fn chips(&self) -> u32 {
        self.channels * self.chips_per_channel
    }

    /// Erase blocks in one chip.
    pub fn blocks_per_chip(&self) -> u64 {
        u64::from(self.dies_per_chip) * u64::from(self.planes_per_die) * u64::from(self.blocks_per_plane)
    }

    /// Units in one chip: what the FTL can direct a page to, see [`crate::flash::parallel`].
    pub fn units_per_chip(&self) -> u32 {
        match self.parallel {
            Parallel { multi_plane: MultiPlane::Off, interleave: false, .. } => 1,
            Parallel { multi_plane: MultiPlane::Off, .. } => self.dies_per_chip,
            _ => self.dies_per_chip * self.planes_per_die,
        }
    }

    /// Units in the device.
    pub fn units(&self) -> u32 {
        self.chips() * self.units_per_chip()
    }

    /// Erase blocks in one unit.
    pub fn blocks_per_unit(&self) -> u64 {
        self.blocks_per_chip() / u64::from(self.units_per_chip())
    }

    /// What a unit is, in words.
    pub fn unit_name(&self) -> &'static str {
        match self.parallel {
            Parallel { multi_plane: MultiPlane::Off, interleave: false, .. } => "chip",
            Parallel { multi_plane: MultiPlane::Off, .. } => "die",
            _ => "plane",
        }
    }

    /// NAND pages in the device.
    pub fn pages(&self) -> u64 {
        u64::from(self.chips()) * self.blocks_per_chip() * u64::from(self.pages_per_block)
    }

    /// Bytes in the device, before over-provisioning.
    pub fn raw_bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// Bus time of `bytes`, ns, rounded to the nearest (half up).
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        (bytes * self.transfer_ps + 500) / 1000
    }
}

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
