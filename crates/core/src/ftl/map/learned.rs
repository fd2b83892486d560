//! All that a device has learned: the segments of each group, and how mappings become segments.
//!
//! Source and interpretation: [`super::leaftl`].

use super::context::Context;
use super::levels::{GROUP_BYTES, Grouping, Levels};
use super::segments::{GROUP, Point, SEGMENT_BYTES, Segment, fit};
use crate::ftl::settings::Settings;
use crate::util::codec::Damage;
use crate::util::{Bits, NONE, Stat};

/// The segments of all groups.
#[derive(Clone, Debug)]
pub struct Learned {
    bound: u32,
    space: Grouping,
    /// Number of slots of the device.
    slots: u32,
    groups: Vec<Levels>,
    /// The groups of which anything has been learned.
    known: Bits,
    /// Number of compactions of a group.
    pub compactions: u64,
    /// Room for the mappings being learned (erase block, LPN, slot), for the points of one block, and for segments that
    /// go down a level.
    mappings: Vec<(u32, u32, u32)>,
    points: Vec<Point>,
    down: Vec<Segment>,
}

impl Learned {
    /// Makes groups of which nothing has been learned.
    pub fn new(settings: &Settings, space: Grouping) -> Learned {
        let slots_per_page = settings.flash.page_bytes / settings.ftl.logical_page_bytes;
        Learned {
            bound: settings.ftl.own.leaftl.gamma,
            space,
            slots: (settings.flash.pages() * u64::from(slots_per_page)) as u32,
            groups: vec![Levels::default(); space.groups as usize],
            known: Bits::new(space.groups as usize),
            compactions: 0,
            mappings: Vec::with_capacity(GROUP as usize),
            points: Vec::with_capacity(GROUP as usize),
            down: Vec::with_capacity(GROUP as usize),
        }
    }

    /// Whether anything has been learned of a group.
    pub fn knows(&self, group: u32) -> bool {
        group < self.space.groups && self.known.get(group)
    }

    /// Returns the number of bytes that a group takes.
    pub fn bytes(&self, group: u32) -> u64 {
        self.groups[group as usize].bytes()
    }

    /// Compacts a group.
    pub fn compact(&mut self, group: u32) {
        self.groups[group as usize].compact();
        self.compactions += 1;
    }

    /// Learns where some LPNs of a group are now. Those of each erase block are fitted by themselves, in the order of
    /// the LPNs.
    pub fn learn(&mut self, group: u32, lpns: impl Iterator<Item = u32>, context: &Context) {
        let addresses = &context.data.addresses;
        let Learned { mappings, points, down, space, .. } = self;
        let levels = &mut self.groups[group as usize];
        self.known.set(group);
        let mapped = lpns.map(|lpn| (lpn, context.newest.of(lpn))).filter(|(_, slot)| *slot != NONE);
        mappings.clear();
        mappings.extend(mapped.map(|(lpn, slot)| (addresses.block(slot), lpn, slot)));
        mappings.sort_unstable();
        for pages in mappings.chunk_by(|(block, ..), (next, ..)| block == next) {
            let highest = pages.iter().map(|(.., slot)| *slot).max().unwrap_or(0);
            let slots = (addresses.first(pages[0].0), highest);
            points.clear();
            points.extend(pages.iter().map(|&(_, lpn, slot)| Point { place: space.place(lpn), slot }));
            let mut rest = &points[..];
            while !rest.is_empty() {
                let (segment, fitted) = fit(rest, self.bound, slots);
                levels.add(segment, down);
                rest = &rest[fitted..];
            }
        }
        if levels.bytes() > GROUP_BYTES + u64::from(GROUP) * SEGMENT_BYTES {
            self.compact(group);
        }
    }

    /// Returns the slot that the newest segment predicts for an LPN, if there is one.
    pub fn predict(&self, lpn: u32) -> Option<u32> {
        let place = self.space.place(lpn);
        Some(self.groups[self.space.group(lpn) as usize].find(place)?.predict(place))
    }

    /// Checks that an LPN in a `slot` is predicted within the bound, if its group is known.
    pub fn verify(&self, lpn: u32, slot: u32) -> Result<(), String> {
        let (group, place) = (self.space.group(lpn), self.space.place(lpn));
        if !self.knows(group) {
            return Ok(());
        }
        let Some(segment) = self.groups[group as usize].find(place) else {
            return Err(format!("no segment maps LPN {lpn}, which is in slot {slot}"));
        };
        let predicted = segment.predict(place);
        let bound = if segment.is_approximate() { self.bound } else { 0 };
        if predicted.abs_diff(slot) > bound {
            return Err(format!(
                "a segment puts LPN {lpn} in slot {predicted}, more than {bound} from {slot}"
            ));
        }
        Ok(())
    }

    /// Returns the figures of all groups that have segments.
    pub fn stats(&self) -> Vec<Stat> {
        let groups = || self.groups.iter().filter(|levels| levels.count() > 0);
        let segments = || groups().flat_map(Levels::segments);
        let approximate = segments().filter(|segment| segment.is_approximate()).count() as u64;
        let accurate = segments().count() as u64 - approximate;
        let levels: u32 = groups().map(Levels::count).sum();
        let most = groups().map(Levels::count).max().unwrap_or(0);
        let mapped: u64 = groups().map(|levels| u64::from(levels.places().count())).sum();
        let listed = segments().map(Segment::listed_bytes).sum();
        let counts = [
            ("compactions", self.compactions, "groups", "compacted"),
            ("accurate", accurate, "segments", "that predict without error"),
            ("approximate", approximate, "segments", "that predict within ftl.gamma"),
            ("map_bytes", groups().map(Levels::bytes).sum(), "bytes", "of all segments, in RAM or not"),
            ("listed_bytes", listed, "bytes", "of these in the conflict resolution buffer"),
            ("mapped", mapped, "mappings", "in the segments"),
            ("levels_max", most.into(), "levels", "of segments in a group at most"),
        ];
        let mean = f64::from(levels) / groups().count() as f64;
        let mean = Stat::new("levels_mean", mean, "levels", "of segments in a group on average");
        let counts = counts.map(|(name, value, unit, doc)| Stat::new(name, value as f64, unit, doc));
        counts.into_iter().chain([mean]).collect()
    }

    /// Returns all that has been learned, by group.
    pub fn all(&self) -> Vec<(u32, &Levels)> {
        let known = self.known.members(0, self.space.groups);
        known.map(|group| (group, &self.groups[group as usize])).collect()
    }

    /// Takes back what [`Learned::all`] returned.
    ///
    /// # Errors
    /// [`Damage`] if a group cannot have such segments.
    pub fn restore(&mut self, all: Vec<(u32, Levels)>) -> Result<(), Damage> {
        for (group, levels) in all {
            if group >= self.space.groups || !levels.is_possible(self.slots) {
                return Damage::impossible(format!("group {group} cannot have the segments that it has"));
            }
            self.known.set(group);
            self.groups[group as usize] = levels;
        }
        Ok(())
    }
}
