//! Tests of when requests arrive.

use super::tests::*;
use super::*;
use ftlab_core::config::SizeMix;
use ftlab_core::settings::{Arrival, BurstOps};
use proptest::prelude::*;

#[test]
fn constant_arrivals_are_equally_far_apart() {
    let records = run(&Synthetic { arrival: Arrival::Constant, ..random() });
    assert!(records.windows(2).all(|pair| pair[1].time_ns - pair[0].time_ns == 1000));
}

/// Returns runs of requests whose gaps are short compared with those between bursts.
fn bursts(records: &[Record]) -> Vec<&[Record]> {
    records.chunk_by(|a, b| b.time_ns - a.time_ns < 100_000).collect()
}

#[test]
fn bursts_have_their_length_gap_and_rate() {
    let records = run(&in_bursts([8.0; 2], 1_000_000_000, BurstOps::Mixed));
    let found = bursts(&records);
    let mean = records.len() as f64 / found.len() as f64;
    assert!((mean - 8.0).abs() < 0.2, "{mean}");
    // A geometrically distributed length is 1 with probability 1/8.
    let ones = found.iter().filter(|burst| burst.len() == 1).count() as f64 / found.len() as f64;
    assert!((ones - 0.125).abs() < 0.01, "{ones}");
    let pause: u64 = found.windows(2).map(|p| p[1][0].time_ns - p[0].last().unwrap().time_ns).sum();
    assert!((pause as f64 / (found.len() - 1) as f64 / 1e9 - 1.0).abs() < 0.03);
    let within: u64 = found.iter().map(|b| b.last().unwrap().time_ns - b[0].time_ns).sum();
    assert!((within as f64 / (records.len() - found.len()) as f64 - 1000.0).abs() < 15.0);
    assert!(found.iter().any(|burst| burst.iter().any(|r| r.op != burst[0].op)), "mixed");
}

#[test]
fn bursts_of_one_operation_keep_the_mix() {
    let records = run(&in_bursts([12.0, 2.0], 1_000_000_000, BurstOps::Single));
    let found = bursts(&records);
    assert!(found.iter().all(|burst| burst.iter().all(|r| r.op == burst[0].op)));
    for (op, expected) in [(Op::Read, 12.0), (Op::Write, 2.0), (Op::Trim, 2.0)] {
        let of = found.iter().filter(|burst| burst[0].op == op).count();
        let mean = share_of(&records, op) as f64 / of as f64;
        assert!((mean / expected - 1.0).abs() < 0.05, "{op:?}: {mean}");
    }
    assert!((share_of(&records, Op::Read) as f64 / 200_000.0 - 0.3).abs() < 0.02);
}

#[test]
fn operations_within_a_burst_are_correlated_and_keep_the_mix() {
    let synthetic =
        Synthetic { op_correlation_ppm: 800_000, ..in_bursts([20.0; 2], 1_000_000_000, BurstOps::Mixed) };
    let records = run(&synthetic);
    assert!((share_of(&records, Op::Read) as f64 / 200_000.0 - 0.3).abs() < 0.02);
    let found = bursts(&records);
    let pairs = found.iter().flat_map(|burst| burst.windows(2)).filter(|pair| pair[0].op == Op::Read);
    let (mut reads, mut all) = (0.0, 0.0);
    for pair in pairs {
        reads += f64::from(u8::from(pair[1].op == Op::Read));
        all += 1.0;
    }
    // The operation is kept, or the same one is drawn by chance: 0.8 + 0.2 x 0.3.
    assert!((reads / all - 0.86_f64).abs() < 0.01, "{}", reads / all);
    // The first request of a burst is drawn independently.
    let firsts = found.iter().filter(|burst| burst[0].op == Op::Read).count() as f64 / found.len() as f64;
    assert!((firsts - 0.3).abs() < 0.02, "{firsts}");
}

#[test]
fn some_bursts_are_one_request_alone() {
    let isolated_ppm = 750_000;
    let synthetic = Synthetic { isolated_ppm, ..in_bursts([9.0; 2], 1_000_000_000, BurstOps::Single) };
    let records = run(&synthetic);
    let found = bursts(&records);
    // By chance, a ninth of the other bursts, whose mean length is 9, have only one request.
    let ones = found.iter().filter(|burst| burst.len() == 1).count() as f64 / found.len() as f64;
    assert!((ones - (0.75 + 0.25 / 9.0)).abs() < 0.01, "{ones}");
    let mean = records.len() as f64 / found.len() as f64;
    assert!((mean / 3.0 - 1.0).abs() < 0.03, "{mean}");
    assert!((share_of(&records, Op::Read) as f64 / 200_000.0 - 0.3).abs() < 0.02);
}

