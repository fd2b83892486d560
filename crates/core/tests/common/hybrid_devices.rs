//! Random small hybrid FTLs. They are separate from the other files of `common`, which need no other crates.

use ftlab_core::ftl::check;
use ftlab_core::settings::Settings;
use proptest::prelude::*;

use crate::common::{AGEING, hybrids, settings};

/// Draws a geometry, from roomy down to the smallest accepted number of blocks and log blocks.
pub fn device() -> impl Strategy<Value = Settings> {
    let geometry = (prop::sample::select(hybrids()), 1u32..4, 1u32..3, 1u32..9, 1u32..24, 0u64..40);
    (geometry, 0u64..30, 0u64..100, any::<bool>(), 1u32..3).prop_filter_map(
        "does not fit",
        |((kind, channels, ways, pages, blocks, spare), logs, threshold, vary, dies)| {
            let mut settings = settings();
            settings.ftl.kind = kind.into();
            settings.flash.channels = channels;
            settings.flash.chips_per_channel = ways;
            settings.flash.dies_per_chip = dies;
            settings.flash.parallel.interleave = dies > 1;
            settings.flash.pages_per_block = pages;
            settings.flash.page_bytes = 512;
            settings.ftl.logical_page_bytes = 512;
            settings.flash.blocks_per_plane = blocks;
            settings.ftl.log_blocks_ppm = 1 + logs * 10_000;
            settings.ftl.csm_threshold_ppm = threshold * 10_000 + 9_999;
            settings.ftl.over_provisioning_ppm = spare * 10_000;
            if vary {
                settings.flash.pe_cycles = 500;
                settings.flash.variation = Some(AGEING);
            }
            while check(&settings).is_err_and(|fault| fault.key == "ftl.log_blocks") {
                settings.ftl.log_blocks_ppm += 10_000;
            }
            while check(&settings).is_err() {
                settings.ftl.over_provisioning_ppm += 5_000;
                if settings.ftl.over_provisioning_ppm > 990_000 {
                    return None;
                }
            }
            Some(settings)
        },
    )
}
