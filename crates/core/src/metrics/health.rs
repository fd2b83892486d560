//! The device's health, as a drive reports it.
//!
//! Sources: NVM Express Base Specification 2.0, section 5.16.1.3 (SMART / Health Information log); JEDEC
//! JESD84-B51 (eMMC 5.1), section 7.4 (EXT_CSD bytes 267 to 269); JEDEC JESD220 (UFS), the device health
//! descriptor. Fields keep the standards' names and encodings; what a simulation does not know (temperature,
//! power cycles) is left out; so are uncorrected errors where none can occur.
//!
//! Interpretation: life used is erases / endurance, averaged over all blocks; erases include `flash.pe_cycles` and
//! preconditioning. NVMe's available spare is that of the chip with the fewest spare blocks left, because a chip cannot
//! use the spare blocks of another; eMMC and UFS mean the average. There is one type of memory, so type B is not
//! defined. Counters of commands and data are those of the run.

use serde::Serialize;

use super::Recorder;
use crate::flash::Work;
use crate::ftl::blocks::endurance::Life;

/// Wear-out.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// read-only; else spare-low if available spare < `ftl.spare_threshold`; else good.
    pub state: State,
    /// When the device turned read-only, on the clock of the arrivals; null if it did not.
    pub read_only_ns: Option<u64>,
    /// Page reads that could not be corrected, by the host or the device itself; only where reads can meet errors.
    /// NVMe: Media and Data Integrity Errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
    /// Requests that failed: a read-only device refused them, in whole or in part, or they could not be read.
    pub failed: Failed,
    /// The erase blocks.
    pub blocks: Blocks,
    /// NVMe: SMART / Health Information.
    pub nvme_smart: NvmeSmart,
    /// eMMC: bytes of EXT_CSD.
    pub emmc_ext_csd: EmmcExtCsd,
    /// UFS: device health descriptor.
    pub ufs_health_descriptor: UfsHealthDescriptor,
}

/// `health.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing to report.
    Good,
    /// A chip's spare blocks are below `ftl.spare_threshold`.
    SpareLow,
    /// Writes, trims and flushes are refused.
    ReadOnly,
}

/// Requests that failed; `trace` includes them, but no time does.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Failed {
    /// Reads of data that could not be corrected; only where reads can meet errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    /// Writes that a read-only device refused, in whole or in part.
    pub writes: u64,
    /// Trims that it refused.
    pub trims: u64,
    /// Flushes that it refused.
    pub flushes: u64,
}

/// Blocks of the flash: all = in service + spare + retired.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Blocks {
    /// Blocks of the flash.
    pub all: u64,
    /// Blocks past their limit, which hold nothing.
    pub retired: u64,
    /// Spare blocks the device began with.
    pub spare: u64,
    /// Spare blocks left.
    pub spare_left: u64,
}

/// The device's health as an NVMe drive reports it: SMART / Health Information.
#[derive(Clone, Debug, Serialize)]
pub struct NvmeSmart {
    /// 1 if available spare is below the threshold, + 8 if read-only.
    pub critical_warning: u8,
    /// 100 x spare blocks left / spare blocks, of the chip with the fewest left, rounded down; null without
    /// spare blocks.
    pub available_spare: Option<u8>,
    /// `ftl.spare_threshold`, in whole percent.
    pub available_spare_threshold: u8,
    /// 100 x mean erase count / `flash.endurance`, rounded down, at most 255; null without an endurance.
    pub percentage_used: Option<u8>,
    /// ceil(bytes of completed reads / 512,000).
    pub data_units_read: u64,
    /// ceil(bytes of completed writes / 512,000).
    pub data_units_written: u64,
    /// Completed reads.
    pub host_read_commands: u64,
    /// Completed writes.
    pub host_write_commands: u64,
}

/// The device's health as an eMMC device reports it: bytes of EXT_CSD.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct EmmcExtCsd {
    /// 0 without spare blocks; else 1 (normal), 2 once 80 % of them are used, or 3 once 90 % are.
    pub pre_eol_info: u8,
    /// Life used in tenths: 1 below 10 %, ..., 10 below 100 %, then 11; 0 without an endurance.
    pub device_life_time_est_typ_a: u8,
    /// 0: there is one type of memory.
    pub device_life_time_est_typ_b: u8,
}

