//! Exact timing of dies and planes that work in parallel: at t - 1 nothing is ready yet, at t everything is. A read
//! takes 35 us, a program 350 us, an erasure 1.5 ms; a page takes 40.96 us on a bus of 10 ns per byte. Suspending an
//! operation takes 20 us, and so does resuming it.
//!
//! The device is driven without a host, so that every request reaches it at its own time; its scheduler is
//! `direct`, unless a test says otherwise.

use ftlab_conformance as common;

use common::{checked, settings};
use ftlab_core::device::{Device, Turn};
use ftlab_core::flash::Work;
use ftlab_core::flash::parallel::{Allocation, MultiPlane, Parallel, Suspend};
use ftlab_core::flash::settings::BusOrder;
use ftlab_core::ftl::Ftl;
use ftlab_core::request::Pages;
use ftlab_core::request::{Pool, Request};
use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Record};

const READ: u64 = 35_000;
const PROGRAM: u64 = 350_000;
const ERASE: u64 = 1_500_000;
const BUS: u64 = 40_960;
const US: u64 = 1_000;

/// Makes a device of one chip with this many dies and planes, without bus time.
fn chip(dies: u32, planes: u32, parallel: Parallel) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.device.scheduler = "direct".into();
    settings.device.queue_depth = u32::MAX;
    settings.flash.dies_per_chip = dies;
    settings.flash.planes_per_die = planes;
    settings.flash.blocks_per_plane = 16;
    settings.flash.parallel = parallel;
    settings
}

fn with_bus(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.flash.transfer_ps = 10_000;
    settings
}

const PLAIN: fn() -> Parallel = Parallel::default;

fn interleaved() -> Parallel {
    Parallel { interleave: true, ..PLAIN() }
}

fn planes(multi_plane: MultiPlane) -> Parallel {
    Parallel { multi_plane, ..PLAIN() }
}

fn suspending(suspend: Suspend) -> Parallel {
    Parallel { suspend, ..PLAIN() }
}

/// A request of one page: its time, its operation and its page.
type Ask = (u64, Op, u32);

const fn read(lpn: u32) -> Ask {
    (0, Op::Read, lpn)
}

const fn write(lpn: u32) -> Ask {
    (0, Op::Write, lpn)
}

const fn at(time_ns: u64, (_, op, lpn): Ask) -> Ask {
    (time_ns, op, lpn)
}

/// A bench that drives a device without a host.
struct Bench {
    device: Device,
    ftl: Ftl,
    work: Work,
    pool: Pool,
    done: Vec<u32>,
}

impl Bench {
    fn new(settings: &Settings) -> Bench {
        let mut work = settings.work();
        let ftl = Ftl::new(settings, true, &mut work);
        let device = Device::new(settings);
        if device.array().overlaps_steps() {
            work.keep_apart();
            work.number_loads();
        }
        Bench { device, ftl, work, pool: Pool::default(), done: Vec::new() }
    }

    fn ask(&mut self, (time_ns, op, lpn): Ask) -> u32 {
        let pages = Pages { first: lpn, pages: 1, ..Pages::NONE };
        let id = self.pool.insert(Request::new(1, time_ns, op, 0, 4096, pages));
        let Bench { device, ftl, work, pool, done } = self;
        device.accept(id, &mut Turn { now_ns: time_ns, pool, ftl, work, done }, |_| std::iter::empty());
        id
    }

    fn issue(&mut self, now_ns: u64) {
        let Bench { device, ftl, work, pool, done } = self;
        device.issue(&mut Turn { now_ns, pool, ftl, work, done });
    }

    /// Lets everything that is due up to `until_ns` happen.
    fn run(&mut self, until_ns: u64) {
        while self.device.next_ns() <= until_ns {
            let now_ns = self.device.next_ns();
            self.device.advance(now_ns, &mut self.pool, &mut self.done);
            self.issue(now_ns);
        }
    }
}

