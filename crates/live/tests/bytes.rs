//! Data that is written can be read back, whatever FTL holds it and whatever has moved it.

use crate::common;

use std::sync::Arc;

use ftlab_core::ftl;
use ftlab_core::metrics::Report;
use ftlab_live::engine::{Asked, Engine, Sink};
use ftlab_live::nbd::{Command, Flags, Form, Request};
use ftlab_live::pace::Time;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A request with its data, and what a read of it must return.
struct Case {
    request: Request,
    data: Vec<u8>,
    expected: Vec<u8>,
}

fn draw(random: &mut Xoshiro256PlusPlus, model: &mut [u8], page: usize, area: (usize, usize)) -> Case {
    let (first, last) = area;
    let offset = random.random_range(first..last);
    let length = random.random_range(1..=(last - offset).min(5 * 4096));
    let end = offset + length;
    let command = [Command::Read, Command::Write, Command::Write, Command::Trim, Command::WriteZeroes]
        [random.random_range(0..5)];
    let flags = match command {
        Command::WriteZeroes => Flags(random.random_range(0..4)),
        _ => Flags(u16::from(random.random_bool(0.1))),
    };
    let mut data = vec![0; if command == Command::Write { length } else { 0 }];
    random.fill(&mut data[..]);
    match command {
        Command::Write => model[offset..end].copy_from_slice(&data),
        Command::WriteZeroes => model[offset..end].fill(0),
        Command::Trim => {
            let whole = offset.next_multiple_of(page)..end / page * page;
            if whole.start < whole.end {
                model[whole].fill(0);
            }
        }
        _ => {}
    }
    let expected = if command == Command::Read { model[offset..end].to_vec() } else { Vec::new() };
    let request = Request { command, flags, cookie: 0, offset: offset as u64, length: length as u64 };
    Case { request, data, expected }
}

/// Sends random requests in batches, and compares what is read with a plain array; the device is overwritten several
/// times.
fn check(keys: &[(&str, &str)], seed: u64, time: Time) -> Report {
    let (resolved, prepared) = common::device(keys);
    let settings = &resolved.settings;
    let mut engine = Engine::new(settings, (prepared, None), (time, false), None);
    let (kept, sink) = common::client();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let page = settings.ftl.logical_page_bytes as usize;
    // In every batch each request has its own area, since the device decides the order of the requests.
    let area = 8 * 4096;
    let areas = settings.user_bytes() as usize / area;
    let mut model = vec![0; settings.user_bytes() as usize];
    for round in 0..400u64 {
        let first = random.random_range(0..areas);
        let cases: Vec<Case> = (0..6)
            .map(|at| (first + at) % areas * area)
            .map(|start| draw(&mut random, &mut model, page, (start, start + area)))
            .collect();
        for (cookie, case) in (0..).zip(&cases) {
            let request = Request { cookie, ..case.request };
            engine.ask(&Asked {
                request,
                data: &case.data,
                form: Form::Simple,
                stream: 0,
                program: 0,
                sink: &sink,
                charged: 0,
            });
        }
        engine.go().unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        engine.drain().unwrap();
        let replies = kept.take();
        assert_eq!(replies.len(), cases.len(), "{keys:?}: round {round}");
        for reply in replies {
            assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0], "{keys:?}: round {round}");
            let cookie = u64::from_be_bytes(reply[8..16].try_into().unwrap());
            let case = &cases[cookie as usize];
            assert!(reply[16..] == case.expected, "{keys:?}: round {round}: {:?}", case.request);
        }
    }
    read_all(&mut engine, &kept, &sink, &model, keys);
    let (report, live) = engine.report();
    let erases: u64 = report.flash.erases.total();
    assert!(erases > 20, "{keys:?}: nothing was collected");
    // No more is stored than the flash can hold.
    assert!(live.payload_bytes > 0 && live.payload_bytes <= settings.flash.raw_bytes());
    report
}

