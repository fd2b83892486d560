//! What results hold only when asked (`[results]`).

mod common;

use common::{checked, pages, settings};
use ftlab_core::workload::{Op, Record};

/// Reads and writes over 64 pages, faster than the device at times.
fn trace() -> Vec<Record> {
    let op = |at: u64| if at % 3 == 0 { Op::Write } else { Op::Read };
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
