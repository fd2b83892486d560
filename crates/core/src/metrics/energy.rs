//! Where the energy of a run went.

use serde::Serialize;

use crate::device::energy::Settings;
use crate::flash::{ByCause, ByType, Cause, Counts, Flash, Work};

/// What a run's energy follows from, besides the flash operations.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Bytes that crossed the link.
    pub link_bytes: u64,
    /// Commands that the device answered.
    pub commands: u64,
    /// Time for which anything was under way in the device, and the rest of the run, ns.
    pub active_ns: u64,
    /// The rest of the run, ns.
    pub idle_ns: u64,
}

/// The energy of a run, with `[energy]`: of flash operations and transfers by what they do and by cause, and of what
/// has no cause. All but `by_cause` are parts of the total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Energy {
    /// The sum of all parts, millijoules.
    pub total_mj: f64,
    /// The sum of all parts / trace.requests, microjoules.
    pub per_request_uj: Option<f64>,
    /// Page reads.
    pub read_mj: f64,
    /// Page programs; with whole word lines programmed at once, each word line once.
    pub program_mj: f64,
    /// Block erases.
    pub erase_mj: f64,
    /// Data on the channel buses.
    pub transfer_mj: f64,
    /// Data on the link between host and device.
    pub link_mj: f64,
    /// Commands.
    pub command_mj: f64,
    /// The controller, while anything was under way in the device.
    pub active_mj: f64,
    /// The controller, while nothing was under way in the device.
    pub idle_mj: f64,
    /// Flash operations and their transfers, by cause, millijoules.
    pub by_cause: ByCause<f64>,
}

impl Energy {
    /// Returns the parts that make the total, with their names, millijoules.
    pub fn parts(&self) -> [(&'static str, f64); 8] {
        [
            ("read", self.read_mj),
            ("program", self.program_mj),
            ("erase", self.erase_mj),
            ("transfer", self.transfer_mj),
            ("link", self.link_mj),
            ("command", self.command_mj),
            ("active", self.active_mj),
            ("idle", self.idle_mj),
        ]
    }
}

/// The parts of a run's energy, exactly, in fractions of a femtojoule: `per_fj` of them make one. A word line takes the
/// energy of a program once, so that a page of it takes a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyParts {
    per_fj: u128,
    /// Page reads.
    pub read: ByCause<u128>,
    /// Programs.
    pub program: ByCause<u128>,
    /// Block erases.
    pub erase: ByCause<u128>,
    /// Data on the channel buses.
    pub transfer: ByCause<u128>,
    /// Data on the link.
    pub link: u128,
    /// Commands.
    pub command: u128,
    /// The controller, while anything was under way.
    pub active: u128,
    /// The controller, while nothing was under way.
    pub idle: u128,
}

fn sum(by_cause: &ByCause<u128>) -> u128 {
    by_cause.values().sum()
}

impl EnergyParts {
    /// Works out the parts from the counts of a run.
    pub fn new(settings: &Settings, flash: &Flash, work: &Work, drawn: Drawn) -> EnergyParts {
        let (counts, tally) = (work.counts(), work.tallied());
        let unit_pages = u128::from(flash.unit_pages());
        let of_types = |pages: &ByType, cause, energies: &crate::config::ByPageType| {
            let types = pages[cause].iter().enumerate();
            types.map(|(of_type, &pages)| u128::from(pages) * u128::from(energies.of_type(of_type))).sum()
        };
        let alike = |pages: u64, energies: &crate::config::ByPageType| {
            u128::from(pages) * u128::from(energies.of_type(0))
        };
        let read = |cause| match tally {
            Some(tally) => of_types(&tally.reads, cause, &settings.read),
            None => alike(counts.reads[cause], &settings.read),
        };
        let program = |cause| match tally {
            Some(tally) if unit_pages == 1 => of_types(&tally.programs, cause, &settings.program),
            _ => alike(counts.programs[cause], &settings.program),
        };
        let transfer_fj = u128::from(settings.transfer_fj);
        let transfer = |cause| u128::from(transferred(counts, flash, cause)) * transfer_fj;
        let erase = |cause| u128::from(counts.erases[cause]) * u128::from(settings.erase_fj);
        let times = |count: u64, each: u64| unit_pages * u128::from(count) * u128::from(each);
        EnergyParts {
            per_fj: unit_pages,
            read: ByCause::new(|cause| unit_pages * read(cause)),
            program: ByCause::new(program),
            erase: ByCause::new(|cause| unit_pages * erase(cause)),
            transfer: ByCause::new(|cause| unit_pages * transfer(cause)),
            link: times(drawn.link_bytes, settings.link_fj),
            command: times(drawn.commands, settings.command_fj),
            active: times(drawn.active_ns, settings.active_uw),
            idle: times(drawn.idle_ns, settings.idle_uw),
        }
    }

    /// Returns the energy of the flash operations and transfers of a cause.
    pub fn of_cause(&self, cause: Cause) -> u128 {
        self.read[cause] + self.program[cause] + self.erase[cause] + self.transfer[cause]
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> u128 {
        let EnergyParts { read, program, erase, transfer, link, command, active, idle, .. } = self;
        [read, program, erase, transfer].map(sum).iter().sum::<u128>() + link + command + active + idle
    }

    /// Returns the section of a result.
    pub fn report(&self, requests: u64) -> Energy {
        // A millijoule is 10^12 femtojoules.
        let mj = |part: u128| part as f64 / (self.per_fj as f64 * 1e12);
        let total_mj = mj(self.total());
        Energy {
            total_mj,
            per_request_uj: (requests > 0).then(|| total_mj * 1e3 / requests as f64),
            read_mj: mj(sum(&self.read)),
            program_mj: mj(sum(&self.program)),
            erase_mj: mj(sum(&self.erase)),
            transfer_mj: mj(sum(&self.transfer)),
            link_mj: mj(self.link),
            command_mj: mj(self.command),
            active_mj: mj(self.active),
            idle_mj: mj(self.idle),
            by_cause: ByCause::new(|cause| mj(self.of_cause(cause))),
        }
    }
}

/// Returns the bytes that operations of a cause moved over the channel buses.
fn transferred(counts: &Counts, flash: &Flash, cause: Cause) -> u64 {
    (counts.reads[cause] + counts.programs[cause]) * u64::from(flash.page_bytes) - counts.unsent[cause]
}

/// Checks, for check mode, that operations counted by page type are those counted by cause.
///
/// # Errors
/// A message that says what differs.
pub fn verify(work: &Work, flash: &Flash) -> Result<(), String> {
    let (counts, Some(tally)) = (work.counts(), work.tallied()) else { return Ok(()) };
    let unit_pages = u64::from(flash.unit_pages());
    for cause in Cause::ALL {
        let [reads, units] = [&tally.reads, &tally.programs].map(|by| by[cause].iter().sum::<u64>());
        let programs = counts.programs[cause];
        if reads != counts.reads[cause] || (unit_pages == 1 && units != programs) {
            return Err(format!(
                "energy: {reads} reads and {units} programs by page type, {} and {programs} with cause {}",
                counts.reads[cause],
                cause.name()
            ));
        }
    }
    Ok(())
}
