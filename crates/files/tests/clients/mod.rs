//! Runs of clients, and small forms of the benchmarks.
#![allow(dead_code)]

use ftlab_core::metrics::Report;
use ftlab_core::sim::{Completion, Prepared};
use ftlab_files::clients::{Clients, Kind, Parameters};
use ftlab_files::settings::Settings;

use crate::common::Log;

pub const SECOND_NS: u64 = 1_000_000_000;

/// Runs clients to their end, and returns the completions in order.
pub fn run_files(settings: &Settings, clients: Clients, check: bool) -> (Report, Vec<Completion>) {
    let mut log = Log::default();
    let prepared = Prepared::new(settings, &mut (), check).unwrap();
    let report = ftlab_files::run(settings, prepared, clients, &mut log).expect("every invariant holds");
    (report, log.0)
}

/// Makes the parameters of one of the paper's benchmarks, reduced so that it takes a fraction of the time.
pub fn small(kind: Kind) -> Parameters {
    let paper = Parameters::of(kind);
    match kind {
        Kind::PostMark => Parameters { files: 16, transactions: 64, runs: 2, ..paper },
        Kind::SysBench => Parameters { file_size: 4 << 20, requests: 2000, ageing_ns: SECOND_NS, ..paper },
        Kind::FileBench => Parameters { file_size: 8 << 20, duration_ns: SECOND_NS, runs: 2, ..paper },
        Kind::DBench => Parameters {
            clients: 3,
            files: 20,
            file_size: 2 << 20,
            duration_ns: 2 * SECOND_NS,
            ageing_ns: SECOND_NS,
            ..paper
        },
    }
}
