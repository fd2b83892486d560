//! The device's schedulers: the paper's exact cases (Cui et al., NPC 2016), and random requests compared with
//! a plain implementation of the rules with sets, written independently.

use ftlab_conformance as common;

use std::collections::BTreeSet;

use common::{checked, pages, settings};
use ftlab_core::config::{Section, Value, Values};
use ftlab_core::flash::variation::{Speeds, Variation};
use ftlab_core::ftl::blocks::by_speed::Unhurried;
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns a page-mapped device without bus time that never collects garbage.
fn device(scheduler: &str, channels: u32, ways: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.host.queue_depth = u32::MAX;
    settings.device.scheduler = scheduler.into();
    settings.device.queue_depth = u32::MAX;
    settings.flash.channels = channels;
    settings.flash.chips_per_channel = ways;
    settings
}

/// Cui et al., Fig. 3: the sixth request joins chip batch 1 and its second channel batch.
#[test]
fn figure_3_batches_and_channel_batches() {
    for op in [Op::Read, Op::Write] {
        let requests = [(0, 2), (2, 1), (4, 2), (1, 1), (0, 1), (6, 2)];
        let trace = || requests.map(|(first, count)| pages(0, op, 4096, first, count)).to_vec();
        let ids = |scheduler| {
            let (report, done) = checked(&device(scheduler, 4, 2), trace());
            assert_eq!(report.device.batches, if scheduler == "noop" { 0 } else { 2 });
            done.iter().map(|row| (row.batch, row.channel_batch)).collect::<Vec<_>>()
        };
        assert_eq!(ids("vios"), [(1, 1), (1, 1), (1, 2), (2, 1), (2, 1), (1, 2)]);
        assert_eq!(ids("piq"), [(1, 0), (1, 0), (1, 0), (2, 0), (2, 0), (1, 0)]);
        assert_eq!(ids("noop"), [(0, 0); 6]);
        // The second channel batch is now {0, 1, 2, 3}, so a request for chip 3 fits only the first one, {0, 1, 2}.
        let mut longer = trace();
        longer.push(pages(0, op, 4096, 3, 1));
        let (_, done) = checked(&device("vios", 4, 2), longer);
        assert_eq!((done[6].batch, done[6].channel_batch), (1, 1));
    }
}

/// Makes a device of one chip with blocks of one page each. A program takes 180, 210 and 150 us in blocks 1, 2 and 3,
/// and between 180 and 210 us in blocks 4 and 5. Block 0 is the reserve.
fn figure_4(scheduler: &str) -> Settings {
    let mut settings = device(scheduler, 1, 1);
    settings.flash.blocks_per_plane = 6;
    settings.flash.pages_per_block = 1;
    settings.ftl.over_provisioning_ppm = 500_000;
    settings.flash.program = 210_000.into();
    settings.flash.pe_cycles = 1000;
    settings.flash.variation = Some(Variation {
        growth_mean: 6.3e-3,
        growth_stddev: 5e-4,
        growth_bound: 3.0,
        fresh_ber: 1e-6,
        ecc_limit: 1e-3,
        sensitivity: 10.0,
        nominal_step: 0.30,
        max_step: 0.42,
        step_decrement: 0.01,
    });
    let fits = |seed: &u64| {
        let speeds = Speeds::new(&settings.flash, *seed, 1000).expect("blocks differ");
        let ns = |block| speeds.program_ns(block);
        (ns(1), ns(2), ns(3)) == (180_000, 210_000, 150_000)
            && [4, 5].iter().all(|&block| (180_001..210_000).contains(&ns(block)))
    };
    settings.seed = (0..1_000_000).find(fits).expect("some seed draws these blocks");
    settings
}

