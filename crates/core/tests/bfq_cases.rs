//! Exact cases of bfq, worked out by hand.
//!
//! A page of 4 KiB is 8 sectors. The first budget of a process is 2/3 of 16,384 sectors, 10,922.

use ftlab_conformance as common;

use common::{Log, checked, pages, settings};
use ftlab_core::host::{Placed, Sender};
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Prepared, run_tenants};
use ftlab_core::workload::tenants::{Own, Tenant, Tenants};
use ftlab_core::workload::{Op, Record, Source};

const US: u64 = 1000;
const MS: u64 = 1_000_000;
const PAGE: u64 = 4096;

/// Returns one chip that reads a page in 35 us and programs one in 350 us, with nothing to look up, and tenants of
/// these weights, all of whose addresses begin at 0.
fn with(weights: &[u32]) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.host.scheduler = "bfq".into();
    let tenant = |(number, &weight): (usize, &u32)| Tenant {
        name: format!("t{number}"),
        workload: settings.workload.clone(),
        clients: false,
        own: Own { weight, ..Own::default() },
    };
    let tenants = weights.iter().enumerate().map(tenant).collect();
    settings.tenants = Tenants(tenants);
    settings.host.sched.weights.0 = weights.to_vec();
    settings
}

fn read(at_us: u64, lpn: u64) -> Record {
    pages(at_us * US, Op::Read, PAGE, lpn, 1)
}

fn write(at_us: u64, lpn: u64) -> Record {
    pages(at_us * US, Op::Write, PAGE, lpn, 1)
}

/// Runs loads in check mode, one for each tenant; returns the report, and the completions in the order of their ids.
fn ran(settings: &Settings, loads: &[Vec<Record>]) -> (Report, Vec<Completion>) {
    let mut senders = Vec::new();
    for (number, load) in (0..).zip(loads) {
        let load: Box<dyn Source + Send> = Box::new(load.clone().into_iter());
        senders.push(Sender::Source(Box::new(Placed::new(load, 0, 0, number))));
    }
    let mut log = Log::default();
    let prepared = Prepared::new(settings, &mut log, true).expect("nothing fails");
    let report = run_tenants(settings, prepared, &mut senders, &mut log).expect("every invariant holds");
    log.0.sort_by_key(|completion| completion.id);
    (report, log.0)
}

/// Returns the tenants and the pages of the requests, in the order of dispatch.
fn order(done: &[Completion]) -> Vec<(u16, u64)> {
    let mut by_dispatch: Vec<_> = done.iter().map(|c| (c.dispatch_ns, c.complete_ns, c)).collect();
    by_dispatch.sort_by_key(|&(dispatch_ns, complete_ns, _)| (dispatch_ns, complete_ns));
    by_dispatch.into_iter().map(|(_, _, c)| (c.stream, c.offset / PAGE)).collect()
}

fn own(report: &Report, name: &str) -> Option<f64> {
    report.own.as_ref()?.get("scheduler")?.get(name).copied()?
}

#[test]
fn a_process_sends_the_nearest_request_and_a_sector_behind_counts_twice() {
    let settings = with(&[1]);
    let load = vec![read(0, 100), read(1, 96), read(1, 108), read(1, 111), read(1, 60)];
    // From the end of 100 on, 108 is 7 pages ahead, and 96 is 5 behind, which counts as 10. After that only neighbours
    // compete: from 108, 111 is 3 ahead and 96 is 12 behind; from 111 nothing is ahead, and 96 is nearer than 60.
    let done = ran(&settings, &[load]).1;
    let pages: Vec<u64> = order(&done).into_iter().map(|(_, page)| page).collect();
    assert_eq!(pages, [100, 108, 111, 96, 60]);
}

#[test]
fn requests_too_far_behind_wait_for_those_ahead() {
    let mut settings = with(&[1]);
    let load = vec![read(0, 100), read(1, 90), read(1, 200)];
    let pages = |settings: &Settings| order(&ran(settings, std::slice::from_ref(&load)).1)[1].1;
    assert_eq!(pages(&settings), 90);
    settings.host.sched.own.bfq.back_bytes = 5 * PAGE;
    assert_eq!(pages(&settings), 200);
}

#[test]
fn the_oldest_request_goes_once_in_a_turn_if_it_has_expired() {
    let mut settings = with(&[1]);
    settings.host.sched.own.bfq.fifo_expire_ns = 30 * US;
    let load = vec![read(0, 0), read(1, 50), read(2, 1), read(3, 2), read(4, 3)];
    // When the first request leaves, none is older; the look of this turn is spent.
    let done = ran(&settings, std::slice::from_ref(&load)).1;
    assert_eq!(order(&done).iter().map(|&(_, page)| page).collect::<Vec<_>>(), [0, 1, 2, 3, 50]);
    // A second turn begins when a heavier process has ended the first one.
    let mut settings = with(&[1, 2]);
    settings.host.sched.own.bfq.fifo_expire_ns = 30 * US;
    let (report, done) = ran(&settings, &[load, vec![read(36, 9)]]);
    assert_eq!(own(&report, "preempted"), Some(1.0));
    let expired: Vec<u64> = done.iter().filter(|c| c.expired).map(|c| c.offset / PAGE).collect();
    assert_eq!(expired, [50]);
}

