//! Tests of where the requests of a worker go, and of their sizes: what fio 3.33, 3.39 and 3.41 do.

use super::played::*;
use super::{Distribution, Engine, Group, Job, Mix, Sizes};

#[test]
fn a_part_of_the_file() {
    assert_eq!(offsets("rw=read\noffset=1m\nsize=12k\n"), [1024, 1028, 1032]);
    let random = offsets("rw=randread\noffset=1m\nsize=16k\nio_size=1m\n");
    assert_eq!((random.len(), random.iter().min(), random.iter().max()), (256, Some(&1024), Some(&1036)));
    // The drive has 16 MiB.
    assert_eq!(offsets("rw=read\nbs=1m\noffset=50%\nsize=25%\n"), [8192, 9216, 10_240, 11_264]);
}

fn sorted(mut offsets: Vec<u64>) -> Vec<u64> {
    offsets.sort_unstable();
    offsets
}

/// fio's random map: each block once a pass, and every pass in the order of the first.
#[test]
fn each_block_once_a_pass() {
    let all: Vec<u64> = (0..256).map(|block| block * 4).collect();
    for more in ["io_size=3m\n", "loops=3\n"] {
        for pattern in ["randread", "randwrite", "randrw"] {
            let drawn = offsets(&format!("rw={pattern}\nsize=1m\niodepth=8\n{more}"));
            assert_eq!(drawn.len(), 768);
            assert_eq!(sorted(drawn[..256].to_vec()), all);
            assert_eq!(drawn[..256], drawn[256..512]);
            assert_eq!(drawn[..256], drawn[512..]);
            assert_ne!(drawn[..256], all);
        }
    }
    let drawn = |options: &str, set: &dyn Fn(&mut Job)| {
        let steps = play_as(&format!("rw=randread\nsize=1m\n{options}"), Engine::Queues, set);
        requests(&steps).iter().map(|request| request.1 / KIB).collect::<Vec<_>>()
    };
    let fresh = drawn("loops=2\n", &|job| job.repeat = false);
    assert_eq!([sorted(fresh[..256].to_vec()), sorted(fresh[256..].to_vec())], [all.clone(), all.clone()]);
    assert_ne!(fresh[..256], fresh[256..], "a new order for each pass");
    let timed = drawn("time_based\nruntime=60ms\n", &|_| ());
    assert_eq!((timed.len(), sorted(timed[..256].to_vec())), (600, all.clone()));
    assert_eq!(sorted(timed[256..512].to_vec()), all);
    assert_ne!(timed[..256], timed[256..512], "a new order for each pass");
}

/// Without the map blocks come again; reads begin anew with each `size` where the engine queues them.
#[test]
fn without_the_map_blocks_come_again() {
    let drawn = |pattern: &str, engine: Engine, map: bool| {
        let options = format!("rw={pattern}\nsize=1m\nio_size=2m\n");
        let steps = play_as(&options, engine, |job| job.map = map);
        requests(&steps).iter().map(|request| request.1).collect::<Vec<_>>()
    };
    let distinct = |offsets: &[u64]| {
        let mut distinct = sorted(offsets.to_vec());
        distinct.dedup();
        distinct.len()
    };
    for (pattern, engine, repeats) in [
        ("randread", Engine::Queues, true),
        ("randread", Engine::Waits, false),
        ("randwrite", Engine::Queues, false),
        ("randrw", Engine::Queues, false),
    ] {
        let offsets = drawn(pattern, engine, false);
        assert!((140..180).contains(&distinct(&offsets[..256])), "{}", distinct(&offsets[..256]));
        assert_eq!(offsets[..256] == offsets[256..], repeats, "{pattern}");
    }
    // An alignment of one's own and a distribution have no map either.
    for options in ["blockalign=512\n", "blockalign=8k\n", "random_distribution=zipf:0.5\n"] {
        let drawn = offsets(&format!("rw=randread\nsize=1m\n{options}"));
        assert!(distinct(&drawn) < 250, "{options}: {}", distinct(&drawn));
    }
}