/// Cui et al., Fig. 4: three conflicting writes take 340 us on average under VIOS, 370 us in order.
#[test]
fn figure_4_fast_blocks_for_conflicting_writes() {
    let write = |lpn| pages(0, Op::Write, 4096, lpn, 1);
    for (scheduler, unhurried, times, mean) in [
        ("vios", Unhurried::InOrder, [150_000, 330_000, 540_000], 340_000.0),
        ("vios", Unhurried::Slowest, [150_000, 330_000, 540_000], 340_000.0),
        ("piq", Unhurried::InOrder, [180_000, 390_000, 540_000], 370_000.0),
        ("noop", Unhurried::InOrder, [180_000, 390_000, 540_000], 370_000.0),
        ("noop-busy", Unhurried::InOrder, [180_000, 390_000, 540_000], 370_000.0),
    ] {
        let settings = with_unhurried(figure_4(scheduler), unhurried);
        let (report, done) = checked(&settings, vec![write(0), write(1), write(2)]);
        assert_eq!(done.iter().map(|row| row.complete_ns).collect::<Vec<_>>(), times, "{scheduler}");
        assert_eq!(report.latency.write.mean_ns, mean, "{scheduler}");
        let time = report.flash.program_time.as_ref().unwrap();
        assert_eq!((time.count, time.min_ns, time.max_ns), (3, 150_000, 210_000));
        // The first write found the chip idle; the two behind it waited.
        assert_eq!((report.conflicts.read, report.conflicts.write), (0, 2));
    }
    // A placement that is set explicitly is used under any scheduler.
    for (scheduler, placement, times) in
        [("vios", "one", [180_000, 390_000, 540_000]), ("piq", "vios", [150_000, 330_000, 540_000])]
    {
        let mut settings = figure_4(scheduler);
        settings.ftl.placement = Some(placement.into());
        let done = checked(&settings, vec![write(0), write(1), write(2)]).1;
        assert_eq!(done.iter().map(|row| row.complete_ns).collect::<Vec<_>>(), times, "{placement}");
    }
    // A write behind which nothing waits takes the next block in order, or the slowest.
    for (unhurried, ns) in [(Unhurried::InOrder, 180_000), (Unhurried::Slowest, 210_000)] {
        let (_, done) = checked(&with_unhurried(figure_4("vios"), unhurried), vec![write(0)]);
        assert_eq!(done[0].complete_ns, ns, "{unhurried:?}");
    }
}

fn with_unhurried(mut settings: Settings, unhurried: Unhurried) -> Settings {
    settings.ftl.placements.vios.unhurried = unhurried;
    settings
}

/// Writes that are not hurried fill a block before they take another, which is the one erased first. Blocks have two
/// pages; programs take 180, 210 and 150 us in blocks 1 to 3, and times in between in blocks 4 and 5.
#[test]
fn in_order_a_block_is_filled_and_then_comes_the_one_erased_first() {
    let mut settings = with_unhurried(figure_4("vios"), Unhurried::InOrder);
    settings.flash.pages_per_block = 2;
    let write = |time_ns, lpn| pages(time_ns, Op::Write, 4096, lpn, 1);
    let at = |ms| ms * 1_000_000;
    // A single write takes a page of block 1. Of the two writes that come together at 1 ms, the first is hurried and
    // takes block 3, 150 us; the second goes on with block 1, which is then full. Later single writes take block 2
    // twice, then block 3, which is already open, before block 4, which was erased after it.
    let alone = [2, 3, 4].map(|ms| write(at(ms), ms));
    let trace: Vec<_> = [write(0, 0), write(at(1), 1), write(at(1), 5)].into_iter().chain(alone).collect();
    let (_, done) = checked(&settings, trace);
    let took: Vec<u64> = done.iter().map(|row| row.complete_ns - row.arrival_ns).collect();
    assert_eq!(took, [180_000, 150_000, 150_000 + 180_000, 210_000, 210_000, 150_000]);
}

/// What the oracle knows about a waiting request.
struct Waiting {
    id: usize,
    reads: bool,
    flush: bool,
    chips: BTreeSet<u64>,
    batch: usize,
    channel: usize,
}

/// A chip batch: its half, chips, channel batches, and members that have not issued.
struct Batch {
    reads: bool,
    chips: BTreeSet<u64>,
    channels: Vec<BTreeSet<u64>>,
    waiting: usize,
}

/// The rules of `device/sched/batches.rs`, implemented with sets.
struct Oracle {
    chips: u64,
    channels: u64,
    with_channels: bool,
    max_passed: usize,
    waiting: Vec<Waiting>,
    batches: Vec<Batch>,
    passed: usize,
}

