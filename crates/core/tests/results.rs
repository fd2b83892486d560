//! Parts that a result has only on request (`[results]`).

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::flash::ByCause;
use ftlab_core::metrics::Report;
use ftlab_core::settings::{Results, Settings};
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record};

/// Makes reads and writes over 64 pages, sometimes faster than the device.
fn trace() -> Vec<Record> {
    let op = |at: u64| if at.is_multiple_of(3) { Op::Write } else { Op::Read };
    (0..600u64).map(|at| pages(at * 90_000, op(at), 4096, at * 7 % 64, 1 + (at % 2) as u32 as u64)).collect()
}

#[test]
fn histograms_hold_every_request_and_are_there_when_asked() {
    let mut settings = settings();
    let plain = checked(&settings, trace()).0;
    assert!(plain.latency.all.histogram.is_none());
    settings.results.histograms = true;
    let report = checked(&settings, trace()).0;
    for parts in [&report.latency, &report.wait, &report.access] {
        for summary in [&parts.read, &parts.write, &parts.all] {
            let bins = &summary.histogram.as_ref().unwrap().bins;
            assert_eq!(bins.iter().map(|bin| bin.1).sum::<u64>(), summary.count);
            assert!(bins.is_sorted_by(|a, b| a.0 < b.0) && bins.iter().all(|bin| bin.1 > 0));
            let (least, most) = (bins[0].0, bins.last().unwrap().0);
            assert!(
                least <= summary.min_ns && most <= summary.max_ns && summary.max_ns - most <= most / 64 + 1
            );
        }
        let [read, write, all] =
            [&parts.read, &parts.write, &parts.all].map(|s| s.histogram.clone().unwrap().bins);
        let mut merged = std::collections::BTreeMap::new();
        read.into_iter().chain(write).for_each(|(lower, count)| *merged.entry(lower).or_insert(0) += count);
        assert_eq!(merged.into_iter().collect::<Vec<_>>(), all);
    }
}

/// Makes more writes than the flash holds, in random order, so that garbage is collected.
fn overwrites(settings: &Settings) -> Vec<Record> {
    let pages_ = settings.user_pages();
    let mut at = 1u64;
    let mut next = || {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        at >> 33
    };
    (0..4 * pages_)
        .map(|number| {
            let op = if next() % 4 == 0 { Op::Read } else { Op::Write };
            // Two thirds of the requests go to a quarter of the pages.
            let region = if next() % 3 == 0 { pages_ } else { pages_ / 4 };
            pages(number * 400_000, op, 4096, next() % region, 1)
        })
        .collect()
}

#[test]
fn series_add_up_to_the_totals() {
    let mut settings = settings();
    settings.flash.blocks_per_plane = 40;
    settings.ftl.over_provisioning_ppm = 250_000;
    settings.ftl.mapping_cache_bytes = Some(2048);
    settings.ftl.background_flush = true;
    let trace = overwrites(&settings);
    let plain = checked(&settings, trace.clone()).0;
    assert!(plain.series.is_none() && plain.erase_map.is_none() && plain.miss_curve.is_none());
    settings.results = Results { histograms: false, series: true, erase_map: true, miss_curve: true };
    let report = checked(&settings, trace).0;
    assert_eq!(report.latency.all.mean_ns, plain.latency.all.mean_ns, "looking changes nothing");
    let series = report.series.as_ref().unwrap();
    let intervals = series.host_pages.len() as u64;
    assert!((128..=256).contains(&intervals));
    assert!((intervals - 1) * series.width_ns <= report.elapsed_ns);
    for (over_time, total) in [
        (&series.reads, &report.flash.reads),
        (&series.programs, &report.flash.programs),
        (&series.erases, &report.flash.erases),
    ] {
        assert_eq!(ByCause::new(|cause| over_time[cause].iter().sum()), *total);
        assert!(over_time.values().flatten().any(|&count| count > 0));
    }
    let host = series.host_pages.iter().sum::<u64>();
    assert_eq!(host as f64 * report.waf.total.unwrap(), report.flash.programs.total() as f64);
    for (counts, means, summary) in [
        (&series.requests.read, &series.latency_mean_ns.read, &report.latency.read),
        (&series.requests.write, &series.latency_mean_ns.write, &report.latency.write),
    ] {
        assert_eq!(counts.iter().sum::<u64>(), summary.count);
        let total: f64 = counts.iter().zip(means).map(|(&n, mean)| n as f64 * mean.unwrap_or(0.0)).sum();
        assert!((total / summary.count as f64 / summary.mean_ns - 1.0).abs() < 1e-9);
    }
    assert_eq!(series.hits.iter().sum::<u64>(), report.mapping.hits);
    assert_eq!(series.misses.iter().sum::<u64>(), report.mapping.misses);
    let map = report.erase_map.as_ref().unwrap();
    assert_eq!((map.unit, map.blocks_per_cell, map.max.len(), map.max[0].len()), ("chip", 1, 1, 40));
    assert_eq!(map.max[0].iter().max(), Some(&report.wear.max));
    assert!((map.mean[0].iter().sum::<f64>() / 40.0 - report.wear.mean).abs() < 1e-9 && report.wear.max > 0);
}

/// Runs a trace without checks.
fn measured(settings: &Settings, trace: Vec<Record>) -> Report {
    run(settings, &mut trace.into_iter(), &mut (), false).expect("the trace has no faults")
}

/// The curve of a run predicts the misses that an LRU cache of single entries, of any size, would have.
#[test]
fn the_miss_curve_is_what_caches_of_those_sizes_measure() {
    let mut settings = settings();
    settings.flash.blocks_per_plane = 40;
    settings.ftl.over_provisioning_ppm = 250_000;
    settings.ftl.own.dftl.replacement = "lru".to_owned();
    settings.ftl.mapping_cache_bytes = Some(1024);
    settings.results.miss_curve = true;
    let trace = overwrites(&settings);
    let curves = measured(&settings, trace.clone()).miss_curve.unwrap();
    assert_eq!((curves.entries.item_bytes, curves.entries.sampling_rate), (8, 1.0));
    let mut compared = 0;
    for (&bytes, ratio) in curves.entries.capacity_bytes.iter().zip(&curves.entries.miss_ratio) {
        if bytes % 512 != 504 || bytes < 500 {
            continue;
        }
        settings.ftl.mapping_cache_bytes = Some(bytes);
        let mapping = measured(&settings, trace.clone()).mapping;
        assert_eq!(mapping.hits + mapping.misses, curves.lookups);
        let measured = mapping.misses as f64 / curves.lookups as f64;
        assert!((measured - ratio).abs() < 1e-12, "{bytes}: {measured} against {ratio}");
        compared += 1;
    }
    assert!(compared >= 5, "{compared}");
    settings.ftl.kind = "page".into();
    assert!(measured(&settings, trace).miss_curve.is_none(), "the whole map in RAM has no cache");
}

/// The report names the busiest part of the device: a slow bus rather than the chips behind it.
#[test]
fn the_bottleneck_is_named() {
    for (transfer_ps, name) in [(0, "chip"), (500_000, "channel 0")] {
        let mut settings = settings();
        settings.ftl.kind = "page".into();
        settings.flash.chips_per_channel = 4;
        settings.device.queue_depth = 8;
        settings.flash.transfer_ps = transfer_ps;
        let trace: Vec<_> = (0..200).map(|at| pages(0, Op::Write, 4096, at, 1)).collect();
        let found = checked(&settings, trace).0.utilization.bottleneck.expect("something is busy");
        assert!(found.name.starts_with(name), "{}", found.name);
    }
}
