//! Learned index segments: lines that map the LPNs of a group to slots, and how they are fitted.
//!
//! Source: Sun, Li, Sun, Sun, Vucinic, Huang, "LeaFTL: A Learning-Based Flash Translation Layer for Solid-State
//! Drives", ASPLOS 2023; the greedy piecewise linear regression is that of Xie et al., "Maximum Error-Bounded Piecewise
//! Linear Representation for Online Stream Approximation", VLDB Journal 2014, as the authors' program has it.
//!
//! A segment is (S, L, K, I): first LPN in its group, distance to the last, slope as a 16-bit float whose lowest bit
//! says that the segment is approximate, intercept. It takes [`SEGMENT_BYTES`]. An accurate segment maps every LPN of
//! S, S + d, ..., S + L with d = 1 / K exactly. An approximate one maps the LPNs that the conflict resolution buffer
//! lists, each with an error of at most the bound (gamma).
//!
//! Interpretation:
//! - Predictions are rounded to the nearest slot, and the intercept is whole: with the slope of 11 bits this keeps the
//!   bound, which is checked for each LPN as a segment is made. Where it does not hold, the segment is made shorter.
//! - A prediction never names a slot outside the programmed part of the erase block that the segment was learned from:
//!   its spare area can be read for as long as the LPN is in that block.
//! - With a bound of 0 all segments are accurate.
//! - The buffer takes one byte for each LPN of a segment, or two for each run of successive LPNs, whichever is less,
//!   and one to end the segment. (The paper lists LPNs; the authors' program counts the ends of runs.)

use serde::{Deserialize, Serialize};

/// Number of LPNs in a group: what the byte of S can tell apart.
pub const GROUP: u32 = 256;
/// Size of a segment in bytes, without what the conflict resolution buffer has on it.
pub const SEGMENT_BYTES: u64 = 8;
/// The bit of a slope that says that the segment is approximate.
const APPROXIMATE: u16 = 1;

/// A set of places in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places([u64; 4]);

impl Places {
    /// Adds a place.
    #[inline]
    pub fn set(&mut self, place: u32) {
        self.0[place as usize / 64] |= 1 << (place % 64);
    }

    /// Whether a place is in the set.
    #[inline]
    pub fn get(&self, place: u32) -> bool {
        self.0[place as usize / 64] >> (place % 64) & 1 != 0
    }

