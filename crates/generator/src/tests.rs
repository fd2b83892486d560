//! Tests of what the generator draws.

use super::*;
use ftlab_core::config::SizeMix;
use ftlab_core::settings::{Arrival, BurstOps};
use proptest::prelude::*;

pub(super) fn settings(pattern: Pattern) -> Synthetic {
    Synthetic {
        pattern,
        read_ppm: 300_000,
        trim_ppm: 50_000,
        read_sizes: SizeMix::single(8192),
        write_sizes: SizeMix::single(8192),
        interarrival_ns: 1000,
        ..Synthetic::new(200_000)
    }
}

/// Makes settings for bursts with these mean lengths (of reads, and of all other operations); `burst_ops` says whether
/// all requests of a burst have the same operation.
pub(super) fn in_bursts(lengths: [f64; 2], burst_gap_ns: u64, burst_ops: BurstOps) -> Synthetic {
    let [read_burst_length, burst_length] = lengths;
    Synthetic {
        arrival: Arrival::Bursts,
        burst_length,
        read_burst_length,
        burst_gap_ns,
        burst_ops,
        ..random()
    }
}

pub(super) fn random() -> Synthetic {
    settings(Pattern::Random)
}

pub(super) fn all(mut generator: Generator) -> Vec<Record> {
    std::iter::from_fn(|| Source::next(&mut generator).unwrap()).collect()
}

#[test]
fn shares_and_rate_are_as_set() {
    let records = all(Generator::new(&random(), 1 << 30, 1));
    assert_eq!(records.len(), 200_000);
    let share = |op| records.iter().filter(|record| record.op == op).count() as f64 / 200_000.0;
    assert!((share(Op::Read) - 0.30).abs() < 0.005, "{}", share(Op::Read));
    assert!((share(Op::Trim) - 0.05).abs() < 0.003, "{}", share(Op::Trim));
    assert_eq!(records[0].time_ns, 0);
    let mean = records.last().unwrap().time_ns as f64 / 199_999.0;
    assert!((mean - 1000.0).abs() < 10.0, "{mean}");
    // The standard deviation of an exponential distribution equals its mean.
    let squares: f64 =
        records.windows(2).map(|pair| ((pair[1].time_ns - pair[0].time_ns) as f64 - mean).powi(2)).sum();
    let deviation = (squares / 199_999.0).sqrt();
    assert!((deviation - 1000.0).abs() < 20.0, "{deviation}");
}