/// The map cuts a request short at a block that has been touched: of 4k, 16k and 64k at 60, 30 and 10 %, all 16
/// multiples of 4k come, and few of them are as large as asked.
#[test]
fn the_map_cuts_requests_short() {
    for (split, set) in [(true, None), (false, Some([const { Sizes::Range(4096, 65_536) }; 3]))] {
        let options = if split { "bssplit=4k/60:16k/30:64k/10\n" } else { "" };
        let steps = play_as(&format!("rw=randread\nsize=16m\n{options}"), Engine::Queues, |job| {
            job.block = set.clone().unwrap_or(job.block.clone());
        });
        let requests = requests(&steps);
        let mut touched = vec![0; 4096];
        for &(_, offset, size) in &requests {
            (offset / 4096..(offset + size) / 4096).for_each(|block| touched[block as usize] += 1);
        }
        assert!(touched.iter().all(|&count| count == 1));
        let share = |size: u64| {
            requests.iter().filter(|request| request.2 == size * KIB).count() as f64 / requests.len() as f64
        };
        if split {
            assert!((1..=16).all(|blocks| share(blocks * 4) > 0.0));
            assert!((0.009..0.022).contains(&share(64)), "{}", share(64));
        }
    }
}

/// Each direction has a position of its own, and each is aligned to its own size.
#[test]
fn directions_are_apart() {
    let of = |listed: &[String], letter: char| {
        listed.iter().filter(|op| op.starts_with(letter)).cloned().collect::<Vec<_>>()
    };
    let both = ops("rw=rw\nsize=64k\n");
    let [reads, writes] = ['r', 'w'].map(|letter| of(&both, letter));
    assert_eq!(reads, (0..reads.len()).map(|at| format!("r{}", at * 4)).collect::<Vec<_>>());
    assert_eq!(writes, (0..writes.len()).map(|at| format!("w{}", at * 4)).collect::<Vec<_>>());
    assert!(reads.len() > 3 && writes.len() > 3 && reads.len() + writes.len() == 16);
    let steps = play_as("rw=randrw\nsize=4m\nbs=4k,16k\n", Engine::Queues, |job| job.map = false);
    let reads =
        listed(&steps).into_iter().filter(|op| op.starts_with('r')).map(|op| op[1..].parse::<u64>().unwrap());
    assert!(reads.clone().any(|at| at % 16 == 4), "reads are aligned to 4k");
    let rest = |op: &String| op[1..].strip_suffix(":16").map(|at| at.parse::<u64>().unwrap() % 16);
    assert!(listed(&steps).iter().filter(|op| op.starts_with('w')).all(|op| rest(op) == Some(0)));
    // In a zone both begin again.
    let zoned = ops("rw=rw\nsize=64k\nzonemode=strided\nzonesize=8k\nzonerange=16k\n");
    let at = |op: &String| op[1..].parse::<u64>().unwrap();
    for (number, pair) in zoned.chunks(2).enumerate() {
        let base = number as u64 % 4 * 16;
        assert_eq!(at(&pair[0]), base);
        let same = pair[0].as_bytes()[0] == pair[1].as_bytes()[0];
        assert_eq!(at(&pair[1]), base + if same { 4 } else { 0 });
    }
    // From fio 3.38 on, each direction of a job that transfers more than its size begins again by itself.
    let again = ops("rw=rw\nsize=16k\nio_size=96k\n");
    for letter in ['r', 'w'] {
        let own = of(&again, letter);
        assert_eq!(own, (0..own.len()).map(|at| format!("{letter}{}", at % 4 * 4)).collect::<Vec<_>>());
    }
}

#[test]
fn sizes_are_mixed() {
    let requests = requests(&play_as(
        "rw=randread\nsize=16m\nio_size=64m\nbssplit=4k/60:16k/30:64k/10\n",
        Engine::Queues,
        |job| job.map = false,
    ));
    let share = |size: u64| {
        requests.iter().filter(|request| request.2 == size).count() as f64 / requests.len() as f64
    };
    for (size, expected) in [(4 * KIB, 0.6), (16 * KIB, 0.3), (64 * KIB, 0.1)] {
        assert!((share(size) - expected).abs() < 0.02, "{size}: {}", share(size));
    }
    assert!(requests.iter().all(|&(_, offset, size)| offset % 4096 == 0 && offset + size <= 16 << 20));
    assert!(requests.iter().any(|&(_, offset, size)| offset % size != 0), "aligned to the smallest only");
}