impl Oracle {
    fn admit(&mut self, id: usize, record: &Record) -> (u64, u64) {
        let first = record.offset / 4096;
        let chips: BTreeSet<u64> = match record.op {
            Op::Flush => (0..self.chips).collect(),
            _ => (0..record.size / 4096).map(|page| (first + page) % self.chips).collect(),
        };
        let reads = record.op == Op::Read;
        let fits =
            |batch: &Batch| batch.reads == reads && batch.waiting > 0 && batch.chips.is_disjoint(&chips);
        let batch = self.batches.iter().position(fits).unwrap_or_else(|| {
            self.batches.push(Batch { reads, chips: BTreeSet::new(), channels: Vec::new(), waiting: 0 });
            self.batches.len() - 1
        });
        let joined = &mut self.batches[batch];
        joined.waiting += 1;
        joined.chips.extend(&chips);
        let channels: BTreeSet<u64> = chips.iter().map(|chip| chip % self.channels).collect();
        let channel =
            joined.channels.iter().position(|set| set.is_disjoint(&channels)).unwrap_or_else(|| {
                joined.channels.push(BTreeSet::new());
                joined.channels.len() - 1
            });
        joined.channels[channel].extend(&channels);
        let channel = if self.with_channels { channel + 1 } else { 0 };
        self.waiting.push(Waiting { id, reads, flush: record.op == Op::Flush, chips, batch, channel });
        (batch as u64 + 1, channel as u64)
    }

    fn choose(&mut self, busy: &BTreeSet<u64>) -> Option<Waiting> {
        // Waiting requests are kept in order of arrival.
        let oldest = self.waiting.first()?;
        let due = self.passed >= self.max_passed || oldest.flush;
        let mut taken = busy.clone();
        if due {
            taken.extend(&oldest.chips);
        }
        let place = if due && oldest.chips.is_disjoint(busy) {
            0
        } else {
            (0..self.waiting.len()).filter(|&at| self.waiting[at].chips.is_disjoint(&taken)).min_by_key(
                |&at| {
                    let Waiting { id, reads, batch, channel, .. } = &self.waiting[at];
                    (!reads, *batch, *channel, *id)
                },
            )?
        };
        self.passed = if place == 0 { 0 } else { self.passed + 1 };
        let chosen = self.waiting.remove(place);
        self.batches[chosen.batch].waiting -= 1;
        Some(chosen)
    }
}

/// Returns the batch, channel batch and completion time of every request, on chips that serve one page after another.
fn expected(settings: &Settings, trace: &[Record]) -> Vec<(u64, u64, u64)> {
    let (chips, channels) = (u64::from(settings.flash.chips()), u64::from(settings.flash.channels));
    let mut oracle = Oracle {
        chips,
        channels,
        with_channels: settings.device.scheduler == "vios",
        max_passed: settings.device.sched.max_passed as usize,
        waiting: Vec::new(),
        batches: Vec::new(),
        passed: 0,
    };
    let mut rows = vec![(0, 0, 0); trace.len()];
    let mut free_at = vec![0u64; chips as usize];
    // Pages with data, and whether a page was trimmed since the last flush.
    let (mut data, mut trimmed) = (BTreeSet::new(), false);
    // Completion times of the requests in service.
    let mut serving: Vec<u64> = Vec::new();
    let (mut now, mut arrived) = (0, 0);
    loop {
        serving.retain(|&at| at > now);
        loop {
            let mut at_once = false;
            let held = |oracle: &Oracle, serving: &Vec<u64>| (oracle.waiting.len() + serving.len()) as u64;
            while arrived < trace.len()
                && trace[arrived].time_ns <= now
                && held(&oracle, &serving) < u64::from(settings.device.queue_depth)
            {
                let (batch, channel) = oracle.admit(arrived, &trace[arrived]);
                (rows[arrived].0, rows[arrived].1) = (batch, channel);
                arrived += 1;
            }
            loop {
                let busy = (0..chips).filter(|&chip| free_at[chip as usize] > now).collect();
                let Some(Waiting { id, .. }) = oracle.choose(&busy) else { break };
                let record = &trace[id];
                let page_ns = match record.op {
                    Op::Read => settings.flash.read.mean(),
                    Op::Write => settings.flash.program.mean(),
                    Op::Trim | Op::Flush => 0,
                };
                let mut last = now;
                let (first, end) = (record.offset.div_ceil(4096), (record.offset + record.size) / 4096);
                match record.op {
                    Op::Write => {
                        data.extend(record.offset / 4096..(record.offset + record.size).div_ceil(4096))
                    }
                    Op::Trim => (first..end).for_each(|page| trimmed |= data.remove(&page)),
                    // A flush makes trims durable by programming one page, the one after the user's last.
                    Op::Flush if std::mem::take(&mut trimmed) && settings.ftl.power_safe => {
                        last = now + settings.flash.program.mean();
                        free_at[(settings.user_pages() % chips) as usize] = last;
                    }
                    Op::Read | Op::Flush => (),
                }
                if page_ns > 0 {
                    for page in 0..record.size / 4096 {
                        let chip = (record.offset / 4096 + page) % chips;
                        free_at[chip as usize] = free_at[chip as usize].max(now) + page_ns;
                        last = last.max(free_at[chip as usize]);
                    }
                }
                rows[id].2 = last;
                if last > now {
                    serving.push(last);
                } else {
                    at_once = true;
                }
            }
            if !at_once {
                break;
            }
        }
        let full = (oracle.waiting.len() + serving.len()) as u64 >= u64::from(settings.device.queue_depth);
        let arrival = trace.get(arrived).filter(|_| !full).map(|record| record.time_ns);
        let idle = free_at.iter().copied().filter(|&at| at > now).min();
        match arrival.into_iter().chain(idle).min() {
            Some(next) => now = next,
            None => return rows,
        }
    }
}