/// Checks that each request is not ready at t - 1 and is ready at t.
fn ready(settings: &Settings, asks: &[Ask], expected: &[u64]) {
    assert_eq!(asks.len(), expected.len());
    for (wanted, &ready_ns) in expected.iter().enumerate() {
        let mut bench = Bench::new(settings);
        let mut times: Vec<u64> = asks.iter().map(|&(time_ns, ..)| time_ns).collect();
        times.dedup();
        let mut ids = Vec::new();
        for time_ns in times {
            // Work that ends at the instant of an arrival ends before the request arrives.
            bench.run(time_ns.min(ready_ns - 1));
            if time_ns < ready_ns {
                ids.extend(asks.iter().filter(|ask| ask.0 == time_ns).map(|&ask| bench.ask(ask)));
                bench.issue(time_ns);
            }
        }
        bench.run(ready_ns - 1);
        assert!(!bench.done.contains(&ids[wanted]), "request {wanted} is ready before {ready_ns} ns");
        bench.run(ready_ns);
        assert!(bench.done.contains(&ids[wanted]), "request {wanted} is not ready at {ready_ns} ns");
    }
}

#[test]
fn two_dies_serve_one_operation_at_a_time_unless_interleaved() {
    let serial = chip(2, 1, PLAIN());
    ready(&serial, &[read(0), read(1)], &[READ, 2 * READ]);
    ready(&serial, &[write(0), write(1)], &[PROGRAM, 2 * PROGRAM]);
    let both = chip(2, 1, interleaved());
    ready(&both, &[read(0), read(1), read(2)], &[READ, READ, 2 * READ]);
    ready(&both, &[write(0), write(1), read(3)], &[PROGRAM, PROGRAM, PROGRAM + READ]);
    // With one die, interleaving changes nothing.
    ready(&chip(1, 1, interleaved()), &[read(0), read(1)], &[READ, 2 * READ]);
}

#[test]
fn interleaved_dies_share_their_channels_bus() {
    let both = with_bus(&chip(2, 1, interleaved()));
    ready(&both, &[read(0), read(1)], &[READ + BUS, READ + 2 * BUS]);
    ready(&both, &[write(0), write(1)], &[BUS + PROGRAM, 2 * BUS + PROGRAM]);
    // The read's data wait for the write's data, which are going in.
    ready(&both, &[read(0), write(1)], &[2 * BUS, BUS + PROGRAM]);
    // The same holds for the dies of two chips on one channel: four dies, one bus.
    let mut four = with_bus(&chip(2, 1, interleaved()));
    four.flash.chips_per_channel = 2;
    let asks = [read(0), read(1), read(2), read(3)];
    ready(&four, &asks, &[READ + BUS, READ + 2 * BUS, READ + 3 * BUS, READ + 4 * BUS]);
    // With two channels, two dies share each bus.
    four.flash.chips_per_channel = 1;
    four.flash.channels = 2;
    ready(&four, &asks, &[READ + BUS, READ + BUS, READ + 2 * BUS, READ + 2 * BUS]);
}

/// Returns a device whose next write of LPN 0 (and its neighbours on other LUNs) collects a block with one
/// valid page: see `collection_delays_the_write_that_needs_a_block` of `device_timing.rs`.
fn collecting(settings: &Settings) -> (Settings, Vec<Ask>, u64) {
    let mut settings = settings.clone();
    let units = settings.flash.luns();
    // Each LUN has four blocks.
    let planes =
        settings.flash.dies_per_chip * settings.flash.planes_per_die / settings.flash.luns_per_chip();
    settings.flash.blocks_per_plane = 4 / planes;
    settings.flash.pages_per_block = 4;
    settings.ftl.over_provisioning_ppm = 500_000;
    let order = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 4];
    let asks: Vec<Ask> =
        order.iter().flat_map(|&page| (0..units).map(move |unit| write(page * units + unit))).collect();
    // The start is long after everything has ended.
    (settings, asks, 100_000_000)
}

/// Checks the end times of requests made after the writes of [`collecting`], relative to the start that it returns.
fn ready_after(settings: &Settings, asks: &[Ask], expected: &[u64]) {
    let (settings, all, start_ns) = collecting(settings);
    let mut bench = Bench::new(&settings);
    for &ask in &all {
        bench.ask(ask);
    }
    bench.issue(0);
    bench.run(start_ns);
    assert!(bench.device.is_idle());
    bench.done.clear();
    let mut ids = Vec::new();
    for (index, &(time_ns, op, lpn)) in asks.iter().enumerate() {
        bench.run(start_ns + time_ns);
        ids.push(bench.ask((start_ns + time_ns, op, lpn)));
        if asks.get(index + 1).is_none_or(|next| next.0 > time_ns) {
            bench.issue(start_ns + time_ns);
        }
    }
    let mut times = expected.to_vec();
    times.sort_unstable();
    times.dedup();
    for ready_ns in times {
        for (until_ns, done) in [(ready_ns - 1, false), (ready_ns, true)] {
            bench.run(start_ns + until_ns);
            for (index, id) in ids.iter().enumerate().filter(|&(index, _)| expected[index] == ready_ns) {
                assert_eq!(bench.done.contains(id), done, "request {index} at {until_ns} ns");
            }
        }
    }
}

