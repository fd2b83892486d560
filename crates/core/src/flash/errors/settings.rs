//! `[flash.errors]`: the rate at which bits are read wrong, and what corrects them.

use super::process::Process;
use crate::config::section;
use crate::config::section::{OPERATION, count, from_zero, number};

section! {
    /// The settings of section `[flash.errors]`: rate = base + wear PE^a + retention PE^b hours^c + disturb PE^d
    /// reads^e.
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