#[test]
fn sizes_within_a_burst_are_correlated_and_keep_their_mix() {
    let read_sizes = SizeMix::new(vec![(4096, 60), (65_536, 40)]);
    let bursts_of = in_bursts([20.0; 2], 1_000_000_000, BurstOps::Single);
    let records = run(&Synthetic { size_correlation_ppm: 700_000, read_sizes, ..bursts_of });
    let reads: Vec<_> = bursts(&records).into_iter().filter(|burst| burst[0].op == Op::Read).collect();
    let of = |burst: &[Record]| burst.iter().filter(|record| record.size == 4096).count();
    let small = reads.iter().map(|burst| of(burst)).sum::<usize>() as f64;
    let share = small / share_of(&records, Op::Read) as f64;
    assert!((share - 0.6).abs() < 0.02, "{share}");
    let pairs: Vec<_> = reads.iter().flat_map(|burst| burst.windows(2)).collect();
    let same = pairs.iter().filter(|pair| pair[0].size == pair[1].size).count() as f64 / pairs.len() as f64;
    // The size is kept, or the same one is drawn by chance: 0.7 + 0.3 x (0.6^2 + 0.4^2).
    assert!((same - 0.856).abs() < 0.01, "{same}");
    // The first request of a burst is drawn independently.
    let firsts: Vec<_> =
        reads.windows(2).map(|pair| pair[0].last().unwrap().size == pair[1][0].size).collect();
    let same = firsts.iter().filter(|&&same| same).count() as f64 / firsts.len() as f64;
    assert!((same - 0.52).abs() < 0.03, "{same}");
}

/// Returns the correlation of the pairs' values.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (left, right) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let product = mean(&|pair| (pair.0 - left) * (pair.1 - right));
    product / (mean(&|pair| (pair.0 - left).powi(2)) * mean(&|pair| (pair.1 - right).powi(2))).sqrt()
}

fn log_size(record: &Record) -> f64 {
    (record.size as f64).log2()
}

/// Makes settings for bursts of one operation and of 40 requests, of four sizes.
fn persistent(
    size_correlation_ppm: u64,
    size_persistence_ppm: u64,
    burst_size_correlation_ppm: u64,
) -> Synthetic {
    let mix = SizeMix::new(vec![(4096, 40), (8192, 30), (16_384, 20), (65_536, 10)]);
    Synthetic {
        size_correlation_ppm,
        size_persistence_ppm,
        burst_size_correlation_ppm,
        read_sizes: mix.clone(),
        write_sizes: mix,
        ..in_bursts([40.0; 2], 1_000_000_000, BurstOps::Single)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn sizes_persist_over_a_burst_and_keep_their_mix(near in 0u64..=8, far in 0u64..=8, seed in any::<u64>()) {
        let (c, p) = (near as f64 / 10.0, far as f64 / 10.0);
        let synthetic = persistent(near * 100_000, far * 100_000, 0);
        let records = all(Generator::new(&synthetic, 1 << 30, seed));
        let found = bursts(&records);
        for lag in [1usize, 4, 16] {
            let pairs: Vec<_> = found
                .iter()
                .filter(|burst| burst.len() > lag)
                .flat_map(|burst| burst.iter().zip(&burst[lag..]))
                .map(|(a, b)| (log_size(a), log_size(b)))
                .collect();
            let expected = p + (1.0 - p) * c.powi(lag as i32);
            let reached = correlation(&pairs);
            prop_assert!((reached - expected).abs() < 0.05, "lag {lag}: {reached}, not {expected}");
        }
        let small = records.iter().filter(|record| record.size == 4096).count() as f64 / records.len() as f64;
        prop_assert!((small - 0.4).abs() < 0.04, "{small}");
    }
}

#[test]
fn sizes_persist_from_burst_to_burst_of_their_kind() {
    // Reads come alone and writes in bursts, so a burst of writes often follows one of reads.
    let synthetic =
        Synthetic { read_burst_length: 1.0, burst_length: 2.0, ..persistent(0, 900_000, 700_000) };
    let records = run(&synthetic);
    let found = bursts(&records);
    for reads in [true, false] {
        let of_kind: Vec<_> = found.iter().filter(|burst| (burst[0].op == Op::Read) == reads).collect();
        for apart in [1usize, 3] {
            let pairs: Vec<_> = of_kind
                .iter()
                .zip(&of_kind[apart..])
                .map(|(a, b)| (log_size(a.last().unwrap()), log_size(&b[0])))
                .collect();
            let (expected, reached) = (0.9 * 0.7f64.powi(apart as i32), correlation(&pairs));
            assert!((reached - expected).abs() < 0.02, "{apart} apart: {reached}, not {expected}");
        }
    }
}

#[test]
fn without_bursts_or_persistence_the_keys_draw_nothing() {
    let plain = persistent(300_000, 0, 0);
    assert_eq!(run(&plain), run(&Synthetic { burst_size_correlation_ppm: 700_000, ..plain.clone() }));
    let steady = Synthetic { arrival: Arrival::Exponential, ..plain };
    let keys =
        Synthetic { size_persistence_ppm: 800_000, burst_size_correlation_ppm: 700_000, ..steady.clone() };
    assert_eq!(run(&steady), run(&keys));
}

#[test]
fn some_bursts_begin_after_a_pause() {
    let (pause_ppm, pause_ns) = (100_000, 1_000_000_000);
    let bursts = in_bursts([5.0; 2], 100_000, BurstOps::Mixed);
    let records = run(&Synthetic { interarrival_ns: 100, pause_ppm, pause_ns, ..bursts });
    let gaps: Vec<_> = records.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns).collect();
    // A tenth of the 40,000 gaps between bursts last a second on average, the others 0.1 ms.
    let pauses: Vec<_> = gaps.iter().filter(|&&gap| gap > 2_000_000).collect();
    assert!((pauses.len() as f64 / 4000.0 - 1.0).abs() < 0.06, "{}", pauses.len());
    let mean = pauses.iter().map(|&&gap| gap as f64).sum::<f64>() / pauses.len() as f64;
    assert!((mean / 1e9 - 1.0).abs() < 0.06, "{mean}");
}
