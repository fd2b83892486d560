//! `[flash]`: geometry and timing, and what follows from the geometry.

use super::errors::{Errors, Retry};
use super::parallel::{MultiPlane, Parallel};
use super::variation::Variation;
use crate::config::section::{BY_PAGE_TYPE, Field, OPERATION, bytes, count};
use crate::config::{Kind, PageTimes, Value, choice, section};

section! {
    /// The settings of section `[flash]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Flash {
        /// Number of channels.
        channels: u32 = "flash.channels", count(1, 1024), "1";
        /// Chips on each channel.
        chips_per_channel: u32 = "flash.chips_per_channel", count(1, 1024), "1";
        /// Dies in each chip; without flash.interleave, more dies only add capacity.
        dies_per_chip: u32 = "flash.dies_per_chip", count(1, 64), "1";
        /// Planes in each die; without flash.multi_plane, more planes only add capacity.
        planes_per_die: u32 = "flash.planes_per_die", count(1, 64), "1";
        /// Erase blocks in each plane.
        blocks_per_plane: u32 = "flash.blocks_per_plane", count(1, 1 << 24), "4096";
        /// Pages in each erase block.
        pages_per_block: u32 = "flash.pages_per_block", count(1, 65_536), "64";
        /// Data bytes of a NAND page.
        page_bytes: u32 = "flash.page", bytes(512, 1 << 24), "4KiB";
        /// Number of bytes that error correction protects together; a unit of msftl is at least this large.
        ecc_unit_bytes: u32 = "flash.ecc_unit", bytes(1, 1 << 24), "1KiB";
        /// Raw capacity; the geometry determines it, and a value given here must agree with it.
        stated_bytes: Option<u64> = "flash.capacity", bytes(1, 1 << 60) not in state;
        /// Number of bits that a cell holds, and so of the pages, each of another type, that share a word line.
        cell: Cell = "flash.cell", "slc" not in state;
        /// Which page type each page of a block has.
        page_order: PageOrder = "flash.page_order", "word-line" not in state;
        /// What is programmed at once.
        programming: Programming = "flash.programming", "page";
        /// Time to read a page from the cells, for all page types or for each.
        read: PageTimes = "flash.read", BY_PAGE_TYPE, "35us" not in state;
        /// Time to program a page, for all page types or for each; or to program a whole word line.
        program: PageTimes = "flash.program", BY_PAGE_TYPE, "350us" not in state;
        /// Time to erase a block.
        erase_ns: u64 = "flash.erase", OPERATION, "1.5ms" not in state;
        /// Time to read a page of a block that is used with one bit a cell (ftl.slc_cache); "cell": the time of the
        /// lowest page type.
        slc_read_ns: Option<u64> = "flash.slc_read", OPERATION or "cell", "cell" not in state;
        /// Time to program a page of a block that is used with one bit a cell; "cell": the time of the lowest page
        /// type, or of a whole word line.
        slc_program_ns: Option<u64> = "flash.slc_program", OPERATION or "cell", "cell" not in state;
        /// Time to erase a block that was used with one bit a cell; "cell": flash.erase.
        slc_erase_ns: Option<u64> = "flash.slc_erase", OPERATION or "cell", "cell" not in state;
        /// Time that one byte takes on the channel bus.
        transfer_ps: u64 = "flash.transfer", PER_BYTE, "0ns" not in state;
        /// Number of erasures that each block has undergone before time 0.
        pe_cycles: u64 = "flash.pe_cycles", count(0, 1 << 30), "0";
        /// Number of erases after which a block is retired; ecc: once its error rate exceeds flash.variation.ecc_limit
        /// at every ISPP step.
        endurance: Endurance = "flash.endurance", count(1, 1 << 30) or "none" or "ecc", "none";
        /// Time that a command and its address take on the channel bus.
        command_ns: u64 = "flash.command", OPERATION, "0ns" not in state;
        /// Time that the command and address of a read take on the channel bus.
        read_command_ns: Option<u64> = "flash.read_command", OPERATION or "command", "command" not in state;
        /// Time that the command and address of a program take on the channel bus.
        program_command_ns: Option<u64>
            = "flash.program_command", OPERATION or "command", "command" not in state;
        /// Time that the command and address of an erase take on the channel bus.
        erase_command_ns: Option<u64> = "flash.erase_command", OPERATION or "command", "command" not in state;
        /// Who uses a channel bus next.
        bus: BusOrder = "flash.bus", "fcfs" not in state;
        /// The options of parallel operation.
        parallel: Parallel;
        /// How blocks differ in speed and wear; `None` if they do not.
        variation: Option<Variation>;
        /// The rate at which bits are read wrong, and what corrects them.
        errors: Errors;
        /// How a read is repeated that the error correction cannot correct.
        retry: Retry = "flash.retry", "from-start" not in state;
        /// Time for which the data that are there at time 0 have lain before.
        age_ns: u64 = "flash.age", LONGEST_AGE, "0ns" not in state;
    }
}

