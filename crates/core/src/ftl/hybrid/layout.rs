//! How a hybrid FTL divides the flash into data blocks, log blocks, and erased blocks for merges.
//!
//! Logical block `b` is on LUN `b mod LUNs`, and so are its log pages, so that merges stay within a LUN and
//! sequential data is spread over the LUNs block by block. `ftl.log_blocks` is a share of all erase blocks,
//! rounded up, distributed over the LUNs; the user's space (`ftl.over_provisioning`) is mapped in whole
//! blocks. Each LUN also needs two erased blocks: one for a full merge, and one that a cooperative switch
//! merge may hold meanwhile.

use crate::config::Contradiction;
use crate::ftl::settings::Settings;

/// Number of erased blocks that each LUN keeps for merges.
const ERASED: u64 = 2;

/// Sizes of a hybrid FTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of LUNs.
    pub luns: u32,
    /// Number of erase blocks of each LUN.
    pub blocks_per_lun: u32,
    /// Number of pages of a block.
    pub pages_per_block: u32,
    /// Size of a page in bytes.
    pub page_bytes: u32,
    /// Number of the user's logical pages.
    pub lpns: u32,
    /// Number of log blocks on all LUNs together.
    pub log_blocks: u32,
    /// Largest block issue, in pages, that goes to log blocks under cooperation (CSM_TH of FAST).
    pub csm_threshold: u32,
    /// Whether trims are durable ([`super::trims`]).
    pub power_safe: bool,
}

impl Shape {
    /// Returns the sizes that follow from checked settings.
    pub(crate) fn new(settings: &Settings) -> Shape {
        let flash = &settings.flash;
        let threshold = u64::from(flash.pages_per_block) * settings.ftl.csm_threshold_ppm / 1_000_000;
        Shape {
            luns: flash.luns(),
            blocks_per_lun: flash.blocks_per_lun() as u32,
            pages_per_block: flash.pages_per_block,
            page_bytes: flash.page_bytes,
            lpns: settings.user_pages() as u32,
            log_blocks: log_blocks(settings) as u32,
            csm_threshold: threshold as u32,
            power_safe: settings.ftl.power_safe,
        }
    }

    /// Returns the number of logical blocks; the last may have fewer pages.
    pub(crate) fn logical_blocks(&self) -> u32 {
        self.lpns.div_ceil(self.pages_per_block)
    }

    /// Returns the number of owners: one for each logical page and then, if trims are durable, one for each logical
    /// block's trims.
    pub(crate) fn owners(&self) -> u32 {
        self.lpns + if self.power_safe { self.logical_blocks() } else { 0 }
    }

    /// Returns the number of erase blocks on all LUNs.
    pub(crate) fn blocks(&self) -> u32 {
        self.luns * self.blocks_per_lun
    }

    /// Returns the number of log blocks of a LUN.
    pub(crate) fn logs_of(&self, lun: u32) -> u32 {
        self.log_blocks / self.luns + u32::from(lun < self.log_blocks % self.luns)
    }
}

/// Returns the number of log blocks: the share `ftl.log_blocks` of all erase blocks, rounded up.
fn log_blocks(settings: &Settings) -> u64 {
    let blocks = u128::from(settings.flash.blocks_per_lun()) * u128::from(settings.flash.luns());
    (blocks * u128::from(settings.ftl.log_blocks_ppm)).div_ceil(1_000_000) as u64
}

/// Returns how many blocks the fullest LUN needs, as (data blocks, log blocks).
fn needed(settings: &Settings) -> (u64, u64) {
    let luns = u64::from(settings.flash.luns());
    let data = settings.user_pages().div_ceil(u64::from(settings.flash.pages_per_block)).div_ceil(luns);
    (data, log_blocks(settings).div_ceil(luns))
}

fn fits(settings: &Settings) -> bool {
    let (data, log) = needed(settings);
    let spare = u64::from(settings.ftl.spare_blocks);
    settings.user_pages() > 0 && data + log + ERASED + spare <= settings.flash.blocks_per_lun()
}

/// Checks that the geometry has the blocks that the FTL `name` needs, with at least `least` log blocks on each LUN.
pub(crate) fn check(settings: &Settings, name: &str, least: u64) -> Result<(), Contradiction> {
    let fail = |key, message| Err(Contradiction { key, message });
    let flash = &settings.flash;
    if settings.ftl.logical_page_bytes != flash.page_bytes {
        let message = format!(
            "{name} maps blocks of whole NAND pages; leave this \"page\", or make it as large as flash.page"
        );
        return fail("ftl.logical_page", message);
    }
    if flash.unit_pages() > 1 {
        let message = format!(
            "{name} programs pages one by one at their places in a block; leave this \"page\", or choose a page-mapped \
             ftl.kind"
        );
        return fail("flash.programming", message);
    }
    let luns = u64::from(flash.luns());
    let (blocks, logs) = (flash.blocks_per_lun() * luns, log_blocks(settings));
    if logs / luns < least {
        let percent = (least * luns * 100).div_ceil(blocks);
        let message = format!(
            "that share of {blocks} blocks is {logs} log blocks; {name} needs {least} on each of {luns} {}s: \
             give at least {percent}%",
            flash.lun_name()
        );
        return fail("ftl.log_blocks", message);
    }
    if fits(settings) {
        return Ok(());
    }
    let mut more = settings.clone();
    let percent = (settings.ftl.over_provisioning_ppm / 10_000 + 1..100).find(|percent| {
        more.ftl.over_provisioning_ppm = percent * 10_000;
        fits(&more)
    });
    let (data, log) = needed(settings);
    let advice = percent.map_or(String::new(), |percent| format!("withhold {percent}%, lower "));
    let advice = if advice.is_empty() { "lower ".into() } else { advice };
    let spare = match settings.ftl.spare_blocks {
        0 => String::new(),
        spare => format!(", {spare} spare ones (ftl.spare_blocks)"),
    };
    let message = format!(
        "too little is withheld: {name} needs {data} data blocks, {log} log blocks (ftl.log_blocks){spare} and {ERASED} \
         erased ones for merges on each {}, of {} there are; {advice}ftl.log_blocks, or raise \
         flash.blocks_per_plane",
        flash.lun_name(),
        flash.blocks_per_lun()
    );
    fail("ftl.over_provisioning", message)
}
