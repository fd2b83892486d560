//! `[flash.errors]`: the rate at which bits are read wrong, and what corrects them.

use super::process::{Coefficients, Process};
use crate::config::section::{OPERATION, count, from_zero, number};
use crate::config::{Contradiction, Ignored, section};
use crate::flash::Flash;

section! {
    /// The settings of section `[flash.errors]`: rate = base + wear PE^a + retention PE^b hours^c + disturb PE^d reads^e.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Errors {
        /// Process whose coefficients of the bit error rate hold where flash.errors states no others.
        process: Process = "flash.errors.process", "none" not in state;
        /// Bit error rate of an unworn block.
        base: Option<f64> = "flash.errors.base", from_zero(0.5) or "process", "process" not in state;
        /// Coefficient of wear, times program/erase cycles to the power flash.errors.a.
        wear: Option<f64> = "flash.errors.wear", from_zero(0.5) or "process", "process" not in state;
        /// Coefficient of retention, times program/erase cycles to the power flash.errors.b and hours since the block's
        /// first page was programmed to the power flash.errors.c.
        retention: Option<f64> = "flash.errors.retention", from_zero(0.5) or "process", "process" not in state;
        /// Coefficient of read disturb, times program/erase cycles to the power flash.errors.d and page reads of the
        /// block since it was erased to the power flash.errors.e.
        disturb: Option<f64> = "flash.errors.disturb", from_zero(0.5) or "process", "process" not in state;
        /// Exponent of program/erase cycles in wear.
        a: Option<f64> = "flash.errors.a", from_zero(10.0) or "process", "process" not in state;
        /// Exponent of program/erase cycles in retention.
        b: Option<f64> = "flash.errors.b", from_zero(10.0) or "process", "process" not in state;
        /// Exponent of hours in retention.
        c: Option<f64> = "flash.errors.c", from_zero(10.0) or "process", "process" not in state;
        /// Exponent of program/erase cycles in read disturb.
        d: Option<f64> = "flash.errors.d", from_zero(10.0) or "process", "process" not in state;
        /// Exponent of page reads in read disturb.
        e: Option<f64> = "flash.errors.e", from_zero(10.0) or "process", "process" not in state;
        /// Largest number of wrong bits in a codeword of flash.ecc_unit that the first read of a page corrects.
        ecc_limit: f64 = "flash.errors.ecc_limit", number(0.0, 1e9), "72.0" not in state;
        /// Factor, above 1, by which each step of a read retry corrects more than the step before.
        retry_gain: f64 = "flash.errors.retry_gain", number(1.0, 100.0), "1.5" not in state;
        /// Number of steps of a read retry; a page that needs more cannot be read.
        retry_steps: u32 = "flash.errors.retry_steps", count(0, 63), "7" not in state;
        /// Time that the cells take for each step of a read retry; the transfer of the data follows. "read": as long as
        /// for the first read of the page.
        retry_ns: Option<u64> = "flash.errors.retry_time", OPERATION or "read", "read" not in state;
    }
}

/// The coefficients in use, with time in hours and reads of the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub base: f64,
    pub wear: f64,
    pub retention: f64,
    pub disturb: f64,
    /// The exponents a to e.
    pub exponents: [f64; 5],
}

impl Rates {
    /// Returns the coefficients of `flash`, or `None` if the rate is 0 everywhere.
    pub(super) fn new(flash: &Flash) -> Option<Rates> {
        let Errors { process, base, wear, retention, disturb, a, b, c, d, e, .. } = flash.errors;
        let Coefficients { exponents: own, by_page, .. } = process.coefficients();
        let stated = [a, b, c, d, e];
        let exponents: [f64; 5] = std::array::from_fn(|at| stated[at].unwrap_or(own[at]));
        let of = process.coefficients();
        let pages = if by_page { f64::from(flash.pages_per_block) } else { 1.0 };
        let rates = Rates {
            base: base.unwrap_or(of.base),
            wear: wear.unwrap_or(of.wear),
            retention: retention.unwrap_or_else(|| of.retention / libm::pow(24.0, exponents[2])),
            disturb: disturb.unwrap_or_else(|| of.disturb / libm::pow(pages, exponents[4])),
            exponents,
        };
        let terms = [rates.base, rates.wear, rates.retention, rates.disturb];
        terms.iter().any(|&term| term > 0.0).then_some(rates)
    }
}

/// Whether reads can meet errors.
pub(crate) fn are_on(flash: &Flash) -> bool {
    Rates::new(flash).is_some()
}

/// Checks that each step of a read retry corrects more than the one before.
pub(crate) fn check(flash: &Flash) -> Result<(), Contradiction> {
    let Errors { retry_gain, .. } = flash.errors;
    if are_on(flash) && retry_gain <= 1.0 {
        let message = format!("{retry_gain:?} makes no step of a read retry correct more; give more than 1");
        return Err(Contradiction { key: "flash.errors.retry_gain", message });
    }
    Ok(())
}

/// Collects the keys that have no effect while no read can meet an error.
pub(crate) fn ignored(flash: &Flash, found: &mut Ignored) {
    let switches = [
        "flash.errors.process",
        "flash.errors.base",
        "flash.errors.wear",
        "flash.errors.retention",
        "flash.errors.disturb",
    ];
    let why = "the bit error rate is 0: choose flash.errors.process, or state flash.errors.base, wear, retention or \
               disturb";
    found.section::<Errors>(are_on(flash), &switches, why);
    found.unless(are_on(flash), &["flash.age", "flash.retry", "ftl.refresh"], why);
    let retried = flash.errors.retry_steps > 0;
    let keys = ["flash.errors.retry_gain", "flash.errors.retry_time", "flash.retry"];
    found.unless(retried, &keys, "flash.errors.retry_steps = 0: no read is repeated");
}