choice! {
    /// The values of `flash.cell`: how many bits a cell holds.
    pub enum Cell {
        /// one bit a cell: all pages are alike
        Slc = "slc",
        /// two bits a cell
        Mlc = "mlc",
        /// three bits a cell
        Tlc = "tlc",
        /// four bits a cell
        Qlc = "qlc",
    }
}

impl Cell {
    /// Returns the number of bits that a cell holds.
    pub fn bits(self) -> u32 {
        self as u32 + 1
    }
}

choice! {
    /// The values of `flash.page_order`: which page type each page of a block has.
    pub enum PageOrder {
        /// the pages of a word line follow each other: page p has type p mod (bits of a cell)
        WordLine = "word-line",
        /// two-pass programming: the lower pages of the next word lines come before the upper page of a word line
        Shadow = "shadow",
    }
}

choice! {
    /// The values of `flash.programming`: what is programmed at once.
    pub enum Programming {
        /// one page
        Page = "page",
        /// all pages of a word line, in one program time, once the data of all of them are there
        WordLine = "word-line",
    }
}

choice! {
    /// The values of `flash.bus`: which operation uses a channel bus next.
    pub enum BusOrder {
        /// first come, first served
        Fcfs = "fcfs",
        /// commands of reads and erases before transfers of data, each first come, first served
        CommandsFirst = "commands-first",
    }
}

const PER_BYTE: Kind = Kind::TimePerByte;
/// The longest time for which data may have lain: twenty years.
const LONGEST_AGE: Kind = Kind::Duration { max_ns: 20 * 365 * 86_400 * 1_000_000_000 };

/// `flash.endurance`: when a block is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endurance {
    /// Never.
    Unlimited,
    /// After this many erases.
    Cycles(u32),
    /// When the block's errors exceed the ECC limit even at the smallest ISPP step.
    Ecc,
}

impl Field for Endurance {
    fn of(value: Option<&Value>) -> Option<Endurance> {
        match value? {
            Value::Word("none") => Some(Endurance::Unlimited),
            Value::Word("ecc") => Some(Endurance::Ecc),
            cycles => u32::of(Some(cycles)).map(Endurance::Cycles),
        }
    }
}

impl Flash {
    /// Returns the number of chips.
    pub fn chips(&self) -> u32 {
        self.channels * self.chips_per_channel
    }

    /// Returns the number of erase blocks in one chip.
    pub fn blocks_per_chip(&self) -> u64 {
        u64::from(self.dies_per_chip) * u64::from(self.planes_per_die) * u64::from(self.blocks_per_plane)
    }

    /// Returns the number of LUNs in one chip, that is, of the parts to which the FTL can direct a page
    /// ([`super::parallel`]).
    pub fn luns_per_chip(&self) -> u32 {
        match self.parallel {
            Parallel { multi_plane: MultiPlane::Off, interleave: false, .. } => 1,
            Parallel { multi_plane: MultiPlane::Off, .. } => self.dies_per_chip,
            _ => self.dies_per_chip * self.planes_per_die,
        }
    }

    /// Returns the number of LUNs.
    pub fn luns(&self) -> u32 {
        self.chips() * self.luns_per_chip()
    }

    /// Returns the number of erase blocks in one LUN.
    pub fn blocks_per_lun(&self) -> u64 {
        self.blocks_per_chip() / u64::from(self.luns_per_chip())
    }

    /// Returns the word for a LUN of this flash: chip, die or plane.
    pub(crate) fn lun_name(&self) -> &'static str {
        match self.parallel {
            Parallel { multi_plane: MultiPlane::Off, interleave: false, .. } => "chip",
            Parallel { multi_plane: MultiPlane::Off, .. } => "die",
            _ => "plane",
        }
    }

    /// Returns the number of pages of a program unit, which is what is programmed at once: a page or a word line.
    pub fn unit_pages(&self) -> u32 {
        if self.programming == Programming::WordLine { self.cell.bits() } else { 1 }
    }

    /// Returns the number of program units in a block.
    pub fn units_per_block(&self) -> u32 {
        self.pages_per_block / self.unit_pages()
    }

    /// Returns the data bytes of a program unit.
    pub fn unit_bytes(&self) -> u32 {
        self.page_bytes * self.unit_pages()
    }

    /// Returns the number of NAND pages.
    pub fn pages(&self) -> u64 {
        u64::from(self.chips()) * self.blocks_per_chip() * u64::from(self.pages_per_block)
    }

    /// Returns the raw capacity of the device in bytes, before over-provisioning.
    pub fn raw_bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// Returns the bus time of `bytes`, rounded to the nearest nanosecond (halves up).
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        (bytes * self.transfer_ps + 500) / 1000
    }
}
