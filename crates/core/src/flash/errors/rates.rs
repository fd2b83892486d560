//! The coefficients of the bit error rate that a flash has, and whether it has any.

use super::process::Coefficients;
use super::settings::Errors;
use crate::config::{Contradiction, Ignored};
use crate::flash::Flash;

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
