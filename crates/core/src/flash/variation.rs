//! Process variation: blocks wear at different rates, and are programmed as fast as their errors allow.
//!
//! Source: Cui et al., NPC 2016, sections 2.2 and 4. Each block draws a growth rate `g` of its bit error rate
//! from a bounded Gaussian. A page is programmed in voltage steps (ISPP): the larger the step, the faster and
//! the less precise the programming. A block uses the largest step whose error rate the ECC still corrects; this
//! step is determined anew whenever the block is erased, whichever scheduler runs.
//!
//! The paper gives no formula. ftlab's formula, after `n` program/erase cycles and with step `D`, is
//!
//! ```text
//! BER(n, g, D) = fresh_ber x exp(g n + sensitivity (D - nominal_step))
//! ```
//!
//! The formula is log-linear in the step, which follows if threshold voltages are spread evenly over a step with
//! exponential noise at its ends. The step is `max_step` less as many whole decrements as it takes to reach `BER
//! <= ecc_limit`, and the program time is `flash.program x nominal_step / D`. Why these constants were chosen:
//! `docs/decisions/0004-process-variation.md`.
//!
//! - As `g n` only grows, the step never grows.
//! - A block that exceeds the limit even with the smallest step keeps that step.

use rand::Rng;
use rand_distr::StandardNormal;

use super::Flash;
use crate::config::section::number;
use crate::config::{Contradiction, choice, section, switch, times};
use crate::util::stream;

choice! {
    /// The values of `flash.variation.model`: whether and how blocks differ.
    pub enum Model {
        /// programming takes flash.program in every block
        None = "none",
        /// error rates grow at different rates, and ISPP steps differ accordingly (Cui et al., NPC 2016)
        Ispp = "ispp",
    }
}

section! {
    /// The settings of section `[flash.variation]`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Variation {
        /// Mean growth of ln(BER) per cycle.
        growth_mean: f64 = "flash.variation.growth_mean", number(0.0, 1.0), "3.7e-4";
        /// Standard deviation of the growth between blocks.
        growth_stddev: f64 = "flash.variation.growth_stddev", number(0.0, 1.0), "9e-5";
        /// Where the distribution of the growth is cut off, in standard deviations.
        growth_bound: f64 = "flash.variation.growth_bound", number(0.0, 10.0), "3.0";
        /// Bit error rate of an unworn block.
        fresh_ber: f64 = "flash.variation.fresh_ber", number(0.0, 0.5), "1.3e-6";
        /// Highest bit error rate the ECC corrects.
        ecc_limit: f64 = "flash.variation.ecc_limit", number(0.0, 0.5), "1.3e-3";
        /// Growth of ln(BER) per volt of the ISPP step.
        sensitivity: f64 = "flash.variation.sensitivity", number(0.0, 1e6), "15.0";
        /// ISPP step, in volts, at which programming takes flash.program.
        nominal_step: f64 = "flash.variation.nominal_step", number(0.0, 100.0), "0.3";
        /// Largest ISPP step, in volts.
        max_step: f64 = "flash.variation.max_step", number(0.0, 100.0), "0.6";
        /// Difference between two ISPP steps, in volts.
        step_decrement: f64 = "flash.variation.step_decrement", number(0.0, 100.0), "0.03";
    }
}

switch! {
    /// Whether and how blocks differ.
    Variation if Model = "flash.variation.model", "none" is Model::Ispp
}

/// The largest number of steps allowed: a set of steps must fit in a 64-bit word.
const MOST_STEPS: usize = 64;
/// The longest program time allowed, the same as for every flash operation.
const LONGEST_PROGRAM_NS: f64 = 1e9;

impl Variation {
    /// Returns the number of steps: the largest step, and all smaller ones that are still above zero.
    fn steps(&self) -> usize {
        // The tolerance keeps rounding from turning a whole quotient into the next smaller number.
        (self.max_step / self.step_decrement + 1e-9) as usize
    }

    /// Returns the `index`-th step, counted from the largest down, in volts.
    fn step(&self, index: usize) -> f64 {
        self.max_step - index as f64 * self.step_decrement
    }

    /// Returns the program time with the `index`-th step if a program with the nominal step takes `nominal_ns`.
    fn program_ns(&self, index: usize, nominal_ns: u64) -> f64 {
        nominal_ns as f64 * self.nominal_step / self.step(index)
    }

    /// Returns the largest `g n` with which the `index`-th step stays within the ECC limit.
    fn budget(&self, index: usize) -> f64 {
        // libm's logarithm is the same on every machine.
        libm::log(self.ecc_limit / self.fresh_ber) - self.sensitivity * (self.step(index) - self.nominal_step)
    }

    /// Draws the growth rate of the next block.
    fn draw(&self, random: &mut impl Rng) -> f64 {
        loop {
            let deviations: f64 = random.sample(StandardNormal);
            if deviations.abs() <= self.growth_bound {
                // Not below zero: a block does not heal.
                return (self.growth_mean + self.growth_stddev * deviations).max(0.0);
            }
        }
    }
}