fn random_trace(random: &mut Xoshiro256PlusPlus, requests: u64, lpns: u64, widest: u64) -> Vec<Record> {
    let mut time_ns = 0;
    let request = |_| {
        if random.random_ratio(1, 4) {
            time_ns += random.random_range(0..900_000);
        }
        let count = random.random_range(1..=widest);
        let first = random.random_range(0..lpns - count);
        match random.random_range(0..40) {
            0 => Record { time_ns, ..Record::FLUSH },
            1 => pages(time_ns, Op::Trim, 4096, first, count),
            // A trim that covers no whole page touches no chip.
            2 => Record { time_ns, op: Op::Trim, offset: first * 4096 + 5, size: 100, ..Record::FLUSH },
            3..20 => pages(time_ns, Op::Read, 4096, first, count),
            _ => pages(time_ns, Op::Write, 4096, first, count),
        }
    };
    (0..requests).map(request).collect()
}

#[test]
fn batches_and_times_agree_with_the_set_based_oracle() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    for case in 0..240 {
        let (channels, ways) = (random.random_range(1..10), random.random_range(1..12));
        let mut settings = device(if case % 2 == 0 { "piq" } else { "vios" }, channels, ways);
        settings.device.queue_depth = [u32::MAX, 1, 3, 40][case / 2 % 4];
        settings.device.sched.max_passed = [128, 0, 5, u32::MAX][case / 8 % 4];
        settings.flash.blocks_per_plane = 64;
        let widest = random.random_range(1..=2 * u64::from(channels * ways)).min(40);
        let lpns = settings.user_pages().min(400);
        let trace = random_trace(&mut random, 300, lpns, widest);
        let (report, done) = checked(&settings, trace.clone());
        let expected = expected(&settings, &trace);
        for (row, expected) in done.iter().zip(&expected) {
            let Completion { batch, channel_batch, complete_ns, id, .. } = *row;
            assert_eq!((batch, channel_batch, complete_ns), *expected, "case {case}, request {id}");
        }
        assert_eq!(report.device.batches, expected.iter().map(|row| row.0).max().unwrap());
    }
}

/// With one channel, one chip and queue depth 1, every scheduler behaves like the serial device, to the nanosecond.
#[test]
fn with_one_request_at_a_time_all_schedulers_are_the_serial_device() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let trace = random_trace(&mut random, 2000, 2000, 6);
    let run = |scheduler: &str| {
        let mut settings = device(scheduler, 1, 1);
        settings.device.queue_depth = 1;
        let times = |row: &Completion| (row.dispatch_ns, row.complete_ns);
        checked(&settings, trace.clone()).1.iter().map(times).collect::<Vec<_>>()
    };
    let serial = run("noop");
    for scheduler in common::device_schedulers() {
        assert_eq!(run(scheduler), serial, "{scheduler}");
    }
}