/// The time of the copies, of the erasure, and of the write itself.
const COLLECTION: u64 = READ + PROGRAM + ERASE + PROGRAM;

#[test]
fn one_die_reads_while_the_other_erases() {
    let both = chip(2, 1, interleaved());
    // LPN 1 is on the other die.
    ready_after(&both, &[write(0), at(400 * US, read(1))], &[COLLECTION, 400 * US + READ]);
    // Without interleaving, the two dies are one LUN, and the read waits for the whole chip.
    let serial = chip(2, 1, PLAIN());
    ready_after(&serial, &[write(0), at(400 * US, read(5))], &[COLLECTION, COLLECTION + READ]);
}

#[test]
fn planes_work_at_once_on_operations_of_one_kind() {
    let free = chip(1, 2, planes(MultiPlane::Free));
    ready(&free, &[write(0), write(1), write(2)], &[PROGRAM, PROGRAM, 2 * PROGRAM]);
    ready(&free, &[read(0), read(1)], &[READ, READ]);
    // A read and a write cannot share an operation; the older one goes first.
    ready(&free, &[write(0), read(1)], &[PROGRAM, PROGRAM + READ]);
    let off = chip(1, 2, PLAIN());
    ready(&off, &[write(0), write(1)], &[PROGRAM, 2 * PROGRAM]);
}

#[test]
fn the_data_of_a_multi_plane_operation_go_one_after_the_other() {
    let free = with_bus(&chip(1, 2, planes(MultiPlane::Free)));
    ready(&free, &[write(0), write(1)], &[2 * BUS + PROGRAM, 2 * BUS + PROGRAM]);
    ready(&free, &[read(0), read(1)], &[READ + BUS, READ + 2 * BUS]);
    // A third read begins when the data of both reads are out.
    ready(&free, &[read(0), read(1), read(2)], &[READ + BUS, READ + 2 * BUS, 2 * READ + 3 * BUS]);
}

#[test]
fn the_same_offset_is_asked_for_unless_planes_are_free() {
    // Plane 0 is at page 1 of its block when plane 1 is at page 0.
    let asks = [write(0), at(PROGRAM, write(0)), at(PROGRAM, write(1))];
    let same = chip(1, 2, planes(MultiPlane::SameOffset));
    ready(&same, &asks, &[PROGRAM, 2 * PROGRAM, 3 * PROGRAM]);
    ready(&chip(1, 2, planes(MultiPlane::Free)), &asks, &[PROGRAM, 2 * PROGRAM, 2 * PROGRAM]);
    // At the start, both planes are at the same page; reads go together too.
    ready(&same, &[write(0), write(1)], &[PROGRAM, PROGRAM]);
    let level = [write(0), write(1), at(PROGRAM, read(0)), at(PROGRAM, read(1))];
    ready(&same, &level, &[PROGRAM, PROGRAM, PROGRAM + READ, PROGRAM + READ]);
}

#[test]
fn planes_erase_at_once() {
    // Both planes collect garbage: each does a copy, an erasure and a program, at the same times as the other.
    let free = chip(1, 2, planes(MultiPlane::Free));
    ready_after(&free, &[write(0), write(1)], &[COLLECTION, COLLECTION]);
    let same = chip(1, 2, planes(MultiPlane::SameOffset));
    ready_after(&same, &[write(0), write(1)], &[COLLECTION, COLLECTION]);
}

#[test]
fn planes_of_different_dies_are_no_multi_plane_operation() {
    let apart = chip(2, 1, planes(MultiPlane::Free));
    ready(&apart, &[read(0), read(1)], &[READ, 2 * READ]);
    // With interleaving, the dies work at the same time anyway; with both options, all four planes do.
    let all = Parallel { interleave: true, ..planes(MultiPlane::Free) };
    ready(&chip(2, 1, all), &[read(0), read(1)], &[READ, READ]);
    ready(&chip(2, 2, all), &[write(0), write(1), write(2), write(3)], &[PROGRAM; 4]);
    let off = chip(2, 2, planes(MultiPlane::Free));
    // Dies take turns: LPN 0 and 2 are on die 0, 1 and 3 on die 1.
    let asks = [write(0), write(1), write(2), write(3)];
    ready(&off, &asks, &[PROGRAM, 2 * PROGRAM, PROGRAM, 2 * PROGRAM]);
}

