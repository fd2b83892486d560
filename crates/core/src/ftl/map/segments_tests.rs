use super::*;
use crate::util::{below, stream};
use rand::RngCore;

fn points(of: &[(u32, u32)]) -> Vec<Point> {
    of.iter().map(|&(place, slot)| Point { place, slot }).collect()
}

fn predictions(segment: &Segment, of: &[Point]) -> Vec<u32> {
    of.iter().map(|point| segment.predict(point.place)).collect()
}

/// Fits all the points; returns the segments, each with its number of points.
fn all(points: &[Point], bound: u32, slots: (u32, u32)) -> Vec<(Segment, usize)> {
    let mut rest = points;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, fitted) = fit(rest, bound, slots);
        segments.push((segment, fitted));
        rest = &rest[fitted..];
    }
    segments
}

#[test]
fn every_stride_from_every_place_is_exact() {
    for distance in 1..GROUP {
        for first in 0..distance.min(GROUP - distance) {
            let places = (first..GROUP).step_by(distance as usize);
            let points: Vec<Point> = places.zip(7..).map(|(place, slot)| Point { place, slot }).collect();
            for bound in [0, 4] {
                let (segment, fitted) = fit(&points, bound, (0, 300));
                assert!(!segment.is_approximate() && fitted == points.len(), "{distance} from {first}");
                let slots: Vec<u32> = points.iter().map(|point| point.slot).collect();
                assert_eq!(predictions(&segment, &points), slots, "{distance} from {first}");
            }
        }
    }
}

/// Without an error, a stride ends where the distance changes; what is by itself is a segment too.
#[test]
fn no_error_means_regular_strides() {
    let points = points(&[(0, 100), (1, 101), (3, 102), (5, 103), (6, 90), (7, 92)]);
    let segments = all(&points, 0, (90, 103));
    let found: Vec<_> =
        segments.iter().map(|(segment, fitted)| (segment.first, segment.last, *fitted)).collect();
    assert_eq!(found, [(0, 1, 2), (3, 5, 2), (6, 6, 1), (7, 7, 1)]);
    assert!(segments.iter().all(|(segment, _)| !segment.is_approximate() && segment.listed_bytes() == 0));
}

/// The paper's example of an approximate segment: LPNs 0, 1, 4, 5 in slots 64 to 67. The slopes that are left are those
/// from 3/9 to 5/7.
#[test]
fn a_bound_of_one_fits_the_papers_example() {
    let points = points(&[(0, 64), (1, 65), (4, 66), (5, 67)]);
    assert_eq!(cone(&points, 1), (4, (3 * 7 + 5 * 9, 2 * 9 * 7)));
    let (segment, fitted) = fit(&points, 1, (64, 67));
    assert!(segment.is_approximate() && fitted == 4);
    assert_eq!(predictions(&segment, &points), [64, 65, 66, 67]);
    // Four LPNs in two runs, and the end of the list.
    assert_eq!(segment.listed_bytes(), 5);
}

/// The slope is 4/5, so LPN 3 has risen by 2.4 and is predicted one slot before its own.
#[test]
fn a_prediction_may_be_off_by_the_bound() {
    let points = points(&[(0, 10), (1, 11), (2, 12), (3, 13), (5, 14)]);
    let (segment, fitted) = fit(&points, 1, (10, 14));
    assert_eq!((segment.is_approximate(), fitted), (true, 5));
    assert_eq!(predictions(&segment, &points), [10, 11, 12, 12, 14]);
}

#[test]
fn predictions_keep_the_bound_and_the_slots() {
    let mut random = stream(7, "segments");
    for bound in [0, 1, 4, 16, 31] {
        let mut approximate = 0;
        for _ in 0..2_000 {
            let gaps = 1 + below(random.next_u64(), 12) as u32;
            let mut points = Vec::new();
            let (mut place, mut slot) = (below(random.next_u64(), 20) as u32, 1000);
            while place < GROUP {
                points.push(Point { place, slot });
                place += 1 + below(random.next_u64(), gaps.into()) as u32;
                // Now and then the slots of other groups are between, or an older slot follows.
                slot = match below(random.next_u64(), 16) {
                    0 => slot + 3,
                    1 => slot - 2,
                    _ => slot + 1,
                };
            }
            let slots = points.iter().map(|point| point.slot);
            let slots = (slots.clone().min().unwrap(), slots.max().unwrap());
            let mut rest = &points[..];
            for (segment, fitted) in all(&points, bound, slots) {
                let bound = if segment.is_approximate() { bound } else { 0 };
                approximate += u32::from(segment.is_approximate());
                for point in &rest[..fitted] {
                    let predicted = segment.predict(point.place);
                    assert!(predicted.abs_diff(point.slot) <= bound && segment.places.get(point.place));
                    assert!((slots.0..=slots.1).contains(&predicted));
                }
                assert_eq!(segment.places.count() as usize, fitted);
                assert!(segment.is_possible(slots.1 + 1));
                rest = &rest[fitted..];
            }
        }
        assert_eq!(approximate > 1_000, bound > 0, "{approximate} are approximate");
    }
}

#[test]
fn places_are_a_set() {
    let mut places = Places::default();
    assert_eq!((places.ends(), places.runs()), (None, 0));
    [3, 62, 63, 64, 65, 200, 255].iter().for_each(|&place| places.set(place));
    assert_eq!((places.ends(), places.count(), places.runs()), (Some((3, 255)), 7, 4));
    let mut others = Places::default();
    [3, 64, 255].iter().for_each(|&place| others.set(place));
    let left = places.without(&others);
    assert_eq!((left.ends(), left.count(), left.runs()), (Some((62, 200)), 4, 3));
    assert_eq!(left.with(&others), places);
}

/// An accurate segment loses its ends, and keeps what is out of date inside; an approximate one loses each LPN.
#[test]
fn trimming_takes_what_a_segment_can_express() {
    let (accurate, _) = fit(&points(&[(0, 10), (2, 11), (4, 12), (6, 13), (8, 14)]), 0, (10, 14));
    let (approximate, _) = fit(&points(&[(0, 64), (1, 65), (4, 66), (5, 67)]), 1, (64, 67));
    let set = |of: &[u32]| {
        let mut places = Places::default();
        of.iter().for_each(|&place| places.set(place));
        places
    };
    let mut trimmed = accurate;
    assert!(trimmed.trim(&set(&[0, 1, 4])) && trimmed.places == set(&[2, 4, 6, 8]));
    assert_eq!((trimmed.first, trimmed.last, trimmed.predict(6)), (2, 8, 13));
    assert!(!trimmed.trim(&set(&[2, 4, 6, 8])));
    let mut trimmed = approximate;
    assert!(trimmed.trim(&set(&[0, 4])) && trimmed.places == set(&[1, 5]));
    assert_eq!((trimmed.first, trimmed.last, trimmed.predict(5)), (1, 5, 67));
    assert!(!trimmed.trim(&set(&[1, 5])));
}