#[test]
fn processes_share_in_the_ratio_of_their_weights() {
    let mut settings = with(&[1, 3]);
    settings.host.queue_depth = u32::MAX;
    settings.host.sched.own.bfq.max_budget = Some(8 * PAGE);
    settings.host.sched.own.bfq.slice_idle_ns = 0;
    let eight = |number: u64| pages(0, Op::Read, PAGE, number % 8 * 8, 8);
    let greedy: Vec<Record> = (0..750).map(eight).collect();
    let done = ran(&settings, &[greedy.clone(), greedy]).1;
    // When the heavier one has sent its 750, its rival has sent a third of that, but for a budget or two.
    let order = order(&done);
    let last = order.iter().rposition(|&(tenant, _)| tenant == 1).expect("it has requests");
    let rival = order[..last].iter().filter(|&&(tenant, _)| tenant == 0).count();
    assert!((248..=252).contains(&rival), "{rival} of the rival's requests before the heavier one's last");
}

/// Returns a heavy process that reads a page each time the one before has completed and 100 us have passed, and a light
/// one with ten reads at once.
fn thinker() -> [Vec<Record>; 2] {
    let steps = (0..5).map(|step| read(step * 135, step)).collect();
    [(0..10).map(|lpn| read(1, 100 + lpn)).collect(), steps]
}

#[test]
fn the_device_rests_for_a_heavier_process() {
    let settings = with(&[1, 4]);
    let done = ran(&settings, &thinker()).1;
    // All five reads of the heavier process go first, each as it arrives; the light one waits for 8 ms after the last.
    let order = order(&done);
    assert_eq!(order[..5], [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
    let light: Vec<u64> = done.iter().filter(|c| c.stream == 0).map(|c| c.dispatch_ns).collect();
    let rested_ns = (4 * 135 + 35) * US + 8 * MS;
    assert_eq!(light, (0..10).map(|number| rested_ns + number * 35 * US).collect::<Vec<_>>());
    let heavy: Vec<u64> = done.iter().filter(|c| c.stream == 1).map(|c| c.dispatch_ns).collect();
    assert_eq!(heavy, [0, 135 * US, 270 * US, 405 * US, 540 * US]);
}

#[test]
fn without_slice_idle_the_device_never_rests() {
    let mut settings = with(&[1, 4]);
    settings.host.sched.own.bfq.slice_idle_ns = 0;
    let (report, done) = ran(&settings, &thinker());
    assert_eq!(own(&report, "idled"), Some(0.0));
    let mut at: Vec<u64> = done.iter().map(|c| c.dispatch_ns).collect();
    at.sort_unstable();
    // 15 reads of 35 us one after the other, the last of which arrives at 540 us.
    assert_eq!(at[..14], (0..14).map(|number| number * 35 * US).collect::<Vec<_>>());
    assert_eq!(at[14], 540 * US);
}

#[test]
fn a_flush_passes_bfq_by() {
    let flush = Record { op: Op::Flush, size: 0, ..read(10, 0) };
    let done = ran(&with(&[1]), &[vec![read(0, 0), write(1, 5), read(2, 3), flush]]).1;
    let mut ids: Vec<_> = done.iter().map(|c| (c.dispatch_ns, c.complete_ns, c.id)).collect();
    ids.sort_unstable();
    assert_eq!(ids.iter().map(|&(_, _, id)| id).collect::<Vec<_>>(), [1, 4, 3, 2]);
}

#[test]
fn streams_without_tenants_have_equal_weights() {
    let mut settings = with(&[]);
    settings.host.sched.own.bfq.slice_idle_ns = 0;
    let of = |stream: u16| move |record: Record| Record { stream, ..record };
    let trace: Vec<Record> =
        (0..40).flat_map(|lpn| [of(7)(read(0, lpn)), of(900)(read(0, 100 + lpn))]).collect();
    let done = checked(&settings, trace).1;
    assert_eq!(done.len(), 80);
    // The first budget of 10,922 sectors holds all 40 reads of a stream.
    let mut by_dispatch: Vec<(u64, u16)> = done.iter().map(|c| (c.dispatch_ns, c.stream)).collect();
    by_dispatch.sort_unstable();
    let changes = by_dispatch.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert_eq!(changes, 1);
}
