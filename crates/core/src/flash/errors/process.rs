//! Coefficients of the bit error rate, for flash of several processes.
//!
//! Source: the model of Kim, Choi, Min, "Design Tradeoffs for SSD Reliability", FAST 2019, which fits one formula to
//! the measurements of others: a fresh error rate, wear, retention and read disturb, each a power of program/erase
//! cycles, time and reads. The paper's table was not at hand. The figures are those of two simulators that took them
//! over independently of each other: SimpleSSD (`ftl/read_reclaim/abstract_read_reclaim.cc`, 2y-nm MLC, time in days,
//! reads of a block) and MQSim-JW (`docs/features/ecc-and-read-retry.md`, 72-layer TLC, reads of a page on average). A
//! third, which has both rows under the heading FAST19, also counts days. What was read into the units is in
//! `docs/readings/errors-and-age.md`.

use crate::config::choice;

choice! {
    /// The values of `flash.errors.process`: whose coefficients a block has where no key states another.
    pub enum Process {
        /// a rate of 0, with exponents of 1
        None = "none",
        /// MLC of 2y nm, that is 20 to 24 nm (Kim et al., FAST 2019)
        Mlc2y = "mlc-2y-nm",
        /// 3D TLC of 72 layers (Kim et al., FAST 2019)
        Tlc72 = "tlc-72-layer",
    }
}

/// The coefficients of a process, with time in days.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coefficients {
    pub base: f64,
    pub wear: f64,
    pub retention: f64,
    pub disturb: f64,
    /// Exponents of: cycles in the term of wear; cycles and days in that of retention; cycles and reads in that of
    /// disturb.
    pub exponents: [f64; 5],
    /// Whether reads are those of a page, averaged over its block, and not all those of the block.
    pub by_page: bool,
}

impl Process {
    /// Returns the coefficients of the process.
    pub(super) fn coefficients(self) -> Coefficients {
        let zero = Coefficients {
            base: 0.0,
            wear: 0.0,
            retention: 0.0,
            disturb: 0.0,
            exponents: [1.0; 5],
            by_page: false,
        };
        match self {
            Process::None => zero,
            Process::Mlc2y => Coefficients {
                base: 8.34e-5,
                wear: 3.30e-11,
                retention: 5.56e-19,
                disturb: 6.26e-13,
                exponents: [1.71, 2.49, 3.33, 1.76, 0.47],
                ..zero
            },
            Process::Tlc72 => Coefficients {
                base: 1.48e-3,
                wear: 3.90e-10,
                retention: 6.28e-5,
                disturb: 3.73e-9,
                exponents: [2.05, 0.14, 0.54, 0.33, 1.71],
                by_page: true,
            },
        }
    }
}
