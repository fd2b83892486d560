//! The cost of waiting for completions: one recording, replayed by its times and as its clients waited.

use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Observer, Prepared, run, run_prepared};
use ftlab_core::workload::Record;

use crate::{CASES, cpu_seconds, settings, uniform};

/// The requests of a closed replay with the times at which they arrived and completed.
struct Recorder(Vec<Record>);

impl Observer for Recorder {
    fn complete(&mut self, done: &Completion) {
        let record = &mut self.0[done.id as usize - 1];
        let &Completion { op, offset, size, arrival_ns, complete_ns, .. } = done;
        *record =
            Record { time_ns: arrival_ns, latency_ns: complete_ns - arrival_ns, op, offset, size, ..*record };
    }
}

/// Returns case `page` with this replay.
fn page(replay: &str) -> Settings {
    let keys = CASES[0].common.iter().chain(CASES[0].keys);
    settings("replays", keys.chain(&[("workload.replay", replay)]))
}

/// Records case `page`, replays the recording in both ways on its own device, and prints how fast each is.
pub(crate) fn replays(requests: u64) {
    let closed = page("closed");
    let mut recorder = Recorder(vec![Record::FLUSH; requests as usize]);
    run(&closed, &mut uniform(&closed, requests), &mut recorder, false).expect("a sound run");
    let [open, dependent] = ["open", "dependent"].map(|replay| {
        let (settings, mut recording) = (page(replay), recorder.0.clone().into_iter());
        let prepared = Prepared::new(&settings, &mut (), false).expect("nothing fails");
        let began = cpu_seconds();
        let report = run_prepared(&settings, prepared, &mut recording, &mut ()).expect("a sound run");
        let cpu = cpu_seconds() - began;
        println!(
            "{replay:9} {:10.0} requests/CPU-s  {cpu:6.3} CPU-s  mean latency {:.0} ns  a recording of case page",
            requests as f64 / cpu,
            report.latency.all.mean_ns
        );
        cpu
    });
    println!("dependent replay has {:.2} times the speed of open replay", open / dependent);
}
