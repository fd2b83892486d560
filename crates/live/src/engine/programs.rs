//! Latencies by program: which processes ask, and how long each program's requests take.

use std::collections::HashMap;

use ftlab_core::metrics::Histogram;
use ftlab_core::workload::Op;

use crate::nbd::Command;

/// Names of the operations, in the order of their numbers.
pub const OPERATIONS: [&str; 4] = ["read", "write", "trim", "flush"];
/// Name of requests of which no process is known: those over TCP, and those of the kernel itself.
const NOBODY: &str = "(unknown)";
/// Name of all programs beyond [`MOST`].
const OTHERS: &str = "(others)";
/// Upper bound on the number of programs told apart.
const MOST: usize = 256;

/// What is known about a program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name that the system shows for it (`/proc/PID/comm`).
    pub name: String,
    /// Number of its processes that have asked.
    pub processes: u32,
    /// Simulated times from arrival to completion, ns, by operation, of the requests that succeeded.
    pub latency: Vec<Histogram>,
}

/// The programs that have asked.
#[derive(Default)]
pub(super) struct Programs {
    by_process: HashMap<u32, u16>,
    pub known: Vec<Program>,
}

impl Programs {
    /// Returns the number of the program that a process runs. A process counts as the program that it ran when it first
    /// asked.
    pub fn of(&mut self, process: u32) -> u16 {
        if let Some(&known) = self.by_process.get(&process) {
            return known;
        }
        let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
        let name = name.map_or_else(|_| NOBODY.to_owned(), |name| name.trim_end().to_owned());
        let place = self.known.iter().position(|program| program.name == name).unwrap_or_else(|| {
            let name = if self.known.len() < MOST { name } else { OTHERS.to_owned() };
            let last = self.known.last().filter(|last| last.name == OTHERS && name == OTHERS);
            if last.is_none() {
                let latency = vec![Histogram::default(); OPERATIONS.len()];
                self.known.push(Program { name, processes: 0, latency });
            }
            self.known.len() - 1
        });
        self.known[place].processes += 1;
        self.by_process.insert(process, place as u16);
        place as u16
    }

    /// Adds a request's time from arrival to completion, ns.
    pub fn add(&mut self, program: u16, operation: usize, ns: u64) {
        if let Some(program) = self.known.get_mut(usize::from(program)) {
            program.latency[operation].add(ns);
        }
    }
}

/// Returns the place in [`OPERATIONS`] of the operation that a command counts as.
pub(super) fn operation(command: Command) -> usize {
    let op = match command {
        Command::Read => Op::Read,
        Command::Write => Op::Write,
        Command::Trim | Command::WriteZeroes => Op::Trim,
        _ => Op::Flush,
    };
    op as usize
}