/// Runs requests (arrival in us, operation, first page, pages) on three chips whose programs take 200 us; returns
/// when they complete, us.
fn completions(scheduler: &str, trace: &[(u64, Op, u64, u64)]) -> Vec<u64> {
    let mut settings = device(scheduler, 3, 1);
    settings.flash.program = 200_000.into();
    let trace =
        trace.iter().map(|&(us, op, first, count)| pages(us * 1000, op, 4096, first, count)).collect();
    checked(&settings, trace).1.iter().map(|row| row.complete_ns / 1000).collect()
}

/// Each of three schedulers lets other requests pass the oldest one, at times worked out by hand. Chip 0 is busy until
/// 200 us. The second write waits for chips 0 and 1, the fourth for chip 0; the third and the fifth find their chips
/// idle.
#[test]
fn three_schedulers_differ_on_what_may_pass_the_oldest() {
    let write = |us, first, count| (us, Op::Write, first, count);
    let trace = [write(0, 0, 1), write(10, 0, 2), write(20, 1, 1), write(30, 0, 1), write(40, 2, 1)];
    let times = |scheduler| completions(scheduler, &trace);
    // All requests issue in order: the second at 200 us, the others at 400 us.
    assert_eq!(times("noop"), [200, 400, 600, 600, 600]);
    // The third and the fifth request issue on arrival, so the second issues at 220 us, and the fourth behind it.
    assert_eq!(times("noop-busy"), [200, 420, 220, 620, 240]);
    // The fourth request takes chip 0 at 200 us, while the second still waits for chip 1.
    assert_eq!(times("piq"), [200, 600, 220, 400, 240]);
}

/// At each instant the oldest request goes first, then arrivals in their order; nothing overtakes a flush.
#[test]
fn under_noop_busy_what_arrives_passes_no_flush_nor_the_oldest_that_may_issue() {
    let write = |us, first, count| (us, Op::Write, first, count);
    // The third request arrives at the moment when the second can finally issue.
    let together = [write(0, 0, 1), write(10, 0, 1), write(200, 0, 1)];
    assert_eq!(completions("noop-busy", &together), [200, 400, 600]);
    let at_once = [write(0, 0, 1), write(0, 0, 1), write(0, 1, 2), write(0, 2, 1), write(0, 0, 1)];
    assert_eq!(completions("noop-busy", &at_once), [200, 400, 200, 400, 600]);
    // The flush waits for both writes before it, and the write to chip 1 waits for the flush.
    let flush = [write(0, 0, 1), write(10, 0, 1), (20, Op::Flush, 0, 0), write(30, 1, 1), write(410, 2, 1)];
    assert_eq!(completions("noop-busy", &flush), [200, 400, 400, 600, 610]);
}

/// While a stream of reads keeps the only chip busy, the oldest write issues after at most `max_passed` reads.
#[test]
fn writes_starve_no_longer_than_the_bound() {
    let mut settings = device("piq", 1, 1);
    settings.device.sched.max_passed = 20;
    let mut trace = vec![pages(0, Op::Write, 4096, 0, 1), pages(1, Op::Write, 4096, 1, 1)];
    trace.extend((0..400).map(|at| pages(at * 30_000, Op::Read, 4096, 5, 1)));
    trace.sort_by_key(|record| record.time_ns);
    let done = checked(&settings, trace.clone()).1;
    let of = |first: u64| done.iter().find(|row| row.op == Op::Write && row.offset == first * 4096).unwrap();
    let reads_before = |at: u64| done.iter().filter(|row| row.op == Op::Read && row.complete_ns < at).count();
    // At time 0 a read goes first; then one write after the other is the oldest request.
    let (first, second) = (of(0).complete_ns, of(1).complete_ns);
    assert!(reads_before(first) <= 20, "{}", reads_before(first));
    assert!(reads_before(second) - reads_before(first) <= 20);
    settings.device.sched.max_passed = u32::MAX;
    let unbounded = checked(&settings, trace).1;
    let last_read = unbounded.iter().filter(|row| row.op == Op::Read).map(|row| row.complete_ns).max();
    let late = unbounded.iter().find(|row| row.op == Op::Write && row.offset == 4096).unwrap();
    assert!(late.complete_ns > last_read.unwrap(), "without the bound the write waits for every read");
}

