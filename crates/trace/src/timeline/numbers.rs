//! The numbers of the tracks.

use super::{FIRST, Timeline};
use ftlab_core::device::Stage;

impl Timeline {
    /// Returns the track of a channel's bus.
    pub(super) fn bus_track(&self, channel: u64) -> u64 {
        FIRST + u64::from(self.tracks.channels) + channel
    }

    /// Returns the track of a LUN's stage; transfers that may overlap with the work of the cells have a track of their
    /// own.
    pub(super) fn lun_track(&self, lun: u64, stage: Stage) -> u64 {
        let data = self.tracks.overlap && stage != Stage::Cells;
        let behind = if data { self.tracks.luns.len() as u64 } else { 0 };
        FIRST + 2 * u64::from(self.tracks.channels) + behind + lun
    }

    /// Returns the track of a direction of the link, or of a core.
    pub(super) fn server_track(&self, server: u64) -> u64 {
        FIRST + 2 * u64::from(self.tracks.channels) + 2 * self.tracks.luns.len() as u64 + server
    }

    /// Returns the track of a lane of a sender's requests.
    pub(super) fn lane_track(&self, stream: u16, lane: u64) -> u64 {
        self.server_track(self.tracks.controller.len() as u64) + self.senders.number(stream, lane)
    }
}
