//! Power cuts below every benchmark: what a file system asked to be durable survives.

use ftlab_conformance as common;

use common::settings;
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::settings::Settings as Stack;
use ftlab_core::sim::{Completion, Prepared};
use ftlab_core::workload::{Op, Record};
use ftlab_crash::{Cuts, Options, crash};
use ftlab_files::clients::{Clients, Kind, Parameters};
use ftlab_files::settings::{Files, Settings};

/// Records the requests of a small benchmark of the paper as they reach the block layer of a phone of 16 MiB.
fn requests_of(kind: Kind, stack: &Stack) -> Vec<Record> {
    let mut settings = Settings::from(stack.clone());
    settings.files = Files { page_cache_bytes: 512 << 20, discard: true, ..Files::default() };
    let paper = Parameters::of(kind);
    let second_ns = 1_000_000_000;
    settings.files.benchmark = Some(match kind {
        Kind::PostMark => Parameters { files: 16, transactions: 64, runs: 1, ..paper },
        Kind::SysBench => Parameters { file_size: 2 << 20, requests: 1000, ageing_ns: second_ns, ..paper },
        Kind::FileBench => {
            Parameters { file_size: 4 << 20, duration_ns: second_ns, runs: 1, sync_every: 1 << 20, ..paper }
        }
        Kind::DBench => Parameters {
            clients: 3,
            files: 10,
            file_size: 1 << 20,
            duration_ns: 2 * second_ns,
            ageing_ns: second_ns,
            ..paper
        },
    });
    let clients = Clients::of_benchmark(&settings).unwrap();
    let mut log = common::Log::default();
    let prepared = Prepared::new(&settings, &mut (), false).unwrap();
    ftlab_files::run(&settings, prepared, clients, &mut log).expect("a sound run");
    log.0.sort_by_key(|done| (done.dispatch_ns, done.id));
    let record = |done: &Completion| Record {
        time_ns: done.dispatch_ns,
        op: done.op,
        offset: done.offset,
        size: done.size,
        ..Record::FLUSH
    };
    log.0.iter().map(record).collect()
}

/// Under no policy does a power cut lose durable data; the requests are those of every benchmark, including its flushes
/// and discards.
#[test]
fn every_benchmark_under_every_policy() {
    for bench in [Kind::PostMark, Kind::SysBench, Kind::FileBench, Kind::DBench] {
        for kind in common::hybrids() {
            let mut settings = settings();
            settings.ftl.kind = kind.into();
            settings.flash.blocks_per_plane = 72;
            settings.ftl.over_provisioning_ppm = 150_000;
            settings.ftl.log_blocks_ppm = 100_000;
            settings.device.queue_depth = 4;
            let records = requests_of(bench, &settings);
            assert!(records.iter().any(|record| record.op == Op::Flush), "{}", bench.name());
            for scheduler in [vec!["noop"], common::schedulers(true)].concat() {
                settings.host.scheduler = scheduler.into();
                let options = Options {
                    cuts: Cuts::Random { count: common::cuts() / 20, mean: 500 },
                    seed: 5,
                    flaw: Flaw::None,
                };
                let mut reopen = || {
                    Ok(Box::new(records.clone().into_iter()) as Box<dyn ftlab_core::workload::Source + Send>)
                };
                let outcome = crash(&settings, &mut reopen, &options, &mut |_| true);
                let summary =
                    outcome.unwrap_or_else(|fault| panic!("{} {kind} {scheduler}: {fault}", bench.name()));
                println!("{} {kind} {scheduler}: {summary:?}", bench.name());
                assert!(summary.durable_writes > 0 && summary.torn_programs > 0, "{kind}: {summary:?}");
            }
        }
    }
}
