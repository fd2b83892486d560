//! How busy the device's resources were, and what they did at the same time.

use serde::Serialize;

use super::flash::ratio;
use crate::device::{Overlaps, Used};

/// How busy chips, dies and channels were; of what is under way at the end, only the time that has passed
/// counts.
#[derive(Clone, Debug, Serialize)]
pub struct Utilization {
    /// Time each chip was busy: cells and bus.
    pub chip_busy_ns: Vec<u64>,
    /// Time each die was busy, chip by chip, where dies work on their own (`flash.interleave`); else none. A
    /// chip is busy while any of its dies is.
    pub die_busy_ns: Vec<u64>,
    /// Time each channel's bus was busy.
    pub channel_busy_ns: Vec<u64>,
    /// chip_busy_ns / elapsed_ns.
    pub chip: Vec<f64>,
    /// die_busy_ns / elapsed_ns.
    pub die: Vec<f64>,
    /// channel_busy_ns / elapsed_ns.
    pub channel: Vec<f64>,
    /// The resource with the largest share; null where nothing was busy.
    pub bottleneck: Option<Bottleneck>,
}

/// The busiest chip, or die where dies work on their own, or channel bus, or direction of the link, or core.
#[derive(Clone, Debug, Serialize)]
pub struct Bottleneck {
    /// `chip 3`, `chip 3 die 1`, `channel 0`, `link`, `link to the device`, `link to the host` or `core 0`. Among
    /// equally busy resources, it is the one whose kind comes first in this list, then the one with the lower number.
    pub name: String,
    /// Its share: if near 1, this resource limits the run; if far below 1, the run is limited by how fast requests
    /// arrive.
    pub utilization: f64,
    /// Mean share of all resources of its kind; close to its own share where the load is even.
    pub mean: f64,
}

impl Utilization {
    pub(super) fn new(used: &Used, dies_per_chip: u32, elapsed_ns: u64) -> Utilization {
        let Used { chips: chip, dies: die, channels: channel, .. } = used.clone();
        let [chips, dies, channels] = [&chip, &die, &channel].map(|busy| shares(busy, elapsed_ns));
        let mut bottleneck: Option<Bottleneck> = None;
        let mut look = |shares: &[f64], name: &dyn Fn(usize) -> String| {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            for (index, &utilization) in shares.iter().enumerate() {
                if utilization > bottleneck.as_ref().map_or(0.0, |found| found.utilization) {
                    bottleneck = Some(Bottleneck { name: name(index), utilization, mean });
                }
            }
        };
        if dies.is_empty() {
            look(&chips, &|chip| format!("chip {chip}"));
        } else {
            let per_chip = dies_per_chip as usize;
            look(&dies, &|die| format!("chip {} die {}", die / per_chip, die % per_chip));
        }
        look(&channels, &|channel| format!("channel {channel}"));
        let direction = |at: usize| ["link to the device", "link to the host"][at].to_string();
        let name = |at: usize| if used.link.len() == 1 { "link".into() } else { direction(at) };
        look(&shares(&used.link, elapsed_ns), &name);
        look(&shares(&used.cores, elapsed_ns), &|core| format!("core {core}"));
        Utilization {
            chip_busy_ns: chip,
            die_busy_ns: die,
            channel_busy_ns: channel,
            chip: chips,
            die: dies,
            channel: channels,
            bottleneck,
        }
    }
}

/// Returns busy times as shares of the time that has passed.
pub(super) fn shares(busy: &[u64], elapsed_ns: u64) -> Vec<f64> {
    busy.iter().map(|&busy_ns| ratio(busy_ns, elapsed_ns).unwrap_or(0.0)).collect()
}

/// Reads, programs and erasures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ByOperation {
    /// Reads.
    pub read: u64,
    /// Programs.
    pub program: u64,
    /// Erasures.
    pub erase: u64,
}

/// Operations that used what the flash can do at once; zeros where that is off.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ParallelOperations {
    /// Operations on more than one plane, each counted once.
    pub multi_plane: ByOperation,
    /// Cache operations: those that began while the previous operation was under way.
    pub cached: ByOperation,
    /// Suspensions, by what was suspended.
    pub suspensions: ByOperation,
    /// Reads served ahead of an older program or erasure (`flash.out_of_order`).
    pub passed: u64,
}

impl ParallelOperations {
    pub(super) fn new(overlaps: Overlaps) -> ParallelOperations {
        let by = |[read, program, erase]: [u64; 3]| ByOperation { read, program, erase };
        let Overlaps {
            multi_plane,
            cached: [reads, programs],
            suspensions: [of_programs, of_erases],
            passed,
        } = overlaps;
        ParallelOperations {
            multi_plane: by(multi_plane),
            cached: by([reads, programs, 0]),
            suspensions: by([0, of_programs, of_erases]),
            passed,
        }
    }
}
