//! A processor that moves pages between flash and memory (`host.flash_cpu`).

use crate::clients;
use ftlab_conformance as common;

use clients::{run_files, small};
use ftlab_files::clients::{Clients, FileOp, Kind, Step};
use ftlab_files::settings::{Files, Settings};

const PAGE: u64 = 4096;

/// Returns the paper's phone: one chip, reads of 45 us, programs of 240 us, and 10 us of host time for each operation.
fn phone(page_cache_bytes: u64, flash_cpu_ns: u64) -> Settings {
    let mut settings = Settings::from(common::settings());
    settings.ftl.kind = "page".into();
    (settings.flash.read, settings.flash.program) = (45_000.into(), 240_000.into());
    settings.files = Files { page_cache_bytes, flash_cpu_ns, ..Files::default() };
    settings
}

/// Processor time delays what follows a request. There are two writes, of two pages and of one page, the second 10 us
/// after the first; a read of one page once the first write has landed; and a write once the next request has landed.
/// Without processor time the first two writes land at 480 and 720 us. With 143 us per page the first lands at 480 +
/// 286 = 766: the client then submits the read, and the device begins the second write, which lands at 766 + 240 + 143
/// = 1149. The last write then arrives.
#[test]
fn pages_move_one_request_after_another() {
    let write = |page, pages| Step::Start(FileOp::Write { file: 0, offset: page * PAGE, size: pages * PAGE });
    let read = Step::Start(FileOp::Read { file: 0, offset: 0, size: PAGE });
    let script = vec![
        Step::Do(FileOp::Allocate { file: 0, size: 16 * PAGE }),
        write(0, 2),
        write(8, 1),
        Step::Await,
        read,
        Step::Await,
        write(12, 1),
        Step::Await,
    ];
    for (flash_cpu_ns, arrivals_us) in [(0, [0, 10, 480, 720]), (143_000, [0, 10, 766, 1149])] {
        let clients = Clients::scripts(vec![script.clone()]);
        let mut settings = phone(0, flash_cpu_ns);
        settings.files.operation_ns = Some(10_000);
        let (_, log) = run_files(&settings, clients, true);
        let mut arrivals: Vec<u64> = log.iter().map(|done| done.arrival_ns).collect();
        arrivals.sort_unstable();
        assert_eq!(arrivals, arrivals_us.map(|us| us * 1000), "{flash_cpu_ns}");
    }
}

/// With a processor that moves pages, benchmarks still end and lose no data, but take longer.
#[test]
fn benchmarks_run_checked() {
    for (kind, scheduler) in [(Kind::PostMark, "coop"), (Kind::SysBench, "noop"), (Kind::DBench, "irbw")] {
        let elapsed = [0, 143_000].map(|flash_cpu_ns| {
            let mut settings = phone(8 << 20, flash_cpu_ns);
            settings.ftl.kind = "fast".into();
            settings.host.scheduler = scheduler.into();
            settings.files.benchmark = Some(small(kind));
            let clients = Clients::of_benchmark(&settings).unwrap();
            let report = run_files(&settings, clients, true).0.benchmark.unwrap();
            report.throughput_bytes_per_s
        });
        assert!(elapsed[1] < elapsed[0], "{}: {elapsed:?}", kind.name());
    }
}
