//! `[energy]`: what flash operations, transfers and commands take, and the power of the controller.
//!
//! Energies are whole femtojoules and powers whole microwatts, and a microwatt for a nanosecond is a femtojoule. So
//! every part is exact, and the parts add up to the total.
//!
//! Source: a fixed energy for each operation, and a power while nothing goes on, are what power models of NAND flash
//! come down to once the device is chosen (Mohan et al., "FlashPower: a detailed power model for NAND flash memory",
//! DATE 2010; SimpleSSD, `pal/old/LatencySLC.cc`). What was read into it is in `docs/readings/energy.md`.

use crate::config::units::{ENERGY, ENERGY_PER_BYTE, POWER};
use crate::config::{ByPageType, Contradiction, Kind, section};
use crate::flash::Flash;

/// The kind of a key that holds an energy: at most a joule, so that the sum of 2^64 of them fits into 128 bits.
const EACH: Kind = Kind::Quantity { unit: &ENERGY, max: JOULE };
/// The kind of a key that holds an energy for each page type.
const BY_PAGE_TYPE: Kind = Kind::ByPageType { unit: &ENERGY, max: JOULE, example: "10uJ/12uJ/15uJ" };
const PER_BYTE: Kind = Kind::Quantity { unit: &ENERGY_PER_BYTE, max: JOULE / 1_000_000 };
const WATTS: Kind = Kind::Quantity { unit: &POWER, max: 1_000_000_000 };
const JOULE: u64 = 1_000_000_000_000_000;

section! {
    /// `[energy]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// Energy of reading a page from the cells, for all page types or for each.
        read: ByPageType = "energy.read", BY_PAGE_TYPE, "0pJ";
        /// Energy of programming a page, for all page types or for each; or of programming a whole word line.
        program: ByPageType = "energy.program", BY_PAGE_TYPE, "0pJ";
        /// Energy of erasing a block.
        erase_fj: u64 = "energy.erase", EACH, "0pJ";
        /// Energy of each byte that crosses a channel bus.
        transfer_fj: u64 = "energy.transfer", PER_BYTE, "0pJ/B";
        /// Energy of each byte that crosses the link between host and device.
        link_fj: u64 = "energy.link", PER_BYTE, "0pJ/B";
        /// Energy of each command.
        command_fj: u64 = "energy.command", EACH, "0pJ";
        /// Power of the controller while nothing is under way in the device.
        idle_uw: u64 = "energy.idle", WATTS, "0mW";
        /// Power of the controller while anything is under way in the device.
        active_uw: u64 = "energy.active", WATTS, "0mW";
    }
}

impl Settings {
    /// Whether anything takes energy.
    pub fn is_on(&self) -> bool {
        let Settings { erase_fj, transfer_fj, link_fj, command_fj, .. } = self;
        self.read.most().max(self.program.most()) | erase_fj | transfer_fj | link_fj | command_fj > 0
            || self.has_power()
    }

    /// Whether the controller has a power, so that it matters for how long anything is under way.
    pub fn has_power(&self) -> bool {
        self.idle_uw | self.active_uw > 0
    }

    /// Whether pages of different types take different energies, so that operations are counted by type.
    pub fn differs_by_type(&self) -> bool {
        !self.read.are_alike() || !self.program.are_alike()
    }

    /// Checks that the energies fit the cells.
    pub(crate) fn check(&self, flash: &Flash) -> Result<(), Contradiction> {
        let (bits, cell) = (flash.cell.bits() as usize, flash.cell.name());
        for (key, energies) in [("energy.read", &self.read), ("energy.program", &self.program)] {
            let stated = energies.stated().len();
            if stated > 1 && stated != bits {
                let message = format!(
                    "{energies}: {stated} energies for the {bits} page types of flash.cell = \"{cell}\"; \
                     give one energy, or {bits}"
                );
                return Err(Contradiction { key, message });
            }
        }
        if flash.unit_pages() > 1 && self.program.stated().len() > 1 {
            let message = "a word line is programmed at once (flash.programming), with one energy: give one";
            return Err(Contradiction { key: "energy.program", message: message.into() });
        }
        Ok(())
    }
}
