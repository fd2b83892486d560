//! Errors of reads: each block has a bit error rate, which grows with wear, age and reads; what exceeds the error
//! correction is read again, and what remains is lost.
//!
//! Source: the four terms of the rate are those of Kim, Choi, Min, FAST 2019 ([`process`]):
//!
//! ```text
//! rate = (base + wear PE^a + retention PE^b hours^c + disturb PE^d reads^e) x variation, at most 0.5
//! ```
//!
//! PE are the erasures of the block so far, `hours` the time since its first page was programmed, `reads` the page
//! reads since it was erased. A codeword of `flash.ecc_unit` bytes has rate x bits errors; step k of a read retry
//! corrects `ecc_limit` x `retry_gain`^k of them, and a read needs the smallest step that corrects all. Nothing is
//! drawn: a codeword has as many errors as it has on average. Decisions: `docs/decisions/0033-errors.md`; readings:
//! `docs/readings/errors-and-age.md`.
//!
//! Cells remember what was done to them, so this is not part of an FTL: [`Reliability`] counts programs, reads and
//! erasures as they are emitted, and a saved state and a power cut keep it.

mod process;
pub(crate) mod rates;
mod retry;
mod settings;
mod watch;
mod worn;

pub use process::Process;
pub use retry::Retry;
pub use settings::Errors;

use serde::{Deserialize, Serialize};

use self::rates::Rates;
use self::watch::Watch;
use super::{Cells, Flash};
use crate::config::times;
use crate::util::{Divider, NONE};

const HOUR_NS: f64 = 3.6e12;
/// Half of all bits are right by chance.
const MOST: f64 = 0.5;

/// What the cells of a block have gone through since it was erased. Reads go to blocks at random, so all that most
/// reads need fits into half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Block {
    /// When the first page was programmed, ns; before time 0 it is negative. [`ERASED`]: none was.
    begun_ns: i64,
    known: Known,
    /// Page reads.
    reads: u32,
    /// The step at which the last read succeeded.
    last: u32,
}

/// When the first page of a block was programmed of which none was.
const ERASED: i64 = i64::MAX;

impl Block {
    const NEW: Block = Block { begun_ns: ERASED, known: Known::NOTHING, reads: 0, last: 0 };

    /// Returns when the first page was programmed, ns.
    #[inline]
    fn begun_ns(&self) -> Option<i64> {
        (self.begun_ns != ERASED).then_some(self.begun_ns)
    }

    /// Changes when the first page was programmed, if one was; what is known about the block no longer holds.
    fn begin_at(&mut self, change: impl FnOnce(i64) -> i64) {
        self.begun_ns = self.begun_ns().map_or(ERASED, change);
        self.known = Known::NOTHING;
    }
}

/// How worn a block is.
#[derive(Clone, Copy, Debug, Default)]
struct Worn {
    erases: u32,
    /// Factors that depend on nothing but wear: of the fresh and worn block, of hours^c and of reads^e.
    fixed: f64,
    retention: f64,
    disturb: f64,
}

/// The step that reads of a block need up to a moment and a number of reads; rates only grow with both.
#[derive(Clone, Copy, Debug)]
struct Known {
    until_ns: i64,
    reads: u32,
    /// The step, or [`NONE`]: none corrects the reads.
    step: u32,
}

impl Known {
    const NOTHING: Known = Known { until_ns: i64::MIN, reads: 0, step: NONE };
}

/// What is known about a block at time 0, for saved states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Page reads since the block was erased.
    pub reads: u32,
    /// The step of a read retry at which the last read succeeded.
    pub last: u32,
    /// How long the block has had data, ns; `None`: it is erased.
    pub age_ns: Option<u64>,
}

/// What reads have met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Repetitions of reads.
    pub retries: u64,
    /// Reads that were repeated.
    pub retried: u64,
    /// Reads that failed.
    pub failed: u64,
    /// Reads that succeeded, by the step that they needed.
    pub steps: Vec<u64>,
}

/// How one read of a page is repeated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repetition {
    pub count: u32,
    /// Time of the cells for the first repetition and for each later one, ns.
    pub cells_ns: [u64; 2],
}

/// The errors that reads meet, block by block.
#[derive(Clone, Debug)]
pub struct Reliability {
    rates: Rates,
    /// Growth of the logarithm of each block's rate with wear beyond that of the mean block; empty if blocks are alike.
    growth: Vec<f64>,
    blocks: Vec<Block>,
    worn: Vec<Worn>,
    by_block: Divider,
    codeword_bits: f64,
    /// Errors of a codeword that each step corrects.
    limits: Vec<f64>,
    retry: Retry,
    /// Time of a repetition, ns; `None`: that of the first read.
    retry_ns: Option<u64>,
    now_ns: u64,
    counts: Counts,
    /// Whether a read of the host's data has failed since this was last asked.
    failed: bool,
    /// Whether data have lain `flash.age` before time 0.
    lain: bool,
    watch: Option<Watch>,
}

