//! Tenants whose requests come from clients, each with a file system and a page cache in its part of the device.
use crate::clients;
use ftlab_conformance as common;

use clients::{run_files, small};
use common::{Log, bursts};
use ftlab_core::host::settings::Queues;
use ftlab_core::metrics::Report;
use ftlab_core::sim::{Completion, Prepared};
use ftlab_core::workload::Op;
use ftlab_core::workload::tenants::{Own, Tenant, Tenants};
use ftlab_files::clients::{Clients, Kind, fio};
use ftlab_files::settings::Settings;
use ftlab_files::{Load, run_tenants};

const MS: u64 = 1_000_000;

/// Makes a device with a page cache above it.
fn settings() -> Settings {
    let mut settings: Settings = common::settings().into();
    settings.flash.blocks_per_plane *= 4;
    settings.files.page_cache_bytes = 4 << 20;
    settings
}

/// Lets a device have tenants of these names, with keys of their own.
fn with_tenants(settings: &Settings, tenants: &[(&str, Own)]) -> Settings {
    let tenant = |(name, own): &(&str, Own)| Tenant {
        name: (*name).to_owned(),
        workload: settings.workload.clone(),
        clients: true,
        own: own.clone(),
    };
    let mut settings = settings.clone();
    settings.tenants = Tenants(tenants.iter().map(tenant).collect());
    settings
}

/// Runs loads together in check mode; returns the report, and the completions in the order of their ids.
fn together(settings: &Settings, loads: Vec<Load>) -> (Report, Vec<Completion>) {
    let mut log = Log::default();
    let prepared = Prepared::new(settings, &mut (), true).unwrap();
    let report = run_tenants(settings, prepared, loads, &mut log).expect("every invariant holds");
    log.0.sort_by_key(|row| row.id);
    (report, log.0)
}

fn benchmark(kind: Kind) -> Clients {
    small(kind).clients(7)
}

fn jobs(settings: &Settings, user_bytes: u64) -> Clients {
    let text = "[global]\nsize=512k\nrw=randrw\n[a]\nbs=4k\nfsync=8\n[b]\nbs=16k\ndirect=1\niodepth=4\n";
    Clients::of_jobs(&fio::parse("a.fio", text).unwrap(), settings, user_bytes).unwrap()
}

/// Returns a report as text, with what the clients of its first tenant saw as that of the whole run.
fn as_without_tenants(report: &Report) -> String {
    let mut report = report.clone();
    if let Some(tenants) = report.tenants.take() {
        let [tenant] = <[_; 1]>::try_from(tenants).expect("one tenant");
        report.benchmark = tenant.benchmark;
        report.page_cache = tenant.page_cache;
        report.file_system = tenant.file_system;
    }
    report.beside_tenants = None;
    serde_json::to_string(&report).expect("a report is JSON")
}

#[test]
fn one_tenant_is_none() {
    let settings = settings();
    let all: [&dyn Fn() -> Clients; 4] =
        [&|| benchmark(Kind::PostMark), &|| benchmark(Kind::SysBench), &|| benchmark(Kind::DBench), &|| {
            jobs(&settings, settings.user_bytes())
        }];
    for clients in all {
        let (expected, mut rows) = run_files(&settings, clients(), true);
        rows.sort_by_key(|row| row.id);
        for queues in [Queues::Shared, Queues::PerTenant] {
            let mut one = with_tenants(&settings, &[("a", Own::default())]);
            one.host.queues = queues;
            let (report, same) = together(&one, vec![Load::Clients(clients())]);
            assert_eq!(as_without_tenants(&report), as_without_tenants(&expected), "{}", clients().name);
            assert_eq!(format!("{same:?}"), format!("{rows:?}"), "{}", clients().name);
        }
    }
}

/// Where its part begins, and when it begins, is nothing that a tenant's clients notice.
#[test]
fn clients_notice_neither_where_nor_when_they_begin() {
    let settings = settings();
    let of = |own: Own| {
        let part = with_tenants(&settings, &[("a", own.clone()), ("b", own)]);
        let half = settings.user_bytes() / 2;
        let second = Load::Clients(jobs(&settings, half));
        together(&part, vec![Load::Source(Box::new(Vec::new().into_iter())), second])
    };
    let (early, rows) = of(Own::default());
    let (late, shifted) = of(Own { start_ns: 777 * MS, ..Own::default() });
    let runs = |report: &Report| {
        let bench = report.tenants.as_ref().unwrap()[1].benchmark.as_ref().unwrap();
        serde_json::to_string(&(&bench.runs, &bench.latency)).unwrap()
    };
    assert_eq!(runs(&early), runs(&late));
    assert_eq!(rows.len(), shifted.len());
    for (one, other) in rows.iter().zip(&shifted) {
        assert!(one.op == Op::Flush || one.offset >= settings.user_bytes() / 2);
        assert_eq!((one.offset, one.stream), (other.offset, 1));
        assert_eq!(one.arrival_ns + 777 * MS, other.arrival_ns);
        assert_eq!(one.complete_ns + 777 * MS, other.complete_ns);
    }
}

/// Clients, jobs and a source share a device; each stays in its part and in its time.
#[test]
fn each_stays_in_its_part_and_in_its_time() {
    for queues in [Queues::Shared, Queues::PerTenant] {
        let late = Own { start_ns: 300 * MS, duration_ns: Some(500 * MS), ..Own::default() };
        let mut settings =
            with_tenants(&settings(), &[("a", Own::default()), ("b", late), ("c", Own::default())]);
        settings.host.queues = queues;
        let third = settings.tenants.ranges(settings.user_bytes(), 4096);
        let bytes = |at: usize| third[at].to - third[at].from;
        let source = bursts(3, 500, bytes(2) / 4096);
        let moved = source.iter().filter(|record| matches!(record.op, Op::Read | Op::Write));
        let moved: u64 = moved.map(|record| record.size).sum();
        let loads = vec![
            Load::Clients(jobs(&settings, bytes(0))),
            Load::Clients(benchmark(Kind::SysBench)),
            Load::Source(Box::new(source.into_iter())),
        ];
        let (report, rows) = together(&settings, loads);
        let tenants = report.tenants.as_ref().unwrap();
        let names: Vec<_> =
            tenants.iter().map(|tenant| tenant.benchmark.as_ref().map(|one| one.name)).collect();
        assert_eq!(names, [Some("fio"), Some("sysbench"), None]);
        for row in &rows {
            let range = third[usize::from(row.stream)];
            let inside = range.from <= row.offset && row.offset + row.size <= range.to;
            assert!(inside || row.op == Op::Flush, "{row:?}");
        }
        let second: Vec<_> = rows.iter().filter(|row| row.stream == 1).collect();
        assert!(second.iter().all(|row| (300 * MS..=800 * MS).contains(&row.arrival_ns)));
        assert!(second.iter().any(|row| row.arrival_ns > 700 * MS), "it goes on until it is stopped");
        let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids, (1..=rows.len() as u64).collect::<Vec<_>>());
        assert_eq!(tenants.iter().map(|tenant| tenant.requests).sum::<u64>(), rows.len() as u64);
        // Some of the source's requests have become part of others.
        assert_eq!(tenants[2].bytes_read + tenants[2].bytes_written, moved);
    }
}