#[test]
fn addresses_are_aligned_as_asked() {
    // With an engine that queues, such reads come in the same order again with each `size`.
    let options = "rw=randread\nsize=16k\nio_size=4m\nblockalign=512\n";
    let requests = requests(&play_as(options, Engine::Waits, |_| ()));
    let mut places: Vec<u64> = requests.iter().map(|request| request.1).collect();
    places.sort_unstable();
    places.dedup();
    // All multiples of 512 from which 4 KiB fit.
    assert_eq!(places, (0..=24).map(|place| place * 512).collect::<Vec<_>>());
}

#[test]
fn zones_take_turns() {
    let strided = |options: &str| offsets(&format!("size=64k\nzonemode=strided\n{options}"));
    assert_eq!(strided("rw=read\nzonesize=4k\nzoneskip=12k\nio_size=20k\n"), [0, 16, 32, 48, 0]);
    // A last zone that is not whole is used as far as it goes.
    let short = "rw=read\nzonesize=8k\nzonerange=16k\n";
    let places = [0, 4, 16, 20, 32, 36, 48, 52, 0, 4, 16, 20, 32, 36, 48];
    assert_eq!(offsets(&format!("zonemode=strided\nsize=60k\n{short}")), places);
    let half = "rw=read\nzonesize=8k\nzonerange=16k\nzoneskip=16k\nio_size=20k\n";
    assert_eq!(strided(half), [0, 4, 32, 36, 0]);
    let twice = "rw=read\nzonesize=16k\nzonerange=8k\nzoneskip=8k\nio_size=24k\n";
    assert_eq!(strided(twice), [0, 4, 0, 4, 16, 20]);
    let far = "rw=read\nzonesize=4k\nzoneskip=1g\nio_size=12k\noffset=1m\n";
    assert_eq!(strided(far), [1024, 1024, 1024]);
    let mut random = strided("rw=randread\nzonesize=1t\nzonerange=16k\nio_size=4m\noffset=1m\n");
    random.sort_unstable();
    random.dedup();
    assert_eq!(random, [1024, 1028, 1032, 1036]);
}

#[test]
fn trims_and_writes_take_turns() {
    let trims = |mix, options: &str| text(options, |job| job.mix = mix);
    assert_eq!(trims(Mix::Trims, "size=16k\n"), "t0 t4 t8 t12");
    assert_eq!(trims(Mix::TrimWrites, "size=12k\n"), "t0 w0 t4 w4 t8 w8");
    assert_eq!(trims(Mix::TrimWrites, "size=8k\nloops=2\n"), "t0 w0 t4 w4 t0 w0 t4 w4");
    let sizes = |job: &mut Job| {
        (job.mix, job.block) = (Mix::TrimWrites, [4, 8, 16].map(|kib| Sizes::One(kib * KIB)));
    };
    assert_eq!(
        text("size=64k\n", sizes),
        "t0:16 w0:8 t16:16 w8:8 w16:8 t32:16 w24:8 w32:8 t48:16 w40:8 w48:8"
    );
    for map in [true, false] {
        let random = play_as("rw=randwrite\nsize=256k\noffset=1m\n", Engine::Queues, |job| {
            (job.mix, job.map) = (Mix::TrimWrites, map);
        });
        let ops = listed(&random);
        assert_eq!(ops.len(), 128);
        assert!(ops.chunks(2).all(|pair| pair[0].replace('t', "w") == pair[1]), "{ops:?}");
        let mut places: Vec<&String> = ops.iter().step_by(2).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len() == 64, map);
    }
}

#[test]
fn requests_with_holes_between_them() {
    let stride = |stride: i64, options: &str| text(options, |job| job.stride = stride * 1024);
    assert_eq!(stride(4, "rw=read\nsize=32k\n"), "r0 r8 r16 r24 r0 r8 r16 r24");
    assert_eq!(stride(8, "rw=write\nsize=64k\n"), "w0 w12 w24 w36 w48 w60");
    assert_eq!(stride(-8, "rw=read\nsize=24k\n"), "r0 r16 r12 r8 r4 r0");
    assert_eq!(stride(4, "rw=write\nsize=32k\noffset=16k\n"), "w16 w24 w32 w40");
    // fio's own: with an offset, a backward job stays where it is.
    assert_eq!(stride(-4, "rw=read\nsize=64k\noffset=16k\nio_size=16k\n"), "r60 r60 r60 r60");
}

