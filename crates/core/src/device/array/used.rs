//! How long each part of the device worked. The time of an activity is added when it begins. An activity that is under
//! way at the moment in question counts only up to that moment, so that no part works for longer than the time that has
//! passed, and it makes no difference whether a stretch of work is one step or several.

use super::{Array, Lun, Phase};

/// Time that each part of the device worked, ns.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// For each chip, the time for which its bus or any of its dies worked.
    pub chips: Vec<u64>,
    /// For each die, chip by chip; empty unless dies work on their own.
    pub dies: Vec<u64>,
    /// For each channel, the time for which its bus worked.
    pub channels: Vec<u64>,
    /// For each direction of the link; empty without a link.
    pub link: Vec<u64>,
    /// For each core of the controller; empty if no command takes a core any time.
    pub cores: Vec<u64>,
}

impl Used {
    /// Returns the time that each part has worked since an earlier moment.
    pub fn since(mut self, before: &Used) -> Used {
        let sides = [
            (&mut self.chips, &before.chips),
            (&mut self.dies, &before.dies),
            (&mut self.channels, &before.channels),
            (&mut self.link, &before.link),
            (&mut self.cores, &before.cores),
        ];
        for (now, before) in sides {
            now.iter_mut().zip(before).for_each(|(now, before)| *now -= before);
        }
        self
    }

    /// Replaces the times of the link and the cores.
    pub fn set_controller(&mut self, link: impl Iterator<Item = u64>, cores: impl Iterator<Item = u64>) {
        refill(&mut self.link, link);
        refill(&mut self.cores, cores);
    }

    /// Returns the time of the part that worked longest.
    pub fn most(&self) -> u64 {
        let Used { chips, dies, channels, link, cores } = self;
        [chips, dies, channels, link, cores].into_iter().flatten().copied().max().unwrap_or(0)
    }
}

impl Array {
    /// Stores in `used` how long each part worked up to a moment. Nothing may have begun since that moment, or still be
    /// due before it.
    pub fn used(&self, now_ns: u64, used: &mut Used) {
        let Array { frame, luns, .. } = self;
        let buses = (0..).zip(&frame.channels);
        refill(&mut used.channels, buses.map(|(at, bus)| bus.busy_ns - self.bus_left_ns(at, now_ns)));
        let by_lun = (0..).zip(luns).map(|(at, lun)| lun.busy_ns - self.left_ns(at, now_ns));
        used.dies.clear();
        if frame.chips.is_empty() {
            return refill(&mut used.chips, by_lun);
        }
        refill(&mut used.chips, frame.chips.iter().map(|chip| chip.up_to(now_ns)));
        let Some(dies_per_chip) = self.interleaved else { return };
        used.dies.resize(frame.chips.len() * dies_per_chip as usize, 0);
        for (place, ns) in self.places.iter().zip(by_lun) {
            used.dies[place.die as usize] = ns;
        }
        for die in self.overlap.iter().flat_map(|overlap| &overlap.dies) {
            used.dies[die.number as usize] = die.busy.up_to(now_ns);
        }
    }

    /// Returns the time that a LUN still needs for what it is doing.
    fn left_ns(&self, lun: u32, now_ns: u64) -> u64 {
        let Lun { phase, channel, head, .. } = self.luns[lun as usize];
        let bus = self.frame.bus(channel);
        let resource = match phase {
            Phase::Idle | Phase::Stalled => return 0,
            Phase::Cell if self.frame.steps[head].step.ends_on_bus => bus,
            Phase::Cell => lun,
            Phase::In | Phase::Out if self.frame.channels[channel as usize].is_used_by(lun) => bus,
            Phase::In | Phase::Out => return 0,
        };
        self.frame.clock.due_ns(resource).map_or(0, |due_ns| due_ns - now_ns)
    }

    /// Returns the time for which a bus is still needed. It is not known when, within its time, a folded step uses the
    /// bus; a report made while requests are under way assumes that it does so at the beginning. Steps that outlast all
    /// requests are not folded.
    fn bus_left_ns(&self, channel: u32, now_ns: u64) -> u64 {
        if !self.frame.channels[channel as usize].is_free() {
            let due_ns = self.frame.clock.due_ns(self.frame.bus(channel));
            return due_ns.map_or(0, |due_ns| due_ns - now_ns);
        }
        let Some(Lun { phase: Phase::Cell, head, .. }) = self.luns.get(channel as usize) else { return 0 };
        let step = &self.frame.steps[*head].step;
        let come_ns = step.cell_ns - self.left_ns(channel, now_ns);
        if step.folded { step.out_ns.saturating_sub(come_ns) } else { 0 }
    }
}

/// Replaces the values of a list.
fn refill(list: &mut Vec<u64>, values: impl Iterator<Item = u64>) {
    list.clear();
    list.extend(values);
}