/// Checks the number of steps, the program time at the smallest step, and the ECC limit.
pub(crate) fn check(flash: &Flash) -> Result<(), Contradiction> {
    let Some(variation) = &flash.variation else { return Ok(()) };
    let fail = |key, message| Err(Contradiction { key, message });
    let steps = variation.steps();
    if !(1..=MOST_STEPS).contains(&steps) {
        let message = format!(
            "makes {steps} steps from flash.variation.max_step = {} down; there may be 1 to {MOST_STEPS}",
            variation.max_step
        );
        return fail("flash.variation.step_decrement", message);
    }
    let longest_ns = variation.program_ns(steps - 1, flash.program.most());
    if longest_ns > LONGEST_PROGRAM_NS {
        let message = format!(
            "the smallest step, {:.3} below flash.variation.max_step, would program a page in {:.1} s; \
             the most is 1 s",
            variation.step(steps - 1) - variation.max_step,
            longest_ns / 1e9
        );
        return fail("flash.variation.nominal_step", message);
    }
    if variation.ecc_limit <= variation.fresh_ber {
        let message = format!(
            "does not exceed flash.variation.fresh_ber = {:e}, the error rate of an unworn block",
            variation.fresh_ber
        );
        return fail("flash.variation.ecc_limit", message);
    }
    Ok(())
}

/// The speed of every block of a device.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// Growth rate of each block, rounded only once, when it is drawn.
    growth: Vec<f32>,
    /// Number of erasures of each block.
    erases: Vec<u32>,
    /// Index of each block's step; 0 is the largest, and so the fastest.
    class: Vec<u8>,
    budgets: Vec<f64>,
    /// Number of page types whose program times are told apart.
    types: usize,
    /// Program time of each step, for each page type in turn, ns.
    program_ns: Vec<u64>,
    /// Number of pages programmed with each step, for each page type in turn.
    programs: Vec<u64>,
}

impl Speeds {
    /// Makes the speeds of the blocks of `flash` after `erases` erasures, with growth rates from the stream
    /// `variation` of `seed`; `None` if blocks do not differ.
    pub fn new(flash: &Flash, seed: u64, erases: u32) -> Option<Speeds> {
        let variation = flash.variation.as_ref()?;
        let blocks = flash.pages() / u64::from(flash.pages_per_block);
        let mut random = stream(seed, "variation");
        let (steps, nominal) = (variation.steps(), flash.program.stated());
        let mut speeds = Speeds {
            growth: (0..blocks).map(|_| variation.draw(&mut random) as f32).collect(),
            erases: vec![0; blocks as usize],
            class: vec![0; blocks as usize],
            budgets: (0..steps).map(|step| variation.budget(step)).collect(),
            types: nominal.len(),
            program_ns: (0..steps)
                .flat_map(|step| nominal.iter().map(move |&ns| variation.program_ns(step, ns).round() as u64))
                .collect(),
            programs: vec![0; steps * nominal.len()],
        };
        (0..blocks as u32).for_each(|block| speeds.set_erases(block, erases));
        Some(speeds)
    }

    /// Makes programs take `factor` times as long as the settings of `flash` say.
    pub(super) fn slow(&mut self, flash: &Flash, factor: f64) {
        let Some(variation) = &flash.variation else { return };
        let nominal = flash.program.stated();
        for (at, ns) in self.program_ns.iter_mut().enumerate() {
            let (step, of_type) = (at / nominal.len(), at % nominal.len());
            *ns = times(variation.program_ns(step, nominal[of_type]).round() as u64, factor);
        }
    }

    /// Sets a block's erase count and finds its step, which stays the same or becomes smaller.
    #[inline]
    pub fn set_erases(&mut self, block: u32, erases: u32) {
        self.erases[block as usize] = erases;
        let worn = f64::from(self.growth[block as usize]) * f64::from(erases);
        let class = &mut self.class[block as usize];
        while usize::from(*class) + 1 < self.budgets.len() && worn > self.budgets[usize::from(*class)] {
            *class += 1;
        }
    }

    /// Returns, for each block, the number of erasures after which even the smallest step exceeds the ECC limit;
    /// `u32::MAX`: never.
    pub(crate) fn lasts(&self) -> Vec<u32> {
        let budget = self.budgets.last().copied().unwrap_or(f64::INFINITY);
        self.growth.iter().map(|&growth| ((budget / f64::from(growth)).floor() + 1.0) as u32).collect()
    }

    /// Returns by how much the logarithm of a block's bit error rate grows with each erasure.
    pub(super) fn growth(&self, block: u32) -> f64 {
        f64::from(self.growth[block as usize])
    }

    /// Returns the number of steps.
    pub(crate) fn classes(&self) -> u32 {
        self.budgets.len() as u32
    }

    /// Returns the index of a block's step; 0 is the fastest.
    #[inline]
    pub(crate) fn class(&self, block: u32) -> u32 {
        u32::from(self.class[block as usize])
    }

    /// Returns the time that a program of the lowest page type takes in a block, ns.
    #[inline]
    pub fn program_ns(&self, block: u32) -> u64 {
        self.program_ns[self.at(block, 0)]
    }

    /// Returns where the times and counts of a block and a page type are.
    #[inline]
    fn at(&self, block: u32, of_type: usize) -> usize {
        usize::from(self.class[block as usize]) * self.types + if self.types == 1 { 0 } else { of_type }
    }

    /// Counts programs of a block's pages of one type; returns the time of each program, ns.
    #[inline]
    pub fn program(&mut self, block: u32, of_type: usize, pages: u32) -> u64 {
        let at = self.at(block, of_type);
        self.programs[at] += u64::from(pages);
        self.program_ns[at]
    }

    /// Counts an erasure of a block, and finds its step anew.
    #[inline]
    pub(super) fn erase(&mut self, block: u32) {
        self.set_erases(block, self.erases[block as usize] + 1);
    }

    /// Sets the counts of programmed pages back to 0.
    pub(crate) fn reset_counts(&mut self) {
        self.programs.fill(0);
    }

    /// Returns the program time of each step and page type, ns, and the number of pages programmed in it.
    pub fn programs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.program_ns.iter().copied().zip(self.programs.iter().copied())
    }
}

#[cfg(test)]
#[path = "variation_tests.rs"]
mod tests;
