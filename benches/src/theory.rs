//! `ftlab-bench theory`: write amplification on 4096 blocks against the closed forms.
//!
//! Uniform random page writes to a filled page-mapped device of one chip, with one erased block kept; 12 times the
//! user's pages are written to warm up, and 8 times the user's pages while measuring. The error is given against two
//! closed forms: the one for a frontier shared by copies and host writes, and the usual one, which subtracts half a
//! block for the frontier. Every error must be within 0.5 %.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::closed_forms;
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;

const BLOCKS: u32 = 4096;
const GATE_PERCENT: f64 = 0.5;

/// The requests that the host sends.
#[derive(Clone, Copy)]
enum Load {
    Uniform,
    /// This many of a thousand requests trim a random page in use.
    Trims(u64),
    /// This many of a hundred writes go to this many hundredths of the pages.
    HotCold(u64, u64),
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Cell {
    policy: &'static str,
    /// The number of blocks that d-choices draws.
    draws: u32,
    load: Load,
    b: u32,
    ratio: f64,
}

impl Cell {
    fn settings(&self) -> Settings {
        let keys = [
            ("ftl.kind", "page".to_string()),
            ("ftl.gc", self.policy.into()),
            ("ftl.gc_choices", self.draws.to_string()),
            ("ftl.over_provisioning", format!("{:.4}%", (1.0 - 1.0 / self.ratio) * 100.0)),
            ("flash.blocks_per_plane", BLOCKS.to_string()),
            ("flash.pages_per_block", self.b.to_string()),
        ];
        crate::settings(&self.name(), &keys.each_ref().map(|(key, value)| (*key, value.as_str())))
    }

    /// Returns the value of the closed form at a ratio of physical to logical pages.
    fn form(&self, a: f64) -> f64 {
        let a = match self.load {
            Load::Trims(share) => a / closed_forms::in_use(share as f64 / 1000.0),
            _ => a,
        };
        match (self.policy, self.load) {
            ("fifo", Load::HotCold(writes, data)) => {
                closed_forms::fifo_hot_cold(a, writes as f64 / 100.0, data as f64 / 100.0)
            }
            ("greedy", _) => closed_forms::greedy(a, self.b),
            ("fifo", _) => closed_forms::fifo(a),
            ("random", _) => closed_forms::d_choices(a, self.b, 1),
            _ => closed_forms::d_choices(a, self.b, self.draws),
        }
    }

    fn name(&self) -> String {
        let policy =
            if self.policy == "d-choices" { format!("d = {}", self.draws) } else { self.policy.into() };
        match self.load {
            Load::Uniform => policy,
            Load::Trims(share) => format!("{policy}, {}% trims", share as f64 / 10.0),
            Load::HotCold(writes, data) => format!("{policy}, {writes}/{data}"),
        }
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for b in [64, 256] {
        for ratio in [1.07, 1.15, 1.28] {
            for (policy, draws) in [
                ("greedy", 2),
                ("fifo", 2),
                ("d-choices", 2),
                ("d-choices", 5),
                ("d-choices", 10),
                ("random", 2),
            ] {
                cells.push(Cell { policy, draws, load: Load::Uniform, b, ratio });
            }
        }
    }
    for policy in ["greedy", "fifo"] {
        for share in [100, 200] {
            cells.push(Cell { policy, draws: 2, load: Load::Trims(share), b: 64, ratio: 1.07 });
        }
    }
    for (writes, data) in [(80, 20), (90, 10)] {
        cells.push(Cell { policy: "fifo", draws: 2, load: Load::HotCold(writes, data), b: 64, ratio: 1.15 });
    }
    cells
}

/// The stream of requests: random numbers come from xorshift; pages in use come first in `pages`.
struct Host {
    state: u64,
    pages: Vec<u32>,
    place: Vec<u32>,
    used: u32,
    load: Load,
}

impl Host {
    fn new(load: Load, user: u32) -> Host {
        let all: Vec<u32> = (0..user).collect();
        Host { state: 0x9E37_79B9_7F4A_7C15, place: all.clone(), pages: all, used: user, load }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((u128::from(self.state) * u128::from(bound)) >> 64) as u64
    }

