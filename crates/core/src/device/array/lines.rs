//! Where steps wait until a die begins them.
//!
//! Each LUN keeps its waiting steps in lines, in the order of emission. Where reads may overtake, a read that is
//! found to wait for an unfinished step is put aside, and not considered again until that step has finished. So the
//! cost of a choice does not grow with the number of waiting steps.

use super::frame::Frame;
use super::steps::{NO_STEP, Reference};
use crate::flash::parallel::{MultiPlane, Parallel, Suspend};
use crate::flash::{Flash, Operation};
use crate::util::{Chain, Divider, Linked, NONE, Neighbours};

/// Kind of list: the line of a LUN in which a step waits.
pub(super) const LINE: usize = 0;
/// Kind of list: a LUN's reads that are not put aside; used where reads may overtake.
pub(super) const OPEN: usize = 1;
/// Kind of list: a LUN's reads with the same page number in their blocks; used where only such reads go together.
pub(super) const ALIKE: usize = 2;

/// Index of the line with programs and erasures. A LUN has one line for the reads of read requests, one for other
/// reads, and this one. Where reads may not overtake, all steps are in the first line.
pub(super) const CHANGES: usize = 2;

/// The part of a step's state that is not in [`super::steps::Queued`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    /// The step's number: each new step gets the next number.
    pub number: u64,
    /// The step's neighbours in each of its lists: one for each kind.
    pub links: [Neighbours; 3],
    /// Whether the step is a read that was put aside.
    pub aside: bool,
    /// The next read that was put aside until the same step has finished, or [`NONE`].
    pub next: u32,
    /// The first read that was put aside until this step has finished, or [`NONE`].
    pub waiting: u32,
    /// The previous program or erasure of the same block, if reads may overtake.
    pub change: Reference,
    /// Whether the step belongs to a read request.
    pub urgent: bool,
}

/// The extra state of a step that is in no list and waits for nothing.
pub(super) const NO_EXTRA: Extra = Extra {
    number: 0,
    links: [Neighbours::NONE; 3],
    aside: false,
    next: NONE,
    waiting: NONE,
    change: NO_STEP,
    urgent: false,
};

impl<const KIND: usize> Linked<KIND> for Extra {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.links[KIND]
    }
}

/// Inserts a step into a list, which is ordered by number, if the step `waits`; its place is near one of the ends.
/// Otherwise removes the step from the list.
fn set<const KIND: usize>(list: &mut Chain<KIND>, extras: &mut [Extra], slot: u32, waits: bool) {
    if !waits {
        return list.unlink(slot, extras);
    }
    let number = |slot: u32| extras[slot as usize].number;
    let (mut ahead, mut behind) = (list.tail, list.head);
    while ahead != NONE && number(ahead) > number(slot) {
        if number(behind) > number(slot) {
            return list.insert(slot, behind, extras);
        }
        ahead = extras[ahead as usize].links[KIND].before;
        behind = extras[behind as usize].links[KIND].behind;
    }
    let behind = if ahead == NONE { list.head } else { extras[ahead as usize].links[KIND].behind };
    list.insert(slot, behind, extras);
}

/// The steps that wait at a LUN.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// All steps that have not begun, by line.
    pub all: [Chain<LINE>; 3],
    /// The waiting reads that are not put aside, by line.
    pub open: [Chain<OPEN>; 2],
}

impl Lines {
    /// Whether no step waits.
    pub fn are_empty(&self) -> bool {
        self.all.iter().all(|line| line.head == NONE)
    }
}

/// The steps that wait, in their lists.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Whether reads may overtake waiting programs and erasures.
    pub passing: bool,
    /// Whether reads do so whatever the die works on.
    out_of_order: bool,
    /// The state of each step beyond [`super::steps::Queued`], by slot.
    pub extras: Vec<Extra>,
    /// The lines of each LUN.
    pub lines: Vec<Lines>,
    pub pages_per_block: Divider,
    /// Each LUN's reads by page number in their block; used where reads may overtake and only reads of the same page
    /// number go together.
    pub alike: Vec<Chain<ALIKE>>,
    /// The last program or erasure of each block, if reads may overtake.
    changes: Vec<Reference>,
}

impl Waiting {
    /// Makes empty lists.
    pub fn new(flash: &Flash, options: &Parallel, luns: usize) -> Waiting {
        let passing = options.out_of_order || options.suspend != Suspend::Off;
        let blocks = flash.pages() / u64::from(flash.pages_per_block);
        let alike = passing && options.multi_plane == MultiPlane::SameOffset;
        let offsets = if alike { luns * flash.pages_per_block as usize } else { 0 };
        Waiting {
            passing,
            out_of_order: options.out_of_order,
            extras: Vec::with_capacity(1024),
            lines: vec![Lines::default(); luns],
            pages_per_block: Divider::new(flash.pages_per_block),
            alike: vec![Chain::default(); offsets],
            changes: vec![NO_STEP; if passing { blocks as usize } else { 0 }],
        }
    }