    /// Returns the places that are not in `other`.
    pub fn without(&self, other: &Places) -> Places {
        Places(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// Returns the places that are in this set or in `other`.
    pub fn with(&self, other: &Places) -> Places {
        Places(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// Returns the first and the last place; `None` if there is none.
    pub fn ends(&self) -> Option<(u32, u32)> {
        let first = (0..4).find(|&at| self.0[at] != 0)?;
        let last = (0..4).rfind(|&at| self.0[at] != 0)?;
        let bit = |at: usize| (at as u32) * 64;
        Some((bit(first) + self.0[first].trailing_zeros(), bit(last) + 63 - self.0[last].leading_zeros()))
    }

    /// Returns the number of places.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the number of runs of successive places.
    pub fn runs(&self) -> u32 {
        let carry = |at: usize| if at == 0 { 0 } else { self.0[at - 1] >> 63 };
        (0..4).map(|at| (self.0[at] & !(self.0[at] << 1 | carry(at))).count_ones()).sum()
    }
}

/// An LPN, by its place in the group, and its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Place of the LPN in its group.
    pub place: u32,
    /// The slot.
    pub slot: u32,
}

/// A learned index segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The LPNs that it maps: in an accurate segment those that S, L and K say, some of which may be out of date.
    pub places: Places,
    /// S: the first place.
    pub first: u32,
    /// The last place, S + L.
    pub last: u32,
    intercept: u32,
    slope: u16,
}

impl Segment {
    /// Whether the segment is approximate.
    pub fn is_approximate(&self) -> bool {
        self.slope & APPROXIMATE != 0
    }

    /// Returns the slot that the segment predicts for a place.
    #[inline]
    pub fn predict(&self, place: u32) -> u32 {
        self.intercept.wrapping_add(rise(self.slope, place))
    }

    /// Returns the number of bytes that the conflict resolution buffer has on the segment.
    pub fn listed_bytes(&self) -> u64 {
        if self.is_approximate() { u64::from(self.places.count().min(2 * self.places.runs())) + 1 } else { 0 }
    }

    /// Whether the ranges of two segments overlap.
    pub fn overlaps(&self, other: &Segment) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Takes away places that newer segments map, as far as the segment can tell: an accurate one can only become
    /// shorter. Returns false if nothing is left.
    pub fn trim(&mut self, newer: &Places) -> bool {
        let left = self.places.without(newer);
        let Some((first, last)) = left.ends() else { return false };
        (self.first, self.last) = (first, last);
        self.places = if self.is_approximate() { left } else { self.places.without(&outside(first, last)) };
        true
    }

    /// Whether the segment can have been learned for slots below `slots`.
    pub fn is_possible(&self, slots: u32) -> bool {
        let members = (self.first..=self.last.min(GROUP - 1)).filter(|&place| self.places.get(place));
        self.places.ends() == Some((self.first, self.last))
            && self.slope <= encode(1, 1) | APPROXIMATE
            && members.map(|place| self.predict(place)).all(|slot| slot < slots)
    }

    /// Makes the segment of these points with a slope; `None` if it breaks the bound or leaves the `slots`.
    fn over(points: &[Point], slope: u16, bound: i64, slots: (u32, u32)) -> Option<Segment> {
        let (first, last) = (points.first()?, points.last()?);
        let rest = |point: &Point| i64::from(point.slot) - i64::from(rise(slope, point.place));
        let (least, most) = points
            .iter()
            .map(rest)
            .fold((i64::MAX, i64::MIN), |(least, most), rest| (least.min(rest), most.max(rest)));
        let lowest = i64::from(slots.0) - i64::from(rise(slope, first.place));
        let highest = i64::from(slots.1) - i64::from(rise(slope, last.place));
        let intercept = (least + most).div_euclid(2).max(lowest).min(highest);
        if intercept < lowest || intercept - least > bound || most - intercept > bound {
            return None;
        }
        let mut places = Places::default();
        points.iter().for_each(|point| places.set(point.place));
        Some(Segment { places, first: first.place, last: last.place, intercept: intercept as u32, slope })
    }
}

/// Returns the places outside `first..=last`.
fn outside(first: u32, last: u32) -> Places {
    let mut places = Places::default();
    (0..first).chain(last + 1..GROUP).for_each(|place| places.set(place));
    places
}

/// A fraction whose denominator is positive.
type Fraction = (i64, i64);

fn less(a: Fraction, b: Fraction) -> bool {
    a.0 * b.1 < b.0 * a.1
}

/// Returns the 16-bit float nearest to a fraction from 0 to 1 among those whose lowest bit is 0. What is too small for
/// a normal number rounds to 0: over a group it would rise by less than 1/64.
fn encode(num: i64, den: i64) -> u16 {
    let exponent = (10..25).find(|&exponent| (num << exponent) >= den << 10);
    let Some(exponent) = exponent.filter(|_| num > 0) else { return 0 };
    let mantissa = 2 * (((num << exponent) + den) / (2 * den));
    // A mantissa that rounds up to 2048 carries into the exponent, as the bits do.
    (((25 - exponent) << 10) + (mantissa - 1024)) as u16
}

/// Returns how far a line with this slope has risen at a place, to the nearest whole number.
#[inline]
fn rise(slope: u16, place: u32) -> u32 {
    let bits = u32::from(slope & !APPROXIMATE);
    if bits == 0 {
        return 0;
    }
    let shift = 25 - (bits >> 10);
    (place * (1024 + (bits & 1023)) + (1 << (shift - 1))) >> shift
}

/// Returns how many points at the front follow each other at one distance in successive slots, and that distance.
fn regular(points: &[Point]) -> (usize, u32) {
    let Some([a, b]) = points.first_chunk() else { return (points.len(), 1) };
    let distance = b.place - a.place;
    let fits = |pair: &&[Point]| {
        pair[1].place - pair[0].place == distance && pair[1].slot == pair[0].slot.wrapping_add(1)
    };
    match points.windows(2).take_while(fits).count() {
        0 => (1, 1),
        steps => (steps + 1, distance),
    }
}

/// Returns how many points at the front one line fits within `bound`, and the slope in the middle of those that do. The
/// lines go through the middle of the first two points; each point must be between the steepest and the flattest line
/// that all points before it allow.
fn cone(points: &[Point], bound: i64) -> (usize, Fraction) {
    let Some([a, b]) = points.first_chunk() else { return (1, (0, 1)) };
    let at = |point: &Point| (i64::from(point.place), i64::from(point.slot));
    let middle = (at(a).0 + at(b).0, at(a).1 + at(b).1);
    let first = (at(b).0 - at(a).0, at(b).1 - at(a).1);
    let (mut low, mut high) = narrow(((0, 1), (1, 1)), first, 2 * bound);
    if less(high, low) {
        return (1, (0, 1));
    }
    let mut count = 2;
    for point in &points[2..] {
        // Twice the distances from the middle, so that they are whole.
        let (x, y) = (2 * at(point).0 - middle.0, 2 * at(point).1 - middle.1);
        if less((y, x), low) || less(high, (y, x)) {
            break;
        }
        (low, high) = narrow((low, high), (x, y), 2 * bound);
        count += 1;
    }
    (count, (low.0 * high.1 + high.0 * low.1, 2 * low.1 * high.1))
}

/// Returns the flattest and the steepest of some lines that pass a point at a distance of at most `give`.
fn narrow((low, high): (Fraction, Fraction), (x, y): (i64, i64), give: i64) -> (Fraction, Fraction) {
    let (flat, steep) = ((y - give, x), (y + give, x));
    (if less(low, flat) { flat } else { low }, if less(steep, high) { steep } else { high })
}

/// Fits a segment to as many of the `points` as one can map, from the first on; returns it with their number. The
/// points are in ascending order of their places and in one erase block; `slots` are the lowest and the highest slot
/// that a prediction may name.
pub fn fit(points: &[Point], bound: u32, slots: (u32, u32)) -> (Segment, usize) {
    let (even, distance) = regular(points);
    let mut most = if bound == 0 { even } else { cone(points, bound.into()).0 };
    while most > even {
        let (count, (num, den)) = cone(&points[..most], bound.into());
        let slope = encode(num, den) | APPROXIMATE;
        if let Some(segment) = Segment::over(&points[..count], slope, bound.into(), slots) {
            return (segment, count);
        }
        most -= 1;
    }
    let slope = if even == 1 { 0 } else { encode(1, distance.into()) };
    let segment = Segment::over(&points[..even], slope, 0, slots);
    (segment.expect("successive slots are on a line"), even)
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