#[test]
fn groups_of_requests() {
    let grouped = |group| {
        let steps = play_as("rw=randread\nsize=4m\n", Engine::Waits, |job| job.group = group);
        requests(&steps).iter().map(|request| request.1 / 4096).collect::<Vec<_>>()
    };
    let follows = grouped(Group::Follows(8));
    assert_eq!(follows.len(), 1024);
    let within = |group: &[u64]| group.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    let whole = follows.chunks(8).filter(|group| within(group) == 7).count();
    assert!(whole > 120, "all but those that reach the end: {whole}");
    let mut distinct = follows.clone();
    distinct.sort_unstable();
    distinct.dedup();
    // Groups begin anywhere, and their blocks are not marked in the map: 37 % are left out.
    assert!((0.58..0.68).contains(&(distinct.len() as f64 / 1024.0)), "{}", distinct.len());
    assert!(grouped(Group::Repeats(4)).chunks(4).all(|group| group.iter().all(|at| *at == group[0])));
}

#[test]
fn some_requests_of_a_random_job_are_sequential() {
    let steps = play_as("rw=randread\nsize=16m\n", Engine::Queues, |job| {
        (job.random_percent, job.map) = ([30; 3], false);
    });
    let requests = requests(&steps);
    let follow = requests.windows(2).filter(|pair| pair[1].1 == pair[0].1 + pair[0].2).count();
    let share = follow as f64 / requests.len() as f64;
    assert!((0.67..0.73).contains(&share), "{share}");
}

/// A distribution's ranks are where fio's hash puts them, which leaves blocks out if their number is not a power of
/// two.
#[test]
fn blocks_that_a_hash_reaches() {
    let reached = |blocks: u64| {
        let options = format!("rw=randread\nbs=512\nsize={}\nio_size=64m\n", blocks * 512);
        let steps = play_as(&options, Engine::Waits, |job| {
            job.distribution = Distribution::Zipf(0.2, Some(0.0));
        });
        let mut places: Vec<u64> = requests(&steps).iter().map(|request| request.1 / 512).collect();
        places.sort_unstable();
        places.dedup();
        let hash = |rank: u64| rank.wrapping_mul(0x61C8_8646_80B5_83EB) % blocks;
        let mut hashed: Vec<u64> = (0..blocks).map(hash).collect();
        hashed.sort_unstable();
        hashed.dedup();
        assert_eq!(places, hashed);
        places.len()
    };
    assert_eq!([1000, 3000, 1024].map(reached), [308, 865, 1024]);
}

#[test]
fn distributions_have_their_shape() {
    let drawn = |distribution: Distribution| {
        let steps = play_as("rw=randread\nsize=4m\nio_size=16m\n", Engine::Waits, |job| {
            job.distribution = distribution.clone();
        });
        requests(&steps).iter().map(|request| request.1 / 4096).collect::<Vec<_>>()
    };
    let below = |blocks: &[u64], end: u64| {
        blocks.iter().filter(|&&block| block < end).count() as f64 / blocks.len() as f64
    };
    let zones = vec![(600_000, 100_000), (400_000, 900_000)];
    let blocks = drawn(Distribution::Zoned([zones.clone(), zones.clone(), zones]));
    assert!((below(&blocks, 102) - 0.6).abs() < 0.03, "{}", below(&blocks, 102));
    let zones = vec![(500_000, 1 << 20), (500_000, 1 << 20)];
    let blocks = drawn(Distribution::ZonedBytes([zones.clone(), zones.clone(), zones]));
    assert!((below(&blocks, 256) - 0.5).abs() < 0.03 && below(&blocks, 512) == 1.0);
    // Few ranks take most of a normal distribution, wherever the hash puts them.
    let mut counts = vec![0; 1024];
    drawn(Distribution::Normal(10.0, None)).iter().for_each(|&block| counts[block as usize] += 1);
    counts.sort_unstable();
    let most: usize = counts[1024 - 340..].iter().sum();
    assert!(most > 3500, "{most}");
}