    /// Notes a new step with its number, and whether it belongs to a read request.
    pub fn enter(&mut self, frame: &Frame, slot: u32, number: u64, urgent: bool) {
        let extra = Extra { number, urgent, ..NO_EXTRA };
        if slot as usize >= self.extras.len() {
            self.extras.resize(slot as usize + 1, extra);
        }
        self.extras[slot as usize] = extra;
        if self.passing && frame.steps[slot].step.page != NONE {
            self.extras[slot as usize].change = self.change_before(frame, slot);
        }
    }

    /// Returns the number of a step; for [`NONE`], the greatest number there is.
    pub fn number(&self, slot: u32) -> u64 {
        self.extras.get(slot as usize).map_or(u64::MAX, |extra| extra.number)
    }

    /// Returns the program or erasure of a new step's block that the step waits for; if it is one itself, it is the
    /// last one of its block from now on.
    fn change_before(&mut self, frame: &Frame, slot: u32) -> Reference {
        let step = &frame.steps[slot].step;
        let block = self.pages_per_block.div(step.page) as usize;
        let last = self.changes[block];
        match step.operation {
            Operation::Read if self.out_of_order => self.change_read(frame, last, step.page),
            Operation::Read => last,
            _ => std::mem::replace(&mut self.changes[block], frame.steps.reference(slot)),
        }
    }

    /// Returns the step that an out-of-order read waits for: the program of its page or an erasure of its block.
    /// Searches back from `last`, the newest program or erasure of the block; a LUN finishes these in numerical order.
    fn change_read(&self, frame: &Frame, last: Reference, page: u32) -> Reference {
        let mut change = last;
        while frame.steps.unfinished(change) {
            let step = &frame.steps[change.0].step;
            if step.operation == Operation::Erase || step.page == page {
                break;
            }
            change = self.extras[change.0 as usize].change;
        }
        change
    }

    fn line_of(&self, frame: &Frame, slot: u32) -> usize {
        match frame.steps[slot].step.operation {
            _ if !self.passing => 0,
            Operation::Read => usize::from(!self.extras[slot as usize].urgent),
            _ => CHANGES,
        }
    }

    /// Returns where [`Waiting::alike`] lists the reads with this page's number in its block, if such reads are
    /// listed.
    pub fn alike_at(&self, lun: u32, page: u32) -> Option<usize> {
        let offset = self.pages_per_block.rem(page);
        let at = lun as usize * self.pages_per_block.get() as usize + offset as usize;
        (page != NONE && !self.alike.is_empty()).then_some(at)
    }

    /// Adds a step to its lists when it begins to wait, or removes it from them when it no longer waits.
    pub fn list(&mut self, frame: &Frame, slot: u32, waits: bool) {
        let (line, step) = (self.line_of(frame, slot), &frame.steps[slot].step);
        let alike = self.alike_at(step.lun, step.page);
        let Waiting { lines, extras, alike: lists, .. } = self;
        let lines = &mut lines[step.lun as usize];
        set(&mut lines.all[line], extras, slot, waits);
        if self.passing && line != CHANGES {
            set(&mut lines.open[line], extras, slot, waits);
            alike.into_iter().for_each(|at| set(&mut lists[at], extras, slot, waits));
        }
    }

    /// Puts a read aside until a step has finished.
    pub fn put_aside(&mut self, frame: &Frame, slot: u32, awaited: u32) {
        let line = self.line_of(frame, slot);
        let lun = frame.steps[slot].step.lun as usize;
        set(&mut self.lines[lun].open[line], &mut self.extras, slot, false);
        let next = std::mem::replace(&mut self.extras[awaited as usize].waiting, slot);
        (self.extras[slot as usize].aside, self.extras[slot as usize].next) = (true, next);
    }

    /// Puts the reads that waited for this step, which has finished, back on their lists.
    pub fn take_up(&mut self, frame: &Frame, awaited: u32) {
        let mut slot = std::mem::replace(&mut self.extras[awaited as usize].waiting, NONE);
        while slot != NONE {
            let line = self.line_of(frame, slot);
            let lun = frame.steps[slot].step.lun as usize;
            self.extras[slot as usize].aside = false;
            set(&mut self.lines[lun].open[line], &mut self.extras, slot, true);
            slot = self.extras[slot as usize].next;
        }
    }
}