/// Data may have lain for this long, ns: 146 years.
const OLDEST_NS: i64 = i64::MAX / 2;

impl Reliability {
    /// Makes the erased blocks of `flash`; `None` if no read can meet an error.
    pub(super) fn new(flash: &Flash, cells: &Cells) -> Option<Box<Reliability>> {
        let rates = Rates::new(flash)?;
        let errors = &flash.errors;
        let blocks = (flash.pages() / u64::from(flash.pages_per_block)) as u32;
        let growth =
            flash.variation.as_ref().zip(cells.speeds()).map_or_else(Vec::new, |(variation, speeds)| {
                (0..blocks).map(|block| speeds.growth(block) - variation.growth_mean).collect()
            });
        let steps = 0..=errors.retry_steps;
        let mut made = Box::new(Reliability {
            rates,
            growth,
            blocks: vec![Block::NEW; blocks as usize],
            worn: vec![Worn::default(); blocks as usize],
            by_block: Divider::new(flash.pages_per_block),
            codeword_bits: 8.0 * f64::from(flash.ecc_unit_bytes),
            limits: steps.map(|k| errors.ecc_limit * libm::pow(errors.retry_gain, f64::from(k))).collect(),
            retry: flash.retry,
            retry_ns: errors.retry_ns,
            now_ns: 0,
            counts: Counts { steps: vec![0; errors.retry_steps as usize + 1], ..Counts::default() },
            failed: false,
            lain: false,
            watch: None,
        });
        (0..blocks).for_each(|block| made.wear(block, flash.pe_cycles as u32));
        Some(made)
    }

    /// Sets the erase count of a block, on which the factors of its rate depend.
    fn wear(&mut self, block: u32, erases: u32) {
        let Rates { base, wear, retention, disturb, exponents: [a, b, _, d, _] } = self.rates;
        let cycles = f64::from(erases);
        let variation = self.growth.get(block as usize).map_or(1.0, |growth| libm::exp(growth * cycles));
        let to = |exponent| libm::pow(cycles, exponent);
        self.blocks[block as usize].known = Known::NOTHING;
        self.worn[block as usize] = Worn {
            erases,
            fixed: (base + wear * to(a)) * variation,
            retention: retention * to(b) * variation,
            disturb: disturb * to(d) * variation,
        };
    }

    /// Returns the number of errors that a codeword of a block has at a moment, after this number of reads.
    fn expected(&self, block: u32, at_ns: i64, reads: u32) -> f64 {
        let [.., c, _, e] = self.rates.exponents;
        let (worn, begun_ns) = (&self.worn[block as usize], self.blocks[block as usize].begun_ns());
        let hours = begun_ns.map_or(0.0, |begun_ns| (at_ns - begun_ns) as f64 / HOUR_NS);
        let aged = worn.retention * libm::pow(hours, c) + worn.disturb * libm::pow(f64::from(reads), e);
        (worn.fixed + aged).min(MOST) * self.codeword_bits
    }

    /// Returns the step that a read of a block needs now; `None`: none corrects it.
    #[inline]
    fn needed(&mut self, block: u32) -> Option<u32> {
        let Block { known, reads, .. } = self.blocks[block as usize];
        if self.now_ns as i64 <= known.until_ns && reads <= known.reads {
            return (known.step != NONE).then_some(known.step);
        }
        self.work_out_needed(block)
    }

    /// Works out the step that a read of a block needs now, and until when that is sure.
    fn work_out_needed(&mut self, block: u32) -> Option<u32> {
        let at = self.blocks[block as usize];
        let step = |at_ns, reads| {
            let expected = self.expected(block, at_ns, reads);
            self.limits.iter().position(|&limit| expected <= limit).map(|step| step as u32)
        };
        let (now_ns, reads) = (self.now_ns as i64, at.reads);
        let needed = step(now_ns, reads);
        let until_ns = now_ns + at.begun_ns().map_or(0, |begun_ns| now_ns - begun_ns) / 4 + MOMENT_NS as i64;
        let more = reads.saturating_add(reads / 4 + 64);
        if step(until_ns, more) == needed {
            self.blocks[block as usize].known = Known { until_ns, reads: more, step: needed.unwrap_or(NONE) };
        }
        needed
    }