fn read_all(
    engine: &mut Engine,
    kept: &common::Kept,
    sink: &Arc<dyn Sink>,
    model: &[u8],
    keys: &[(&str, &str)],
) {
    let length = model.len() as u32;
    let request =
        Request { command: Command::Read, flags: Flags(0), cookie: 9, offset: 0, length: length.into() };
    engine.ask(&Asked {
        request,
        data: &[],
        form: Form::Structured,
        stream: 0,
        program: 0,
        sink,
        charged: 0,
    });
    engine.go().unwrap();
    engine.drain().unwrap();
    let reply = kept.take().pop().unwrap();
    assert!(reply[28..] == *model, "{keys:?}: the whole device");
}

#[test]
fn every_ftl_returns_what_was_written() {
    for (seed, kind) in (0..).zip(ftl::choices()) {
        check(&[("ftl.kind", kind.name), ("ftl.log_blocks", "15%")], seed, Time::Free);
    }
}

#[test]
fn so_do_merged_cut_and_padded_requests_and_small_logical_pages() {
    let real = Time::Real { speed: 1000.0 };
    check(&[("host.merge_limit", "64KiB"), ("host.scheduler", "map")], 20, Time::Free);
    check(&[("host.merge_limit", "64KiB"), ("host.scheduler", "row"), ("ftl.kind", "page")], 21, real);
    let coop = [("host.scheduler", "coop"), ("ftl.log_blocks", "15%")];
    check(&[coop[0], coop[1], ("ftl.kind", "fast")], 22, Time::Free);
    check(&[coop[0], coop[1], ("ftl.kind", "bast")], 23, real);
    check(&[("ftl.logical_page", "1KiB"), ("ftl.kind", "page")], 24, Time::Free);
    let block = ("device.write_buffer_policy", "block");
    let protected = ("device.power_loss_protection", "true");
    let link = [("device.link", "30MB/s"), ("device.link_duplex", "half"), ("device.command_time", "20us")];
    check(&[&link[..], &[("device.queue_depth", "16"), ("ftl.kind", "page")]].concat(), 26, real);
    let buffer = ("device.write_buffer", "96KiB");
    let deep = ("device.queue_depth", "16");
    check(&[buffer, deep, ("ftl.kind", "page"), ("device.write_buffer_policy", "lru")], 27, real);
    check(&[buffer, deep, ("ftl.kind", "dftl"), ("ftl.partial_write", "rmw")], 28, Time::Free);
    check(&[buffer, ("ftl.logical_page", "1KiB"), ("ftl.kind", "page"), link[0], link[1], link[2]], 29, real);
    check(&[buffer, ("ftl.kind", "fast"), ("ftl.log_blocks", "15%"), block], 30, Time::Free);
    check(&[buffer, deep, ("device.scheduler", "direct"), ("ftl.kind", "page"), protected], 31, real);
    let ahead = ("device.read_ahead", "64KiB");
    check(&[ahead, deep, ("ftl.kind", "dftl"), ("ftl.logical_page", "1KiB")], 32, Time::Free);
    check(&[ahead, buffer, ("ftl.kind", "page"), ("host.merge_limit", "64KiB")], 33, real);
    check(&[("device.scheduler", "vios"), ("ftl.kind", "page"), ("device.queue_depth", "64")], 25, real);
}

/// A read that carries mapping entries returns the page's data, be they up to date or not.
#[test]
fn a_map_held_by_the_host() {
    for (seed, (kind, policy)) in
        (20..).zip([("dftl", "lru"), ("dftl", "access-count"), ("tpftl", "lru"), ("msftl", "access-count")])
    {
        let keys = [
            ("ftl.kind", kind),
            ("ftl.mapping_cache", "1KiB"),
            ("host.map_cache", "2KiB"),
            ("host.map_region", "256KiB"),
            ("host.map_subregion", "64KiB"),
            ("host.map_policy", policy),
            ("host.map_threshold", "1"),
        ];
        let report = check(&keys, seed, Time::Free);
        let own = &report.own.expect("there are figures")["host_map"];
        let counts = ["hits", "stale", "evictions"].map(|name| own[name].expect("a number"));
        assert!(counts.iter().all(|&count| count > 0.0), "{kind} {policy}: {counts:?}");
    }
}