    fn swap(&mut self, one: u32, other: u32) {
        self.pages.swap(one as usize, other as usize);
        self.place[self.pages[one as usize] as usize] = one;
        self.place[self.pages[other as usize] as usize] = other;
    }

    /// Returns the page of the next request, and whether it is trimmed.
    fn next(&mut self) -> (u32, bool) {
        let user = self.pages.len() as u64;
        match self.load {
            Load::Uniform => (self.below(user) as u32, false),
            Load::HotCold(writes, data) => {
                let hot = user * data / 100;
                let lpn =
                    if self.below(100) < writes { self.below(hot) } else { hot + self.below(user - hot) };
                (lpn as u32, false)
            }
            Load::Trims(share) => {
                if self.below(1000) < share && self.used > 0 {
                    let at = self.below(self.used.into()) as u32;
                    self.used -= 1;
                    self.swap(at, self.used);
                    return (self.pages[self.used as usize], true);
                }
                let lpn = self.below(user) as u32;
                if self.place[lpn as usize] >= self.used {
                    self.swap(self.place[lpn as usize], self.used);
                    self.used += 1;
                }
                (lpn, false)
            }
        }
    }
}

/// Returns the number of programs per host write.
fn measure(cell: &Cell) -> f64 {
    let settings = cell.settings();
    let user = settings.user_pages();
    let mut work = settings.work();
    let Ftl::Page(mut ftl) = Ftl::new(&settings, false, &mut work) else { unreachable!("kind is page") };
    ftl.prefill(&Vec::from_iter(0..settings.user_pages() as u32), &mut work);
    let mut host = Host::new(cell.load, user as u32);
    let mut run = |writes: u64| {
        let before: u64 = work.counts().programs.total();
        let mut written = 0;
        while written < writes {
            work.clear();
            let (first, trim) = host.next();
            let request = Pages { first, pages: 1, ..Pages::NONE };
            if trim {
                ftl.trim(request, &mut work);
            } else {
                ftl.write(request, &mut work);
                written += 1;
            }
        }
        (work.counts().programs.total() - before) as f64 / writes as f64
    };
    run(12 * user);
    run(8 * user)
}

/// Prints the table; fails if any error is beyond the bound.
pub fn theory() -> ExitCode {
    let cells = cells();
    let found = Mutex::new(vec![0.0; cells.len()]);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((at, cell)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, cells.get(at)?)))
                {
                    let amplification = measure(cell);
                    found.lock().expect("no thread panicked")[at] = amplification;
                }
            });
        }
    });
    println!("{BLOCKS} blocks, uniform random writes unless said otherwise; a = physical / logical pages");
    println!("policy               b     a   measured  closed form   error  (half a block off: error)");
    let mut worst: f64 = 0.0;
    for (cell, found) in cells.iter().zip(found.into_inner().expect("no thread panicked")) {
        let user = cell.settings().user_pages() as f64;
        let shared = closed_forms::shared_frontier(BLOCKS, 1, cell.b, user, |a| cell.form(a));
        let half = cell.form(closed_forms::effective_ratio(BLOCKS, 1, 1, cell.b, user));
        let [error, half_error] = [shared, half].map(|form| (found / form - 1.0) * 100.0);
        worst = worst.max(error.abs()).max(half_error.abs());
        println!(
            "{:18} {:3}  {:.2}  {found:9.4}  {shared:11.4}  {error:+.2} %  ({half:.4}: {half_error:+.2} %)",
            cell.name(),
            cell.b,
            cell.ratio
        );
    }
    let within = worst <= GATE_PERCENT;
    println!(
        "worst error {worst:.2} %, {GATE_PERCENT} % allowed: {}",
        if within { "within" } else { "ABOVE" }
    );
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