    /// Counts a read of a page whose cells take `cell_ns` and whose data cross the bus in `out_ns`; returns how it is
    /// repeated. `host` says whether a request fails with the read.
    pub(super) fn read(&mut self, page: u32, host: bool, [cell_ns, out_ns]: [u64; 2]) -> Repetition {
        let block = self.by_block.div(page);
        if self.blocks[block as usize].begun_ns == ERASED {
            return Repetition::default();
        }
        let (needed, most) = (self.needed(block), self.limits.len() as u32 - 1);
        let state = &mut self.blocks[block as usize];
        state.reads = state.reads.saturating_add(1);
        let repeats = self.retry.repeats(needed, state.last, most);
        match needed {
            Some(step) => {
                self.counts.steps[step as usize] += 1;
                state.last = step;
            }
            None => {
                self.counts.failed += 1;
                self.failed |= host;
            }
        }
        self.counts.retries += u64::from(repeats.count);
        self.counts.retried += u64::from(repeats.count > 0);
        if let Some(step) = self.watch.as_ref().map(|watch| watch.step)
            && needed.is_none_or(|needed| needed >= step)
            && self.rewriting_helps(block, step)
        {
            self.put_back(block);
        }
        let first_ns = self.retry_ns.unwrap_or(cell_ns);
        let later_ns = if repeats.overlapped { first_ns.saturating_sub(out_ns) } else { first_ns };
        Repetition { count: repeats.count, cells_ns: [first_ns, later_ns] }
    }

    /// Notes that consecutive pages of a block are programmed, from this one on.
    pub(super) fn program(&mut self, first: u32) {
        let block = self.by_block.div(first);
        let state = &mut self.blocks[block as usize];
        // A block is programmed from its first page on, except by FTLs that keep pages at their offsets.
        if state.begun_ns != ERASED && self.by_block.rem(first) != 0 {
            return;
        }
        (state.begun_ns, state.known) = (self.now_ns as i64, Known::NOTHING);
        self.list(block);
    }

    /// Counts an erasure of the block whose first page this is.
    pub(super) fn erase(&mut self, first: u32) {
        let block = self.by_block.div(first);
        self.wear(block, self.worn[block as usize].erases + 1);
        self.blocks[block as usize] = Block::NEW;
    }

    /// Sets the erase count of each block, in block order.
    pub(super) fn set_erases(&mut self, erases: impl Iterator<Item = u32>) {
        (0..).zip(erases).for_each(|(block, erases)| self.wear(block, erases));
    }

    /// Sets the time, ns.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// Sets the counts back to 0.
    pub(super) fn reset_counts(&mut self) {
        self.counts.steps.fill(0);
        self.counts = Counts { steps: std::mem::take(&mut self.counts.steps), ..Counts::default() };
        self.failed = false;
    }

    /// Returns what reads have met.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether a read of the host's data has failed since this was last asked.
    pub(super) fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    /// Returns the past of each block, in block order, as it is now.
    pub fn past(&self, now_ns: u64) -> Vec<Past> {
        let age_ns = |begun_ns: i64| (now_ns as i64 - begun_ns) as u64;
        let past = |block: &Block| Past {
            reads: block.reads,
            last: block.last,
            age_ns: block.begun_ns().map(age_ns),
        };
        self.blocks.iter().map(past).collect()
    }

    /// Gives each block its past, in block order, at time 0.
    pub fn set_past(&mut self, past: impl Iterator<Item = Past>) {
        for (block, past) in self.blocks.iter_mut().zip(past) {
            let begun_ns = past.age_ns.map_or(ERASED, |age_ns| -(age_ns as i64));
            *block = Block { begun_ns, reads: past.reads, last: past.last, ..Block::NEW };
        }
    }

    /// Begins a run: data that are there have lain for `age_ns` before, unless they did already; blocks whose next read
    /// would need retry step `refresh` are watched for.
    pub fn begin(&mut self, age_ns: u64, refresh: Option<u32>, (luns, blocks_per_lun): (u32, u32)) {
        if !std::mem::replace(&mut self.lain, true) {
            for block in &mut self.blocks {
                block.begin_at(|begun_ns| begun_ns - age_ns as i64);
            }
        }
        self.watch = refresh.map(|step| Watch::new(step, luns, blocks_per_lun));
        (0..self.blocks.len() as u32).for_each(|block| self.list(block));
    }

    /// Lets all data have lain for `age_ns` longer.
    pub(in crate::flash) fn age(&mut self, age_ns: u64) {
        for block in &mut self.blocks {
            block.begin_at(|begun_ns| begun_ns.saturating_sub_unsigned(age_ns).max(-OLDEST_NS));
        }
        self.watch_anew();
    }

    /// Watches blocks from the beginning, because the moments at which they have to be rewritten have changed.
    pub(in crate::flash) fn watch_anew(&mut self) {
        self.watch = self.watch.as_ref().map(Watch::anew);
        (0..self.blocks.len() as u32).for_each(|block| self.list(block));
    }

    /// Makes repetitions of reads take `factor` times as long as the settings of `flash` say.
    pub(in crate::flash) fn slow(&mut self, flash: &Flash, factor: f64) {
        self.retry_ns = flash.errors.retry_ns.map(|ns| times(ns, factor));
    }
}

/// How long a block that is nearly worn is left alone, and how long a step is sure at least.
const MOMENT_NS: u64 = 1_000_000;