/// The device's health as a UFS device reports it: its health descriptor.
#[derive(Clone, Debug, Serialize)]
pub struct UfsHealthDescriptor {
    /// As `PRE_EOL_INFO`; 3 is called critical.
    #[serde(rename = "bPreEOLInfo")]
    pub pre_eol_info: u8,
    /// As `DEVICE_LIFE_TIME_EST_TYP_A`.
    #[serde(rename = "bDeviceLifeTimeEstA")]
    pub device_life_time_est_a: u8,
    /// 0.
    #[serde(rename = "bDeviceLifeTimeEstB")]
    pub device_life_time_est_b: u8,
}

/// Returns this number of bytes in units of 512,000 B (1,000 times 512 B), rounded up.
fn data_units(bytes: u64) -> u64 {
    bytes.div_ceil(512_000)
}

/// Returns the pre-EOL information, given the number of spare blocks at the start and the number left.
fn pre_eol((spare, left): (u64, u64)) -> u8 {
    let used = spare - left;
    match spare {
        0 => 0,
        _ if used * 10 >= spare * 9 => 3,
        _ if used * 10 >= spare * 8 => 2,
        _ => 1,
    }
}

/// Returns the life used as eMMC encodes it: in tenths, from 1 to 11; 0 if it is not known.
fn life_time(used: Option<f64>) -> u8 {
    match used {
        None => 0,
        Some(used) if used >= 1.0 => 11,
        Some(used) => (used * 10.0) as u8 + 1,
    }
}

impl Health {
    /// Makes the health of a device from its blocks' wear, the time when it turned read-only, if it did, and its reads.
    pub fn new(
        life: &Life,
        recorder: &Recorder,
        (read_only_ns, work): (Option<u64>, &Work),
        threshold_ppm: u64,
    ) -> Health {
        let media_errors = work.reliability().map(|reliability| reliability.counts().failed);
        let (spare, left) = life.fewest;
        let threshold = (threshold_ppm / 10_000) as u8;
        let available = (spare > 0).then(|| (u64::from(left) * 100 / u64::from(spare)) as u8);
        let low = available.is_some_and(|percent| percent < threshold);
        let life_time = life_time(life.used);
        let pre_eol_info = pre_eol(life.spares);
        Health {
            state: match read_only_ns {
                Some(_) => State::ReadOnly,
                None if low => State::SpareLow,
                None => State::Good,
            },
            read_only_ns,
            media_errors,
            failed: Failed {
                reads: media_errors.map(|_| recorder.failed[0]),
                writes: recorder.failed[1],
                trims: recorder.failed[2],
                flushes: recorder.failed[3],
            },
            blocks: Blocks {
                all: life.blocks,
                retired: life.retired,
                spare: life.spares.0,
                spare_left: life.spares.1,
            },
            nvme_smart: NvmeSmart {
                critical_warning: u8::from(low) | u8::from(read_only_ns.is_some()) << 3,
                available_spare: available,
                available_spare_threshold: threshold,
                percentage_used: life.used.map(|used| (used * 100.0).min(255.0) as u8),
                data_units_read: data_units(recorder.served_bytes[0]),
                data_units_written: data_units(recorder.served_bytes[1]),
                host_read_commands: recorder.requests[0] - recorder.failed[0],
                host_write_commands: recorder.requests[1] - recorder.failed[1],
            },
            emmc_ext_csd: EmmcExtCsd {
                pre_eol_info,
                device_life_time_est_typ_a: life_time,
                device_life_time_est_typ_b: 0,
            },
            ufs_health_descriptor: UfsHealthDescriptor {
                pre_eol_info,
                device_life_time_est_a: life_time,
                device_life_time_est_b: 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_thousands_rounded_up() {
        assert_eq!([0, 1, 512_000, 512_001].map(data_units), [0, 1, 1, 2]);
    }

    /// JESD84-B51: 80 % consumed is a warning, 90 % is urgent; without reserved blocks nothing is defined.
    #[test]
    fn pre_eol_has_the_steps_of_the_standard() {
        let left = [(0, 0), (10, 10), (10, 3), (10, 2), (10, 1), (10, 0)];
        assert_eq!(left.map(pre_eol), [0, 1, 1, 2, 3, 3]);
    }

    /// 0x01 up to 10 % of life used, 0x0A up to 100 %, 0x0B beyond.
    #[test]
    fn life_time_has_the_steps_of_the_standard() {
        let used = [None, Some(0.0), Some(0.0999), Some(0.1), Some(0.95), Some(1.0), Some(7.0)];
        assert_eq!(used.map(life_time), [0, 1, 1, 2, 10, 11, 11]);
    }
}
