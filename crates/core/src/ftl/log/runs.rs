//! Copies of a block, sorted by the front to which they go.

use crate::ftl::placement::MOST_FRONTS;

/// The slots of a block, with their owners.
pub(super) type Copies = Vec<(u32, u32)>;

/// Copies that go to one front, one after another, and how copies become runs.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Copies while they are being sorted: the front, the current slot and the owner of each.
    copies: Vec<(u32, u32, u32)>,
    /// The runs that are left, the last one first: the front of each, and the number of its copies. The number 0
    /// stands for all copies that are left, which go wherever there is a block.
    runs: Vec<(u32, u32)>,
}

impl Runs {
    pub(crate) fn new(slots_per_block: u32) -> Runs {
        let runs = Vec::with_capacity(MOST_FRONTS as usize + 1);
        Runs { copies: Vec::with_capacity(slots_per_block as usize), runs }
    }

    /// Returns the front of the next run and the number of its copies.
    pub(super) fn next(&mut self) -> Option<(u32, u32)> {
        self.runs.pop()
    }

    /// Makes runs of copies that all go to one front, with room for `room` of them.
    pub(super) fn all_to(&mut self, front: u32, copies: u32, room: u32) {
        self.runs.extend((room < copies).then_some((front, 0)));
        self.runs.extend((room > 0).then_some((front, room.min(copies))));
    }

    /// Sorts copies by front. Copies for which their front has no room come last, together, and take one erased block.
    pub(super) fn sort(
        &mut self,
        leaving: &mut Copies,
        fronts: u32,
        mut room: [u32; MOST_FRONTS as usize],
        mut front_of: impl FnMut(u32, u32) -> u32,
    ) {
        let mut over = 0;
        for (live, owner) in leaving.drain(..) {
            let mut front = front_of(live, owner);
            match &mut room[front as usize] {
                0 => over = std::mem::replace(&mut front, MOST_FRONTS),
                left => *left -= 1,
            }
            self.copies.push((front, live, owner));
        }
        for front in (0..fronts).chain([MOST_FRONTS]) {
            let before = leaving.len();
            let here = self.copies.iter().filter(|copy| copy.0 == front);
            leaving.extend(here.map(|&(_, live, owner)| (live, owner)));
            let count = (leaving.len() - before) as u32;
            if count > 0 {
                self.runs.push(if front == MOST_FRONTS { (over, 0) } else { (front, count) });
            }
        }
        self.runs.reverse();
        self.copies.clear();
    }
}