/// A flush completes only after every write that arrived before it.
#[test]
fn a_flush_comes_after_the_writes_before_it() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    for scheduler in common::device_schedulers() {
        let mut settings = device(scheduler, 4, 4);
        settings.device.sched.max_passed = 7;
        let trace = random_trace(&mut random, 4000, 4000, 20);
        let done = checked(&settings, trace).1;
        let mut latest = 0;
        for row in &done {
            match row.op {
                Op::Write => latest = latest.max(row.complete_ns),
                Op::Flush => assert!(row.complete_ns >= latest, "{scheduler}, request {}", row.id),
                _ => (),
            }
        }
    }
}

/// Blocks age during the run: the same write takes longer and longer, never less.
#[test]
fn wear_feeds_back_during_a_run() {
    for scheduler in ["noop", "vios"] {
        let mut settings = figure_4(scheduler);
        settings.flash.pe_cycles = 700;
        settings.flash.blocks_per_plane = 8;
        settings.flash.pages_per_block = 4;
        let trace: Vec<_> = (0..8000).map(|at| pages(at * 10_000_000, Op::Write, 4096, at % 16, 1)).collect();
        let (report, done) = checked(&settings, trace);
        let mean = |rows: &[Completion]| {
            rows.iter().map(|row| row.complete_ns - row.dispatch_ns).sum::<u64>() / rows.len() as u64
        };
        let (first, last) = (mean(&done[..800]), mean(&done[7200..]));
        assert!(last > first + 20_000, "{scheduler}: {first} ns at first, {last} ns at last");
        assert!(report.wear.mean > 800.0, "blocks must have aged: {:?}", report.wear);
        let time = report.flash.program_time.as_ref().unwrap();
        assert!(time.max_ns > time.min_ns);
    }
}

/// Contradictions of the device's scheduler with other settings, and of the variation, are reported as the user's
/// errors.
#[test]
fn impossible_settings_are_refused() {
    let defaults: Values = ftlab_core::config::section::defaults::<Settings>();
    let with = |changes: &[(&'static str, Value)]| {
        let mut values = defaults.clone();
        values.extend(changes.iter().cloned());
        Settings::read(&values).check(&values).map_err(|error| error.to_string())
    };
    let text = |text: &str| Value::Text(text.into());
    let vios = ("device.scheduler", text("vios"));
    let small = ("ftl.logical_page", Value::Bytes(1024));
    assert!(with(std::slice::from_ref(&vios)).is_ok());
    assert!(with(std::slice::from_ref(&small)).is_ok());
    let refused = |changes: &[(&'static str, Value)]| with(changes).expect_err("a contradiction");
    assert!(
        refused(&[vios.clone(), small]).starts_with("device.scheduler: vios goes by the chips of static")
    );
    let chips = ("flash.chips_per_channel", Value::Count(1024));
    let many =
        [vios, ("flash.channels", Value::Count(2)), chips, ("flash.blocks_per_plane", Value::Count(64))];
    assert!(refused(&many).starts_with("device.scheduler: vios keeps its queues for at most 1024 chips"));
    let ispp = ("flash.variation.model", text("ispp"));
    let levelled = [("device.scheduler", text("vios")), ("ftl.wear_leveling", text("static")), ispp.clone()];
    assert!(refused(&levelled).starts_with("ftl.wear_leveling: moves data by wear, while vios"));
    assert!(with(&levelled[..2]).is_ok() && with(&levelled[1..]).is_ok());
    assert!(with(std::slice::from_ref(&ispp)).is_ok());
    let case = |key, number| refused(&[ispp.clone(), (key, Value::Number(number))]);
    for (decrement, steps) in [(0.7, 0), (0.009, 66)] {
        assert!(case("flash.variation.step_decrement", decrement).starts_with(&format!(
            "flash.variation.step_decrement: makes {steps} steps from flash.variation.max_step"
        )));
    }
    assert!(case("flash.variation.nominal_step", 100.0).contains("would program a page in 1.2 s"));
    assert!(
        case("flash.variation.ecc_limit", 1e-7).starts_with("flash.variation.ecc_limit: does not exceed")
    );
}