#[test]
fn data_of_the_next_program_go_in_while_the_cells_program() {
    let cached = with_bus(&chip(1, 1, Parallel { cache_program: true, ..PLAIN() }));
    let asks = [write(0), write(1), write(2)];
    ready(&cached, &asks, &[BUS + PROGRAM, BUS + 2 * PROGRAM, BUS + 3 * PROGRAM]);
    let plain = with_bus(&chip(1, 1, PLAIN()));
    ready(&plain, &asks, &[BUS + PROGRAM, 2 * (BUS + PROGRAM), 3 * (BUS + PROGRAM)]);
    // On a slow bus (409.6 us a page), the cells wait for the data.
    let mut slow = cached.clone();
    slow.flash.transfer_ps = 100_000;
    let bus = 10 * BUS;
    ready(&slow, &asks, &[bus + PROGRAM, 2 * bus + PROGRAM, 3 * bus + PROGRAM]);
    // With two dies, the data take turns on the bus, and the cells overlap.
    let two = with_bus(&chip(2, 1, Parallel { interleave: true, cache_program: true, ..PLAIN() }));
    let asks = [write(0), write(1), write(2), write(3)];
    let (first, second) = (BUS + PROGRAM, 2 * BUS + PROGRAM);
    ready(&two, &asks, &[first, second, first + PROGRAM, second + PROGRAM]);
}

#[test]
fn the_next_page_is_sensed_while_data_go_out() {
    let cached = with_bus(&chip(1, 1, Parallel { cache_read: true, ..PLAIN() }));
    let asks = [read(0), read(1), read(2)];
    // Sensing (35 us) takes less time than a transfer (40.96 us): the bus is the bottleneck.
    ready(&cached, &asks, &[READ + BUS, READ + 2 * BUS, READ + 3 * BUS]);
    // With transfers of 10.24 us, the cells are the bottleneck.
    let mut fast = cached.clone();
    fast.flash.transfer_ps = 2_500;
    let bus = BUS / 4;
    ready(&fast, &asks, &[READ + bus, 2 * READ + bus, 3 * READ + bus]);
    let plain = with_bus(&chip(1, 1, PLAIN()));
    ready(&plain, &asks, &[READ + BUS, 2 * (READ + BUS), 3 * (READ + BUS)]);
    // A write does not overlap a read.
    ready(&cached, &[read(0), write(1)], &[READ + BUS, READ + BUS + BUS + PROGRAM]);
}

#[test]
fn a_read_interrupts_a_program_at_its_cost() {
    let on = chip(1, 1, suspending(Suspend::ProgramErase));
    let interrupted = 20 * US + READ + 20 * US;
    let asks = [write(0), at(100 * US, read(1))];
    ready(&on, &asks, &[PROGRAM + interrupted, 100 * US + 20 * US + READ]);
    // Under noop, the read interrupts the program as well.
    let mut noop = on.clone();
    noop.device.scheduler = "noop".into();
    ready(&noop, &asks, &[PROGRAM + interrupted, 100 * US + 20 * US + READ]);
    for suspend in [Suspend::Off, Suspend::Erase] {
        ready(&chip(1, 1, suspending(suspend)), &asks, &[PROGRAM, PROGRAM + READ]);
    }
    // The read also interrupts the program if suspending and resuming take no time.
    let free = Parallel { suspend_ns: 0, resume_ns: 0, ..suspending(Suspend::ProgramErase) };
    ready(&chip(1, 1, free), &asks, &[PROGRAM + READ, 100 * US + READ]);
}

