//! Random small devices. Apart from the rest of `common`, which does without other crates.
#![allow(dead_code)]

use ftlab_core::config::Settings;
use ftlab_core::flash::variation::Variation;
use ftlab_core::ftl::check;
use proptest::prelude::*;

use crate::common::settings;

/// Registered FTLs.
pub const KINDS: [&str; 3] = ["page", "dftl", "cdftl"];

/// Registered victim policies.
pub const POLICIES: [&str; 6] = ["greedy", "cost-benefit", "d-choices", "fifo", "random", "windowed-greedy"];

/// Blocks that age quickly.
pub const AGEING: Variation = Variation {
    growth_mean: 0.01,
    growth_stddev: 0.002,
    growth_bound: 3.0,
    fresh_ber: 1e-6,
    ecc_limit: 1e-3,
    sensitivity: 15.0,
    nominal_step: 0.3,
    max_step: 0.6,
    step_decrement: 0.03,
};

/// A geometry, from roomy down to the least number of blocks that is accepted, and a policy.
pub fn device() -> impl Strategy<Value = Settings> {
    let policy = (0usize..6, 1u32..4, 1u32..8, prop_oneof![Just(None), (1u32..4).prop_map(Some)]);
    (geometry(), policy).prop_map(|(mut settings, (gc, choices, window, wear))| {
        settings.ftl.gc = POLICIES[gc].into();
        settings.ftl.gc_choices = choices;
        settings.ftl.gc_window = window;
        // Wear levelling and the choice by speed exclude each other.
        settings.ftl.wear_threshold = wear.filter(|_| !settings.allocates_by_speed());
        settings
    })
}

fn geometry() -> impl Strategy<Value = Settings> {
    let geometry = (1u32..4, 1u32..3, 1u32..5, 3u32..12, 1u32..4, 0u64..40);
    let cache = (0usize..3, prop_oneof![Just(0u64), 1u64..40, 40u64..400], any::<bool>(), any::<bool>());
    (geometry, cache, 1u32..3, any::<bool>()).prop_filter_map(
        "needs more blocks",
        |(
            (channels, ways, slots, pages_per_block, entries, spare),
            (kind, cache, lru, batch),
            reserve,
            vary,
        )| {
            let mut settings = settings();
            settings.ftl.kind = KINDS[kind].into();
            settings.flash.channels = channels;
            settings.flash.chips_per_channel = ways;
            settings.flash.pages_per_block = pages_per_block;
            settings.flash.page_bytes = 512 * slots;
            settings.ftl.logical_page_bytes = 512;
            settings.ftl.entry_bytes = 64 >> entries;
            settings.ftl.gc_free_blocks = reserve;
            settings.ftl.cache_policy = if lru { "lru" } else { "slru" }.into();
            settings.ftl.batch_update = batch;
            if vary {
                // Blocks differ at once and age quickly; under vios they are chosen by speed.
                settings.flash.pe_cycles = 500;
                settings.flash.variation = Some(AGEING);
                if slots == 1 {
                    settings.device.scheduler = "vios".into();
                }
            }
            let least = if kind == 2 { u64::from(settings.flash.page_bytes) } else { 0 };
            settings.ftl.mapping_cache_bytes =
                (cache > 0).then(|| least + cache * u64::from(settings.ftl.entry_bytes));
            settings.ftl.over_provisioning_ppm = 100_000 + spare * 10_000;
            settings.flash.blocks_per_plane = 4;
            while check(&settings).is_err() {
                settings.flash.blocks_per_plane += 1;
                if settings.flash.blocks_per_plane > 60 {
                    return None;
                }
            }
            Some(settings)
        },
    )
}
