use super::super::segments::{Point, fit};
use super::*;

/// Returns the segment of successive LPNs, in slots from `slot` on.
fn run(first: u32, last: u32, slot: u32) -> Segment {
    let points: Vec<Point> = (first..=last).zip(slot..).map(|(place, slot)| Point { place, slot }).collect();
    let (segment, fitted) = fit(&points, 0, (0, 10_000));
    assert_eq!(fitted, points.len());
    segment
}

fn levels(segments: &[Segment]) -> Levels {
    let mut levels = Levels::default();
    segments.iter().for_each(|&segment| levels.add(segment, &mut Vec::new()));
    assert!(levels.is_possible(10_000));
    levels
}

/// Returns level, first and last place of each segment.
fn ranges(levels: &Levels) -> Vec<(u32, u32, u32)> {
    levels.held.iter().map(|(level, segment)| (*level, segment.first, segment.last)).collect()
}

fn slots(levels: &Levels, places: &[u32]) -> Vec<Option<u32>> {
    places.iter().map(|&place| levels.find(place).map(|segment| segment.predict(place))).collect()
}

#[test]
fn an_older_segment_makes_way() {
    let within = levels(&[run(3, 5, 100), run(0, 9, 200)]);
    assert_eq!(ranges(&within), [(0, 0, 9)]);
    let behind = levels(&[run(0, 9, 100), run(5, 15, 200)]);
    assert_eq!(ranges(&behind), [(0, 0, 4), (0, 5, 15)]);
    assert_eq!(slots(&behind, &[4, 5, 16]), [Some(104), Some(200), None]);
}

/// What a new segment cuts in two goes down, below another that it overlaps if need be.
#[test]
fn a_segment_that_still_overlaps_goes_down() {
    let mut three = levels(&[run(0, 9, 100), run(3, 6, 200), run(20, 22, 300), run(4, 4, 400)]);
    assert_eq!(ranges(&three), [(0, 4, 4), (0, 20, 22), (1, 3, 6), (2, 0, 9)]);
    assert_eq!(slots(&three, &[2, 3, 4, 5, 9, 21]), [102, 200, 400, 202, 109, 301].map(Some));
    assert_eq!((three.count(), three.bytes()), (3, 4 + 4 * 8));
    // The new segment is alone in its range, but what is below the top level stays until a compaction.
    three.add(run(0, 9, 500), &mut Vec::new());
    assert_eq!(ranges(&three), [(0, 0, 9), (0, 20, 22), (1, 3, 6), (2, 0, 9)]);
    three.compact();
    assert_eq!(ranges(&three), [(0, 0, 9), (0, 20, 22)]);
}

/// A compaction shortens a segment by all that is above it, and moves it up where nothing is in its way.
#[test]
fn a_compaction_uses_the_upper_levels() {
    let mut three = levels(&[run(0, 9, 100), run(3, 6, 200), run(4, 4, 300), run(0, 2, 400), run(8, 9, 500)]);
    assert_eq!(ranges(&three), [(0, 0, 2), (0, 4, 4), (0, 8, 9), (1, 3, 6), (2, 0, 9)]);
    three.compact();
    assert_eq!(ranges(&three), [(0, 0, 2), (0, 4, 4), (0, 7, 7), (0, 8, 9), (1, 3, 6)]);
    assert_eq!(slots(&three, &[0, 3, 4, 7, 8]), [400, 200, 300, 107, 500].map(Some));
}

/// An LPN is in the conflict resolution buffer once, whatever the levels.
#[test]
fn a_new_approximate_segment_takes_its_lpns() {
    let learned = |of: &[(u32, u32)]| {
        let points: Vec<Point> = of.iter().map(|&(place, slot)| Point { place, slot }).collect();
        let (segment, fitted) = fit(&points, 1, (0, 10_000));
        assert!(segment.is_approximate() && fitted == points.len());
        segment
    };
    let old = learned(&[(0, 64), (1, 65), (4, 66), (5, 67)]);
    let new = learned(&[(4, 80), (5, 81), (8, 82), (9, 83)]);
    let both = levels(&[old, run(0, 0, 70), new]);
    // LPN 0 makes the old segment start at 1; LPNs 4 and 5 leave it.
    assert_eq!(ranges(&both), [(0, 0, 0), (0, 1, 1), (0, 4, 9)]);
    assert_eq!(slots(&both, &[0, 1, 4, 8]), [70, 65, 80, 82].map(Some));
    assert_eq!(both.bytes(), 4 + 3 * 8 + (1 + 1) + (4 + 1));
    assert_eq!(both.places().count(), 6);
}