#[test]
fn reads_that_have_come_share_a_suspension_and_later_ones_interrupt_anew() {
    let on = chip(1, 1, suspending(Suspend::ProgramErase));
    let first = 100 * US + 20 * US + READ;
    let two = [write(0), at(100 * US, read(1)), at(100 * US, read(2))];
    ready(&on, &two, &[PROGRAM + 40 * US + 2 * READ, first, first + READ]);
    // The second read arrives during the first: the program is resumed, then interrupted again.
    let later = [write(0), at(100 * US, read(1)), at(140 * US, read(2))];
    ready(&on, &later, &[PROGRAM + 2 * (40 * US + READ), first, first + 20 * US + 20 * US + READ]);
    // With at most one suspension, the second read waits for the program.
    let once = Parallel { max_suspensions: 1, ..suspending(Suspend::ProgramErase) };
    let end = PROGRAM + 40 * US + READ;
    ready(&chip(1, 1, once), &later, &[end, first, end + READ]);
}

#[test]
fn what_ends_soon_or_is_the_reads_own_block_is_not_interrupted() {
    let on = chip(1, 1, suspending(Suspend::ProgramErase));
    // 20 us before the program's end, suspending it would take just as long; a nanosecond earlier it is worthwhile.
    ready(&on, &[write(0), at(330 * US, read(1))], &[PROGRAM, PROGRAM + READ]);
    let early = 330 * US - 1;
    ready(&on, &[write(0), at(early, read(1))], &[PROGRAM + 40 * US + READ, early + 20 * US + READ]);
    ready(&on, &[write(0), at(100 * US, read(0))], &[PROGRAM, PROGRAM + READ]);
}

#[test]
fn an_erasure_is_interrupted_too() {
    for suspend in [Suspend::Erase, Suspend::ProgramErase] {
        // The erasure runs from 385 us on; the read comes at 500 us and is of LPN 5, in another block.
        let asks = [write(0), at(500 * US, read(5))];
        let on = chip(1, 1, suspending(suspend));
        ready_after(&on, &asks, &[COLLECTION + 40 * US + READ, 500 * US + 20 * US + READ]);
    }
    ready_after(&chip(1, 1, PLAIN()), &[write(0), at(500 * US, read(5))], &[COLLECTION, COLLECTION + READ]);
}

#[test]
fn a_suspended_die_leaves_the_other_alone() {
    let two = chip(2, 1, Parallel { interleave: true, ..suspending(Suspend::ProgramErase) });
    let asks = [write(0), write(1), at(100 * US, read(2))];
    ready(&two, &asks, &[PROGRAM + 40 * US + READ, PROGRAM, 100 * US + 20 * US + READ]);
}

#[test]
fn reads_pass_what_waits_at_a_die() {
    let asks = [write(0), write(1), at(US, read(2))];
    let in_order = chip(1, 1, PLAIN());
    ready(&in_order, &asks, &[PROGRAM, 2 * PROGRAM, 2 * PROGRAM + READ]);
    let passing = chip(1, 1, Parallel { out_of_order: true, ..PLAIN() });
    ready(&passing, &asks, &[PROGRAM, 2 * PROGRAM + READ, PROGRAM + READ]);
    // A read of a page whose program has ended, or of a page that holds older data, waits for nothing else in the block
    // (it once waited for all programs of the block).
    let written = [write(0), write(1), write(2), at(US, read(0))];
    ready(&passing, &written, &[PROGRAM, 2 * PROGRAM + READ, 3 * PROGRAM + READ, PROGRAM + READ]);
    // A read overtakes neither the operation in service nor the program of its own page.
    let same = [write(0), write(1), at(US, read(1))];
    ready(&passing, &same, &[PROGRAM, 2 * PROGRAM, 2 * PROGRAM + READ]);
    // If only one read may overtake the oldest write, that write goes next.
    let one = chip(1, 1, Parallel { out_of_order: true, max_passed: 1, ..PLAIN() });
    let asks = [write(0), write(1), at(US, read(2)), at(US, read(3))];
    let passed = PROGRAM + READ;
    ready(&one, &asks, &[PROGRAM, passed + PROGRAM, passed, passed + PROGRAM + READ]);
    // With two dies, each die keeps its own order.
    let two = chip(2, 1, Parallel { interleave: true, out_of_order: true, ..PLAIN() });
    let asks = [write(0), write(1), write(2), write(3), at(US, read(4))];
    ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM + READ, 2 * PROGRAM, PROGRAM + READ]);
}

