//! The log-structured levels of a group's segments.
//!
//! Source: Sun et al., ASPLOS 2023 ([`super::segments`]). New segments enter the top level. What they map is taken
//! away from the segments there that they overlap; one that still overlaps goes down a level, into a level of its own
//! if it overlaps another there. So a lookup that goes from the top finds the newest segment first. An LPN is at most
//! once in the conflict resolution buffer: a new approximate segment takes its LPNs away from all others.
//!
//! Interpretation: a compaction takes away from each segment what the segments above it map, and then moves each up as
//! far as none is in its way, as the authors' program does.

use serde::{Deserialize, Serialize};

use super::segments::{GROUP, Places, SEGMENT_BYTES, Segment};
use super::units::UnitSpace;
use crate::util::Divider;

/// Size in bytes of what a group takes without its segments: where they are.
pub const GROUP_BYTES: u64 = 4;

/// The groups of a device's LPNs.
#[derive(Clone, Copy, Debug)]
pub struct Grouping {
    /// Number of groups, of which the last ones may have no LPNs.
    pub groups: u32,
    per_unit: Divider,
    groups_per_unit: u32,
    lpns: u32,
}

impl Grouping {
    /// Divides each translation unit into groups, the last of which may be smaller.
    pub fn new(space: &UnitSpace, lpns: u32) -> Grouping {
        let groups_per_unit = space.entries.div_ceil(GROUP);
        let per_unit = Divider::new(space.entries);
        Grouping { groups: space.units * groups_per_unit, per_unit, groups_per_unit, lpns }
    }

    /// Returns the group of an LPN.
    #[inline]
    pub fn group(&self, lpn: u32) -> u32 {
        self.per_unit.div(lpn) * self.groups_per_unit + self.per_unit.rem(lpn) / GROUP
    }

    /// Returns the place of an LPN in its group.
    #[inline]
    pub fn place(&self, lpn: u32) -> u32 {
        self.per_unit.rem(lpn) % GROUP
    }

    /// Returns the translation unit of a group.
    pub fn unit(&self, group: u32) -> u32 {
        group / self.groups_per_unit
    }

    /// Returns the first LPN of a group, and one past the last.
    pub fn range(&self, group: u32) -> (u32, u32) {
        let first = self.unit(group) * self.per_unit.get();
        let at = group % self.groups_per_unit * GROUP;
        let end = first + (at + GROUP).min(self.per_unit.get());
        ((first + at).min(self.lpns), end.min(self.lpns))
    }
}

/// The segments of a group, by level and in each level by their first LPN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    held: Vec<(u32, Segment)>,
}

impl Levels {
    /// Returns the newest segment that maps a place.
    #[inline]
    pub fn find(&self, place: u32) -> Option<&Segment> {
        self.held.iter().map(|(_, segment)| segment).find(|segment| segment.places.get(place))
    }

    /// Adds a new segment; `down` is room for those that go down.
    pub fn add(&mut self, new: Segment, down: &mut Vec<Segment>) {
        if new.is_approximate() {
            self.held.retain_mut(|(_, old)| !old.is_approximate() || old.trim(&new.places));
        }
        self.held.retain_mut(|(level, old)| {
            if *level > 0 || !old.overlaps(&new) {
                return true;
            }
            if !old.trim(&new.places) {
                return false;
            }
            let stays = !old.overlaps(&new);
            if !stays {
                down.push(*old);
            }
            stays
        });
        self.put(0, new);
        self.close_gaps();
        for old in down.drain(..) {
            if self.held.iter().any(|(level, other)| *level == 1 && other.overlaps(&old)) {
                self.held.iter_mut().filter(|(level, _)| *level > 0).for_each(|(level, _)| *level += 1);
            }
            self.put(1, old);
        }
    }

    fn put(&mut self, level: u32, segment: Segment) {
        if self.held.len() == self.held.capacity() {
            // Room for few segments, then for as many as a group ever has between two batches.
            self.held.reserve_exact(if self.held.is_empty() { 32 } else { GROUP as usize });
        }
        let before = |(at, held): &(u32, Segment)| (*at, held.first) < (level, segment.first);
        self.held.insert(self.held.partition_point(before), (level, segment));
    }

    /// Numbers the levels anew, without those that have become empty.
    fn close_gaps(&mut self) {
        let (mut before, mut number) = (0, 0);
        for (level, _) in &mut self.held {
            number += u32::from(*level != before);
            before = std::mem::replace(level, number);
        }
    }

    /// Drops what newer segments map, and uses as few levels as the order of the segments allows.
    pub fn compact(&mut self) {
        let mut newer = Places::default();
        self.held.retain_mut(|(_, segment)| {
            let stays = segment.trim(&newer);
            newer = newer.with(&segment.places);
            stays
        });
        for at in 0..self.held.len() {
            let (above, rest) = self.held.split_at_mut(at);
            let (level, segment) = &mut rest[0];
            let below = above.iter().filter(|(_, other)| other.overlaps(segment)).map(|(other, _)| other + 1);
            *level = below.max().unwrap_or(0);
        }
        self.held.sort_unstable_by_key(|(level, segment)| (*level, segment.first));
    }

    /// Returns the segments.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.held.iter().map(|(_, segment)| segment)
    }

    /// Returns the number of levels that have segments.
    pub fn count(&self) -> u32 {
        self.held.chunk_by(|(level, _), (next, _)| level == next).count() as u32
    }

    /// Returns the number of bytes that the group takes.
    pub fn bytes(&self) -> u64 {
        GROUP_BYTES + self.segments().map(|segment| SEGMENT_BYTES + segment.listed_bytes()).sum::<u64>()
    }

    /// Returns the places that the segments map.
    pub fn places(&self) -> Places {
        self.segments().fold(Places::default(), |all, segment| all.with(&segment.places))
    }

    /// Whether the levels are possible: those of slots below `slots`, in order, none overlapping another in its level.
    pub fn is_possible(&self, slots: u32) -> bool {
        let apart = |pair: &[(u32, Segment)]| {
            let [(level, segment), (next, other)] = pair else { return true };
            level < next || (level == next && segment.last < other.first)
        };
        self.held.windows(2).all(apart) && self.segments().all(|segment| segment.is_possible(slots))
    }
}

#[cfg(test)]
#[path = "levels_tests.rs"]
mod tests;
