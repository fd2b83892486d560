//! Latencies by program: which processes ask, how long each program's requests take, and which took longest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::SystemTime;

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

/// Number of the requests that took longest which are kept.
const SLOWEST: usize = 20;

/// A request as its program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Number of the program.
    pub program: u16,
    /// Place in [`OPERATIONS`].
    pub operation: usize,
    /// Simulated time of its arrival, ns.
    pub arrival_ns: u64,
    /// The first byte, and the number of bytes; both 0 for a flush.
    pub range: (u64, u64),
}

/// One of the requests that took longest; the slower one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    /// Simulated time from arrival to completion, ns.
    pub latency_ns: u64,
    /// Who asked for what.
    pub origin: Origin,
    /// Wall time at which it was answered.
    pub answered: SystemTime,
}

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
    /// The requests that took longest; the quickest of them first.
    slow: BinaryHeap<Reverse<Slow>>,
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

    /// Adds a request that has succeeded at this simulated time, ns.
    pub fn add(&mut self, origin: Origin, now_ns: u64) {
        let latency_ns = now_ns - origin.arrival_ns;
        if let Some(program) = self.known.get_mut(usize::from(origin.program)) {
            program.latency[origin.operation].add(latency_ns);
        }
        if self.slow.len() == SLOWEST {
            if self.slow.peek().is_some_and(|Reverse(quickest)| quickest.latency_ns >= latency_ns) {
                return;
            }
            self.slow.pop();
        }
        self.slow.push(Reverse(Slow { latency_ns, origin, answered: SystemTime::now() }));
    }

    /// Returns the requests that took longest, the slowest first.
    pub fn slowest(&self) -> Vec<Slow> {
        let mut found: Vec<Slow> = self.slow.iter().map(|&Reverse(slow)| slow).collect();
        found.sort_unstable_by_key(|&slow| Reverse(slow));
        found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_kept() {
        let mut programs = Programs::default();
        let origin = |number| Origin { program: 0, operation: 0, arrival_ns: number, range: (number, 512) };
        // Latencies 7, 14, 21 and so on, modulo 101: each of 1 to 100 once.
        (1..=100).for_each(|number| programs.add(origin(number), number + 7 * number % 101));
        let slowest = programs.slowest();
        let latencies: Vec<u64> = slowest.iter().map(|slow| slow.latency_ns).collect();
        assert_eq!(latencies, (81..=100).rev().collect::<Vec<_>>());
        assert!(slowest.iter().all(|slow| 7 * slow.origin.range.0 % 101 == slow.latency_ns));
    }
}