#[test]
fn a_command_takes_the_bus_before_the_cells() {
    let mut plain = with_bus(&chip(1, 1, PLAIN()));
    plain.flash.command_ns = 2 * US;
    ready(&plain, &[read(0)], &[2 * US + READ + BUS]);
    ready(&plain, &[write(0)], &[2 * US + BUS + PROGRAM]);
    let mut planes = with_bus(&chip(1, 2, planes(MultiPlane::Free)));
    planes.flash.command_ns = 2 * US;
    ready(&planes, &[write(0), write(1)], &[2 * (2 * US + BUS) + PROGRAM; 2]);
    ready(&planes, &[read(0), read(1)], &[2 * 2 * US + READ + BUS, 2 * 2 * US + READ + 2 * BUS]);
    // With two chips on a channel, the second command waits until the first has been sent.
    let mut two = chip(1, 1, PLAIN());
    two.flash.command_ns = 2 * US;
    two.flash.chips_per_channel = 2;
    ready(&two, &[read(0), read(1)], &[2 * US + READ, 4 * US + READ]);
    // A collection sends four commands.
    let mut one = chip(1, 1, PLAIN());
    one.flash.command_ns = 2 * US;
    ready_after(&one, &[write(0)], &[COLLECTION + 4 * 2 * US]);
}

#[test]
fn commands_have_their_own_times() {
    let mut flash = with_bus(&chip(1, 1, PLAIN()));
    flash.flash.command_ns = US;
    flash.flash.read_command_ns = Some(2 * US);
    ready(&flash, &[read(0)], &[2 * US + READ + BUS]);
    ready(&flash, &[write(0)], &[US + BUS + PROGRAM]);
    flash.flash.program_command_ns = Some(3 * US);
    ready(&flash, &[write(0)], &[3 * US + BUS + PROGRAM]);
    let mut one = chip(1, 1, PLAIN());
    one.flash.erase_command_ns = Some(5 * US);
    ready_after(&one, &[write(0)], &[COLLECTION + 5 * US]);
}

/// The command of a read goes before waiting data transfers if `flash.bus` says so. Of three chips on a channel, the
/// first sends its data out and the second waits to send; then the third gets a request.
#[test]
fn commands_of_reads_go_before_transfers_where_asked() {
    for options in [PLAIN(), Parallel { cache_read: true, ..PLAIN() }] {
        let mut three = with_bus(&chip(1, 1, options));
        three.flash.command_ns = 2 * US;
        three.flash.chips_per_channel = 3;
        let first = 2 * US + READ + BUS;
        let [reads, writes] = [read(2), write(2)].map(|third| [read(0), read(1), at(50 * US, third)]);
        let behind = first + BUS + 2 * US;
        ready(&three, &reads, &[first, first + BUS, behind + READ + BUS]);
        ready(&three, &writes, &[first, first + BUS, behind + BUS + PROGRAM]);
        three.flash.bus = BusOrder::CommandsFirst;
        let second = first + 2 * US + BUS;
        ready(&three, &reads, &[first, second, second + BUS]);
        // The command of a program is sent with its data.
        ready(&three, &writes, &[first, first + BUS, behind + BUS + PROGRAM]);
    }
}

#[test]
fn static_allocation_follows_its_order() {
    let device = |order: &str, parallel| {
        let mut settings = with_bus(&chip(2, 2, parallel));
        settings.flash.channels = 2;
        settings.flash.chips_per_channel = 2;
        settings.ftl.allocation = Allocation::named(order);
        settings
    };
    let asks = [read(0), read(1)];
    // There are two channels, with two chips on each and two dies in each chip. The last order puts both pages on one
    // die.
    let full = Parallel { interleave: true, ..PLAIN() };
    ready(&device("cwdp", full), &asks, &[READ + BUS, READ + BUS]);
    ready(&device("wcdp", full), &asks, &[READ + BUS, READ + 2 * BUS]);
    ready(&device("dcwp", full), &asks, &[READ + BUS, READ + 2 * BUS]);
    ready(&device("pcwd", full), &asks, &[READ + BUS, 2 * (READ + BUS)]);
    let planes = Parallel { multi_plane: MultiPlane::Free, ..full };
    ready(&device("pcwd", planes), &asks, &[READ + BUS, READ + 2 * BUS]);
    // If dies do not work on their own, both pages go to one chip.
    ready(&device("dcwp", PLAIN()), &asks, &[READ + BUS, 2 * (READ + BUS)]);
    ready(&device("cdwp", PLAIN()), &asks, &[READ + BUS, READ + BUS]);
}

