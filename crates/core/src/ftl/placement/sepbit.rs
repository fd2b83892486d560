//! SepBIT: data that will be overwritten at about the same time shares an open block; that time is inferred from how
//! long earlier versions lasted.
//!
//! Source: Wang, Li, Lee, Ouyang, Shi and Huang, "Separating Data via Block Invalidation Time Inference for Write
//! Amplification Reduction in Log-Structured Storage", FAST 2022, section 3, Algorithm 1. There are six classes. A
//! write replaces a version that lasted for a lifespan v: if v < l it goes to class 1, else to class 2. A page that is
//! collected from class 1 goes to class 3. A page that is collected from another class goes by its age g, the time
//! since the host wrote it: to class 4 if g < 4l, to class 5 if g < 16l, else to class 6. All times are counted in
//! pages that the host writes. l is the mean lifespan, from its first page to its collection, of 16 segments of class
//! 1; it is computed anew whenever 16 of them have been collected, and is infinite before.
//!
//! Interpretation: a segment of the paper is an erase block, and there is an open block of each class on each LUN; l is
//! kept for the whole device, and times count the writes to all LUNs. The first version of a page, and the first after
//! a trim, replaces nothing, so v is infinite and the page goes to class 2. The authors' prototype keeps a queue of
//! recent writes, about l long, and takes v for infinite where the page is not in it; here the time of every page's
//! last write is known.

use super::{Needs, Own, Page, Placement, Space, Writable};
use crate::util::Stat;

pub(super) const NAME: &str = "sepbit";
pub(super) const DOC: &str =
    "writes by how long the version they replace lasted, copies by their age (Wang et al., FAST 2022)";
pub type Keys = ();

/// Number of collected blocks of class 1 over whose lifespans l is the mean.
const SAMPLES: u64 = 16;

/// The fronts are the paper's classes, from class 1 on.
#[derive(Clone, Debug)]
pub(super) struct SepBit {
    /// Sum of the lifespans of the blocks of which l is the mean; `None`: l is infinite.
    sum: Option<u64>,
    /// Number and sum of the lifespans of the blocks of class 1 that were collected since.
    collected: (u64, u64),
}

impl SepBit {
    /// Whether a time is shorter than `times` times l; infinite times are not.
    fn is_within(&self, time: u64, times: u64) -> bool {
        let finite = time != u64::MAX;
        finite
            && self.sum.is_none_or(|sum| {
                u128::from(time) * u128::from(SAMPLES) < u128::from(sum) * u128::from(times)
            })
    }
}

impl Placement for SepBit {
    const NEEDS: Needs = Needs { ages: true, ..Needs::NOTHING };

    fn new(_keys: &Own, _space: Space) -> SepBit {
        SepBit { sum: None, collected: (0, 0) }
    }

    fn fronts(&self) -> u32 {
        6
    }

    fn front_name(&self, front: u32) -> String {
        format!("class {}", front + 1)
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        let class = match page.is_copy() {
            false if self.is_within(page.age, 1) => 1,
            false => 2,
            true if page.from == Some(0) => 3,
            true if self.is_within(page.age, 4) => 4,
            true if self.is_within(page.age, 16) => 5,
            true => 6,
        };
        class - 1
    }

    fn collected(&mut self, front: u32, age: u64) {
        if front == 0 {
            self.collected = (self.collected.0 + 1, self.collected.1.saturating_add(age));
            if self.collected.0 == SAMPLES {
                self.sum = Some(self.collected.1);
                self.collected = (0, 0);
            }
        }
    }

    fn save(&self) -> Vec<u64> {
        vec![self.sum.unwrap_or(u64::MAX), self.collected.0, self.collected.1]
    }

    fn load(&mut self, saved: &[u64]) -> bool {
        let &[sum, collected, lifespans] = saved else { return false };
        self.sum = (sum != u64::MAX).then_some(sum);
        self.collected = (collected, lifespans);
        collected < SAMPLES
    }

    fn stats(&self) -> Vec<Stat> {
        let lifespan = self.sum.map_or(f64::NAN, |sum| sum as f64 / SAMPLES as f64);
        let threshold = |name, times: f64, doc| Stat::new(name, lifespan * times, "pages", doc);
        vec![
            threshold(
                "lifespan",
                1.0,
                "l: lifespan, in pages written, below which a version's successor is of class 1",
            ),
            threshold("age_4", 4.0, "4l: age, in pages written, below which a collected page is of class 4"),
            threshold(
                "age_16",
                16.0,
                "16l: age, in pages written, below which a collected page is of class 5",
            ),
        ]
    }
}
