//! How long the flash takes to serve requests, as a scheduler of the host may estimate it.
//!
//! Source: ftlab's own, for map-rate and map-ratio; eqs. (3) to (6) of Ji et al., TCAD 2018, without misses.
//!
//! Interpretation: the times are those in the configuration; a transfer takes the time of a whole NAND page.

use crate::config::section::{Field, Section};
use crate::config::{Key, PageTimes, Values};
use crate::flash::settings::Flash;
use crate::request::Request;
use crate::workload::Op;

/// How long the flash takes to serve a page, according to the keys of `[flash]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time of a read with its transfer, ns.
    read_ns: u64,
    /// Time of a program with its transfer, ns.
    program_ns: u64,
}

/// The times have no keys of their own.
impl Section for Times {
    fn declare(_keys: &mut Vec<Key>) {}

    fn read(values: &Values) -> Times {
        let flash = Flash::default();
        let given = |key: &str, default: u64| u64::of(values.get(key)).unwrap_or(default);
        let mean = |key: &str, default: PageTimes| PageTimes::of(values.get(key)).unwrap_or(default).mean();
        let page_bytes = given("flash.page", u64::from(flash.page_bytes));
        let transfer_ns = page_bytes * given("flash.transfer", flash.transfer_ps) / 1000;
        Times {
            read_ns: mean("flash.read", flash.read) + transfer_ns,
            program_ns: mean("flash.program", flash.program) + transfer_ns,
        }
    }
}

impl Times {
    /// Returns the time of a read, ns.
    #[inline]
    pub fn read_ns(self) -> u64 {
        self.read_ns
    }

    /// Returns the time that a number of pages of a request take, ns.
    #[inline]
    pub fn of(self, op: Op, pages: u32) -> u64 {
        let page_ns = match op {
            Op::Read => self.read_ns,
            Op::Write => self.program_ns,
            Op::Trim | Op::Flush => 0,
        };
        page_ns * u64::from(pages)
    }

    /// Returns the time that a request's own pages take, ns.
    #[inline]
    pub fn own(self, request: &Request) -> u64 {
        self.of(request.op, request.pages.pages)
    }
}