#[test]
fn dynamic_allocation_takes_the_next_idle_chip() {
    let mut two = chip(1, 1, PLAIN());
    two.flash.channels = 2;
    for scheduler in ["direct", "noop"] {
        two.device.scheduler = scheduler.into();
        two.ftl.allocation = Allocation::CHANNEL_FIRST;
        // By static allocation, LPN 0 and 2 belong on chip 0.
        ready(&two, &[write(0), write(2)], &[PROGRAM, 2 * PROGRAM]);
        two.ftl.allocation = Allocation::Dynamic;
        ready(&two, &[write(0), write(2)], &[PROGRAM, PROGRAM]);
        let asks = [write(0), write(2), at(PROGRAM, read(0)), at(PROGRAM, read(2))];
        ready(&two, &asks, &[PROGRAM, PROGRAM, PROGRAM + READ, PROGRAM + READ]);
        // Chip 0 serves a read (of LPN 4, which was never written): the write goes to chip 1, and the next write waits.
        let asks = [read(4), write(0), write(2)];
        // Whether chip 0 becomes idle first or is next in turn, it does the write after its read.
        ready(&two, &asks, &[READ, PROGRAM, READ + PROGRAM]);
    }
}

/// Makes a device of two chips under dynamic allocation, without bus time.
fn two_dynamic() -> Settings {
    let mut two = chip(1, 1, PLAIN());
    two.flash.channels = 2;
    two.ftl.allocation = Allocation::Dynamic;
    two
}

const fn trim(lpn: u32) -> Ask {
    (0, Op::Trim, lpn)
}

#[test]
fn under_direct_a_write_waits_until_a_die_is_free() {
    let two = two_dynamic();
    // LPN 0 and 1 take both chips until 350 us, and LPN 2 and 3 wait. The read of LPN 0 waits at chip 0, so that at 350
    // us only chip 1 is free: LPN 2 goes there, and LPN 3 to chip 0 after the read.
    let asks = [write(0), write(1), write(2), write(3), at(100 * US, read(0))];
    let after = PROGRAM + READ;
    ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, after + PROGRAM, after]);
    // If both writes had waited at their chips since their arrival, they would end at 700 us and the read at 735 us.
    // In order of arrival, LPN 2 goes before LPN 4, which comes at the instant at which the chips become free.
    let asks = [write(0), write(1), write(2), at(PROGRAM, write(4)), at(PROGRAM, write(6))];
    ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, 2 * PROGRAM, 3 * PROGRAM]);
}

#[test]
fn a_read_waits_for_the_unbound_write_of_its_page() {
    for out_of_order in [false, true] {
        let mut two = two_dynamic();
        two.flash.parallel.out_of_order = out_of_order;
        let busy = [write(0), write(1)];
        // LPN 2 waits until 350 us and goes to chip 0, followed by its read; LPN 9, which was never written, is on chip
        // 1 and is read once that chip is idle.
        let asks = [busy[0], busy[1], write(2), at(100 * US, read(2)), at(200 * US, read(9))];
        let last = 2 * PROGRAM + READ;
        ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, last, PROGRAM + READ]);
        // The read came between two writes of its page and waits only for the first, on chip 0. The second
        // goes to chip 1 at the same time.
        let asks = [busy[0], busy[1], write(2), at(100 * US, read(2)), at(100 * US, write(2))];
        ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, last, 2 * PROGRAM]);
        // A read of a page that is bound waits for no other page: LPN 3 still waits for a die when LPN 0 is read.
        let asks = [busy[0], busy[1], write(3), at(100 * US, read(0)), at(100 * US, read(3))];
        let read_at = PROGRAM + READ;
        ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, read_at, 2 * PROGRAM + READ]);
    }
}

#[test]
fn trims_and_flushes_wait_for_unbound_writes() {
    let two = two_dynamic();
    // The trim of LPN 2 takes no time of its own and is served when the write before it is bound, at 350 us
    // on chip 0. The read behind it finds no data: it goes where LPN 2 would be, to chip 0.
    let asks = [write(0), write(1), write(2), at(100 * US, trim(2)), at(200 * US, read(2))];
    ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, PROGRAM, 2 * PROGRAM + READ]);
    // The flush ends with the last write before it; requests that came after it begin then.
    let flush = (100 * US, Op::Flush, 0);
    let asks = [write(0), write(1), write(2), flush, at(100 * US, write(3))];
    ready(&two, &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, 2 * PROGRAM, 3 * PROGRAM]);
}