#[test]
fn small_gaps_keep_their_mean() {
    let records = all(Generator::new(&Synthetic { interarrival_ns: 1, ..random() }, 1 << 30, 1));
    let mean = records.last().unwrap().time_ns as f64 / 199_999.0;
    assert!((mean - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn no_gap_means_time_zero() {
    let records = all(Generator::new(&Synthetic { interarrival_ns: 0, ..random() }, 1 << 30, 1));
    assert!(records.iter().all(|record| record.time_ns == 0));
}

#[test]
fn random_is_uniform_over_the_region() {
    let region = Some(64 * 8192 + 4096);
    let records = all(Generator::new(&Synthetic { region, ..random() }, 1 << 30, 7));
    let mut counts = [0u32; 64];
    for record in &records {
        assert_eq!((record.offset % 8192, record.size), (0, 8192));
        counts[(record.offset / 8192) as usize] += 1;
    }
    // Chi-squared with 63 degrees of freedom: 103 is its 99.9 % point.
    let expected = 200_000.0 / 64.0;
    let chi: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    assert!(chi < 103.4, "{chi}");
}

#[test]
fn sequential_starts_again_at_the_end() {
    let region = Some(3 * 8192);
    let records =
        all(Generator::new(&Synthetic { region, requests: 7, ..settings(Pattern::Sequential) }, 1 << 30, 1));
    let offsets: Vec<_> = records.iter().map(|record| record.offset / 8192).collect();
    assert_eq!(offsets, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn zipf_follows_its_exponent_and_is_scattered() {
    let region = Some(1000 * 8192);
    let records = all(Generator::new(&Synthetic { region, ..settings(Pattern::Zipf) }, 1 << 30, 3));
    let mut counts = vec![(0u32, 0usize); 1000];
    for record in &records {
        let slot = (record.offset / 8192) as usize;
        counts[slot] = (counts[slot].0 + 1, slot);
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let harmonic: f64 = (1..=1000).map(|k| f64::from(k).powf(-1.1)).sum();
    for (rank, tolerance) in [(1, 0.02), (2, 0.03), (10, 0.06)] {
        let expected = 200_000.0 * f64::from(rank).powf(-1.1) / harmonic;
        let got = f64::from(counts[rank as usize - 1].0);
        assert!((got / expected - 1.0).abs() < tolerance, "rank {rank}: {got} against {expected}");
    }
    // The ten hottest slots are not neighbours.
    let mut hottest: Vec<_> = counts[..10].iter().map(|&(_, slot)| slot).collect();
    hottest.sort_unstable();
    assert!(hottest.windows(2).filter(|pair| pair[1] - pair[0] < 5).count() <= 2, "{hottest:?}");
    assert!(hottest[9] - hottest[0] > 500, "{hottest:?}");
}

#[test]
fn seeds_decide() {
    let make = |seed| all(Generator::new(&settings(Pattern::Zipf), 1 << 30, seed));
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}

#[test]
fn the_near_share_returns_to_the_ranges_of_the_eight_before() {
    let range = 1 << 20;
    let near = |near_ppm| {
        let records = run(&Synthetic { near_ppm, near_range: range, ..random() });
        let ranges: Vec<_> = records.iter().map(|record| record.offset / range).collect();
        let again = (8..ranges.len()).filter(|&at| ranges[at - 8..at].contains(&ranges[at])).count();
        again as f64 / (ranges.len() - 8) as f64
    };
    // By chance, a request falls into one of at most eight of 1,024 ranges.
    assert!(near(0) < 8.5 / 1024.0, "{}", near(0));
    for share in [0.25, 0.7] {
        let found = near((share * 1e6) as u64);
        assert!((found - share).abs() < 0.01, "{share}: {found}");
    }
    // With a near share of 100 %, no request leaves the first range, and every slot in that range is drawn.
    let records = run(&Synthetic { near_ppm: ALL, near_range: range, ..random() });
    let first = records[0].offset / range;
    assert!(records.iter().all(|record| record.offset / range == first));
    let slots: std::collections::HashSet<_> = records.iter().map(|record| record.offset).collect();
    assert_eq!(slots.len(), 128);
}

/// A seed gives exactly these requests on every machine: a change here changes every published run. The requests were
/// made with rand_distr 0.5 without its `std_math`, so that its floats are the same everywhere.
#[test]
fn golden() {
    let records = all(Generator::new(&Synthetic { requests: 3, ..random() }, 1 << 30, 1));
    let short: Vec<_> =
        records.iter().map(|record| (record.time_ns, record.op, record.offset / 8192)).collect();
    assert_eq!(short, GOLDEN);
}

const GOLDEN: [(u64, Op, u64); 3] =
    [(0, Op::Write, 70614), (154, Op::Trim, 27917), (494, Op::Write, 126_477)];

pub(super) fn share_of(records: &[Record], op: Op) -> u64 {
    records.iter().filter(|record| record.op == op).count() as u64
}

pub(super) fn run(synthetic: &Synthetic) -> Vec<Record> {
    all(Generator::new(synthetic, 1 << 30, 5))
}

#[test]
fn sizes_come_by_their_weights_for_each_operation() {
    let read_sizes = SizeMix::new(vec![(4096, 60), (65_536, 40)]);
    let write_sizes = SizeMix::new(vec![(2048, 1), (4096, 2), (8192, 1)]);
    let records = run(&Synthetic { read_sizes, write_sizes, ..random() });
    let share = |reads: bool, size| {
        let of = records.iter().filter(|r| (r.op == Op::Read) == reads).collect::<Vec<_>>();
        of.iter().filter(|r| r.size == size).count() as f64 / of.len() as f64
    };
    for (reads, size, expected) in
        [(true, 4096, 0.6), (true, 65_536, 0.4), (false, 2048, 0.25), (false, 4096, 0.5), (false, 8192, 0.25)]
    {
        assert!((share(reads, size) - expected).abs() < 0.006, "{size}: {}", share(reads, size));
    }
    assert!(records.iter().all(|r| r.offset % 2048 == 0 && r.offset + r.size <= 1 << 30));
    // Not all offsets are multiples of the larger sizes: they are aligned to the smallest size, as in fio.
    assert!(records.iter().any(|r| r.size == 65_536 && r.offset % 65_536 == 2048));
}

#[test]
fn alignment_can_be_set() {
    let records = run(&Synthetic { align: Some(12_288), ..random() });
    assert!(records.iter().all(|r| r.offset % 12_288 == 0));
}

#[test]
fn a_share_begins_where_the_one_before_ended() {
    for pattern in [Pattern::Random, Pattern::Zipf, Pattern::HotCold] {
        let records = run(&Synthetic { sequential_ppm: 250_000, ..settings(pattern) });
        let follow = records.windows(2).filter(|pair| pair[1].offset == pair[0].offset + pair[0].size);
        let share = follow.count() as f64 / 199_999.0;
        assert!((share - 0.25).abs() < 0.005, "{pattern:?}: {share}");
    }
}

/// With localities from 9:1 to 5:5, a share x of the requests goes to 1 - x of the space.
#[test]
fn hot_and_cold_divide_requests_and_space() {
    for hot_ppm in [900_000, 800_000, 700_000, 600_000, 500_000] {
        let (hot_share_ppm, hot_region_ppm) = (hot_ppm, 1_000_000 - hot_ppm);
        let pattern = Pattern::HotCold;
        let region = 1000 * 8192;
        let hot = Synthetic { hot_share_ppm, hot_region_ppm, ..settings(pattern) };
        let records = run(&Synthetic { region: Some(region), ..hot });
        let border = region * (1_000_000 - hot_ppm) / 1_000_000;
        let hot = records.iter().filter(|r| r.offset < border).count() as f64 / 200_000.0;
        assert!((hot - hot_ppm as f64 / 1e6).abs() < 0.005, "{hot_ppm}: {hot}");
        let touched: std::collections::BTreeSet<_> = records.iter().map(|r| r.offset).collect();
        assert_eq!(touched.len(), 1000, "every place of both parts is drawn");
    }
}

#[test]
fn near_requests_go_on_where_runs_ended() {
    let near = Synthetic { near_ppm: 600_000, near_sequential_ppm: 500_000, ..random() };
    let records = run(&near);
    let (mut on, mut twice) = (0, 0);
    for at in 8..records.len() {
        let before = &records[at - 8..at];
        let goes_on = before.iter().any(|other| other.offset + other.size == records[at].offset);
        on += usize::from(goes_on);
        // A run is not continued at an address where a remembered request already begins.
        twice += usize::from(goes_on && before.iter().any(|other| other.offset == records[at].offset));
    }
    let share = on as f64 / (records.len() - 8) as f64;
    // The share is three tenths and a little more: a uniform draw from the range of 256 slots also hits an end now and
    // then.
    assert!((0.30..0.32).contains(&share), "{share}");
    assert!(twice * 100 < on, "{twice} of {on}");
}

#[test]
fn hot_pieces_scatter_the_hot_part() {
    // Ten pieces of 100 slots with 20 hot ones each, and 5 slots after the last.
    let region = Some(1005 * 8192);
    let hot_piece = Some(100 * 8192);
    let records = run(&Synthetic { region, hot_piece, ..settings(Pattern::HotCold) });
    let mut counts = [0u32; 1005];
    for record in &records {
        counts[(record.offset / 8192) as usize] += 1;
    }
    // 800 requests per hot slot and 50 per cold slot (40,000 / 805), within six standard deviations.
    for (slot, &count) in counts.iter().enumerate() {
        let (expected, deviation) = if slot < 1000 && slot % 100 < 20 { (800.0, 28.3) } else { (49.7, 7.05) };
        assert!((f64::from(count) - expected).abs() < 6.0 * deviation, "{slot}: {count}");
    }
}

#[test]
fn all_hot_or_all_requests_to_the_hot_part() {
    let hot_cold = || settings(Pattern::HotCold);
    let everything = Synthetic { hot_share_ppm: 0, hot_region_ppm: 1_000_000, ..hot_cold() };
    assert!(run(&everything).iter().any(|r| r.offset > 1 << 29));
    let only_hot = Synthetic { hot_share_ppm: 1_000_000, hot_region_ppm: 1, ..hot_cold() };
    let most = run(&only_hot).iter().map(|r| r.offset).max().unwrap();
    assert_eq!(most, 0, "one slot in a million of 131,072 is the first");
}

#[test]
fn an_exact_mix_has_exactly_its_counts() {
    for arrival in [Arrival::Exponential, Arrival::Constant, Arrival::Bursts] {
        for seed in 0..5 {
            // 139,527 of 500,000 requests are reads, as for hm in Table 1.
            let synthetic = Synthetic {
                requests: 500_000,
                read_ppm: 279_054,
                trim_ppm: 0,
                exact_mix: true,
                arrival,
                ..in_bursts([7.0, 2.5], 5000, BurstOps::Single)
            };
            let records = all(Generator::new(&synthetic, 1 << 30, seed));
            assert_eq!(records.len(), 500_000);
            assert_eq!(share_of(&records, Op::Read), 139_527);
            assert_eq!(share_of(&records, Op::Write), 360_473);
        }
    }
}

#[test]
fn an_exact_mix_is_spread_evenly() {
    let records = run(&Synthetic { exact_mix: true, ..random() });
    for part in records.chunks(20_000) {
        let share = share_of(part, Op::Read) as f64 / 20_000.0;
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }
    assert_eq!(share_of(&records, Op::Trim), 10_000);
}

/// Returns the FNV-1a hash of all requests: the exact workload of each option, the same on every machine.
fn digest(synthetic: &Synthetic) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for record in all(Generator::new(&Synthetic { requests: 20_000, ..synthetic.clone() }, 1 << 30, 1)) {
        for word in [record.time_ns, record.op as u64, record.offset, record.size] {
            for byte in word.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    hash
}

#[test]
fn golden_of_every_option() {
    let mix = SizeMix::new(vec![(4096, 60), (65_536, 40)]);
    let burst = |ops| in_bursts([6.0, 3.5], 70_000, ops);
    let found = [
        digest(&random()),
        digest(&settings(Pattern::Sequential)),
        digest(&settings(Pattern::Zipf)),
        digest(&settings(Pattern::HotCold)),
        digest(&Synthetic { read_sizes: mix.clone(), sequential_ppm: 300_000, ..random() }),
        digest(&Synthetic { arrival: Arrival::Constant, exact_mix: true, ..random() }),
        digest(&burst(BurstOps::Mixed)),
        digest(&Synthetic { exact_mix: true, ..burst(BurstOps::Single) }),
        digest(&Synthetic { near_ppm: 600_000, sequential_ppm: 100_000, ..settings(Pattern::HotCold) }),
        digest(&Synthetic { pause_ppm: 200_000, ..burst(BurstOps::Mixed) }),
        digest(&Synthetic { near_ppm: 600_000, near_sequential_ppm: 400_000, ..settings(Pattern::HotCold) }),
        digest(&Synthetic { isolated_ppm: 600_000, ..burst(BurstOps::Single) }),
        digest(&Synthetic {
            size_correlation_ppm: 600_000,
            write_sizes: mix.clone(),
            ..burst(BurstOps::Mixed)
        }),
        digest(&Synthetic { op_correlation_ppm: 600_000, exact_mix: true, ..burst(BurstOps::Mixed) }),
        digest(&Synthetic {
            size_persistence_ppm: 600_000,
            burst_size_correlation_ppm: 500_000,
            write_sizes: mix,
            ..burst(BurstOps::Mixed)
        }),
    ];
    assert_eq!(found, DIGESTS, "{found:#x?}");
}

const DIGESTS: [u64; 15] = [
    0xb99a_cce1_289b_9e39,
    0x4982_298d_250d_4e47,
    0x9925_e367_916f_9f2f,
    0x3916_06a0_800c_08d5,
    0x368d_9a2f_eadd_bce9,
    0xfaf6_282c_0f19_be26,
    0xea4b_a53e_f354_27e3,
    0x2825_27fa_ea4f_2111,
    0x9ba1_02b5_d90a_877e,
    0xba94_5d3b_eb39_4f66,
    0x402c_fef5_c119_30f0,
    0x20d2_807b_e75e_d301,
    0x0aa8_b641_afa2_e6ee,
    0x0c64_2d55_d50e_e266,
    0xec94_4f98_234d_019b,
];

proptest! {
    #[test]
    fn requests_stay_in_the_region(
        pattern in prop::sample::select(vec![Pattern::Random, Pattern::Sequential, Pattern::Zipf, Pattern::HotCold]),
        size in 512u64..1 << 20, larger in 0u64..1 << 16, extra in 0u64..1 << 22, seed in any::<u64>(),
        theta in 0.01f64..10.0, share_ppm in 0u64..=ALL, region_ppm in 1u64..=ALL, sequential_ppm in 0u64..=ALL,
        near_ppm in 0u64..=ALL, near_range in 512u64..1 << 22, single in any::<bool>(), exact_mix in any::<bool>(), read_length in 1f64..100.0,
    ) {
        let region = size + larger + extra;
        let write_sizes = SizeMix::new(vec![(size, 1), (size + larger, 1)]);
        let burst_ops = if single { BurstOps::Single } else { BurstOps::Mixed };
        let synthetic = Synthetic {
            requests: 50, read_sizes: SizeMix::single(size), write_sizes, region: Some(region),
            sequential_ppm, near_ppm, near_range, near_sequential_ppm: share_ppm, exact_mix,
            isolated_ppm: share_ppm, size_correlation_ppm: near_ppm, op_correlation_ppm: near_ppm, pattern, zipf_theta: theta,
            size_persistence_ppm: sequential_ppm, burst_size_correlation_ppm: share_ppm,
            hot_share_ppm: share_ppm, hot_region_ppm: region_ppm, hot_piece: (extra % 2 == 0).then_some(near_range),
            ..in_bursts([read_length, 1.5], 100, burst_ops)
        };
        let records = all(Generator::new(&synthetic, 1 << 40, seed));
        prop_assert_eq!(records.len(), 50);
        for record in records {
            prop_assert!(record.offset + record.size <= region);
            prop_assert!(sequential_ppm > 0 || larger > 0 || record.offset % size == 0);
        }
    }
}