#[test]
fn free_planes_of_a_die_are_bound_together() {
    let dynamic = |parallel| {
        let mut settings = chip(1, 2, parallel);
        settings.ftl.allocation = Allocation::Dynamic;
        settings
    };
    // Both planes are free at 0 and at 350 us: each time, two pages go together.
    let asks = [write(0), write(1), write(2), write(3)];
    ready(&dynamic(planes(MultiPlane::Free)), &asks, &[PROGRAM, PROGRAM, 2 * PROGRAM, 2 * PROGRAM]);
    // A plane whose die is busy is not free: LPN 1 comes too late to go with LPN 0.
    let asks = [write(0), at(US, write(1)), at(2 * US, write(2))];
    ready(&dynamic(planes(MultiPlane::Free)), &asks, &[PROGRAM, 2 * PROGRAM, 2 * PROGRAM]);
    // A die that can take in data while it programs counts as free for the next program.
    let cached = with_bus(&dynamic(Parallel { cache_program: true, ..PLAIN() }));
    let asks = [write(0), write(1), write(2)];
    ready(&cached, &asks, &[BUS + PROGRAM, BUS + 2 * PROGRAM, BUS + 3 * PROGRAM]);
    // Without a bus there is no data to take in meanwhile: LPN 1 waits for its die, behind a read that is already
    // there.
    let mut bare = chip(1, 1, Parallel { cache_program: true, ..PLAIN() });
    bare.ftl.allocation = Allocation::Dynamic;
    let asks = [write(0), at(US, write(1)), at(2 * US, read(0))];
    ready(&bare, &asks, &[PROGRAM, 2 * PROGRAM + READ, PROGRAM + READ]);
}

#[test]
fn results_name_what_was_busy() {
    let mut both = with_bus(&chip(2, 1, interleaved()));
    both.flash.channels = 2;
    let page = |lpn: u64, op| Record { op, offset: lpn * 4096, size: 4096, ..Record::FLUSH };
    // Chips 0 and 1 are on channels 0 and 1, with two dies each: LPN 2 is on die 1 of chip 0.
    let (report, _) = checked(&both, vec![page(0, Op::Read), page(2, Op::Write)]);
    let used = &report.utilization;
    assert_eq!(used.die_busy_ns, [READ + BUS, BUS + PROGRAM, 0, 0]);
    // The read's data wait for the write's data (which go in from 0 on); both dies work until 2 * BUS.
    assert_eq!(used.chip_busy_ns, [BUS + PROGRAM, 0]);
    assert_eq!(used.channel_busy_ns, [2 * BUS, 0]);
    let bottleneck = used.bottleneck.as_ref().expect("something was busy");
    assert_eq!((bottleneck.name.as_str(), bottleneck.utilization), ("chip 0 die 1", 1.0));
    let (report, _) = checked(&chip(2, 1, PLAIN()), vec![page(0, Op::Read)]);
    assert!(report.utilization.die_busy_ns.is_empty());
    assert_eq!(report.utilization.bottleneck.expect("something was busy").name, "chip 0");
}

#[test]
fn results_count_what_overlapped() {
    let all = Parallel {
        interleave: true,
        cache_program: true,
        cache_read: true,
        suspend: Suspend::ProgramErase,
        out_of_order: true,
        ..planes(MultiPlane::Free)
    };
    let settings = with_bus(&chip(1, 2, all));
    let page =
        |time_ns, lpn: u64, op| Record { time_ns, op, offset: lpn * 4096, size: 4096, ..Record::FLUSH };
    let trace = vec![
        page(0, 0, Op::Write),
        page(0, 1, Op::Write),
        page(0, 2, Op::Write),
        page(10 * US, 40, Op::Read),
        page(10 * US, 41, Op::Read),
        page(10 * US, 42, Op::Read),
        page(1_500 * US, 44, Op::Write),
        page(1_650 * US, 45, Op::Read),
    ];
    let (report, _) = checked(&settings, trace);
    let p = &report.parallel;
    assert_eq!((p.multi_plane.program, p.multi_plane.read, p.multi_plane.erase), (1, 1, 0));
    assert_eq!((p.cached.read, p.suspensions.program, p.suspensions.erase), (1, 1 + 1, 0));
    assert_eq!(p.passed, 2);
}
