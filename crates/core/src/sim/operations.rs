//! The programs and erases that ran up to a power cut, and the cut itself: operations that had finished are applied to
//! the media, those in service are torn (or, one time in four, just finished), and the others never happened.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::{Span, Stage};
use crate::flash::Operation;
use crate::flash::media::{Change, Media};
use crate::util::{NONE, below};

/// A program or an erase that ran.
#[derive(Clone, Copy, Debug)]
struct Ran {
    erase: bool,
    begin_ns: u64,
    end_ns: u64,
}

/// The programs and erases of a stretch without power cuts, by number, and the order in which they finished.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    ran: Vec<Option<Ran>>,
    finished: Vec<u32>,
}

/// The outcome of a cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Time of the cut, ns: what happened before it remains.
    pub time_ns: u64,
    /// Number of programs and erases that had finished.
    pub finished: u64,
    /// Number of programs that were torn.
    pub torn_programs: u64,
    /// Number of erases that were torn.
    pub torn_erases: u64,
}

impl Operations {
    /// Adds a stretch of work on an operation, which is the last one unless the operation was `suspended`.
    pub fn add(&mut self, number: u32, erase: bool, [begin_ns, end_ns]: [u64; 2], suspended: bool) {
        let at = number as usize;
        if at >= self.ran.len() {
            self.ran.resize(at + 1, None);
        }
        let begin_ns = self.ran[at].map_or(begin_ns, |before| before.begin_ns);
        self.ran[at] = Some(Ran { erase, begin_ns, end_ns });
        if !suspended {
            self.finished.push(number);
        }
    }

    /// Adds the work of a LUN, if it was a stretch of a program or an erase.
    pub fn add_span(&mut self, span: &Span) {
        if span.stage == Stage::Cells && span.label.number != NONE {
            let erase = span.label.operation == Operation::Erase;
            self.add(span.label.number, erase, [span.begin_ns, span.end_ns], span.suspended);
        }
    }

    /// Returns the number of operations that ran.
    pub fn count(&self) -> u64 {
        self.finished.len() as u64
    }

    /// Returns how many operations have finished by `time_ns`.
    pub fn finished_by(&self, time_ns: u64) -> usize {
        self.finished
            .partition_point(|&number| self.ran[number as usize].is_some_and(|ran| ran.end_ns <= time_ns))
    }

    /// Returns a cut at which `target` operations have finished (or all, if there are fewer): the number of finished
    /// operations, and a moment before the next one finishes, ns.
    pub fn after(&self, target: u64, random: &mut Xoshiro256PlusPlus) -> (usize, u64) {
        let finished = target.min(self.finished.len() as u64) as usize;
        let end_ns = |at: usize| self.at(self.finished[at]).end_ns;
        let last_ns = if finished == 0 { 0 } else { end_ns(finished - 1) };
        let time_ns = match self.finished.len() > finished {
            false => u64::MAX,
            true if end_ns(finished) > last_ns => {
                last_ns + 1 + below(random.next_u64(), end_ns(finished) - last_ns)
            }
            true => last_ns,
        };
        (finished, time_ns)
    }

    /// Cuts the power at a moment when this many operations have finished; leaves on the media what had been done by
    /// then.
    ///
    /// # Errors
    /// A message, if the tape and the array disagree.
    pub fn cut(
        &self,
        changes: Vec<Change>,
        (finished, time_ns): (usize, u64),
        random: &mut Xoshiro256PlusPlus,
        media: &mut Media,
    ) -> Result<Cut, String> {
        self.compare(&changes)?;
        let mut changes: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
        for &number in &self.finished[..finished] {
            media.apply(changes[number as usize].take().expect("each finishes once"));
        }
        let mut cut = Cut { time_ns, finished: finished as u64, torn_programs: 0, torn_erases: 0 };
        for &number in &self.finished[finished..] {
            let Ran { erase, begin_ns, .. } = *self.at(number);
            if begin_ns >= time_ns {
                continue;
            }
            let change = changes[number as usize].take().expect("each finishes once");
            if below(random.next_u64(), 4) == 0 {
                media.apply(change);
            } else {
                media.tear(change);
                cut.torn_erases += u64::from(erase);
                cut.torn_programs += u64::from(!erase);
            }
        }
        Ok(cut)
    }

    fn at(&self, number: u32) -> &Ran {
        self.ran[number as usize].as_ref().expect("compared")
    }

    /// Checks that the changes on the tape are the operations that ran, in the order in which they were decided.
    fn compare(&self, changes: &[Change]) -> Result<(), String> {
        if changes.len() != self.finished.len() || self.ran.iter().any(Option::is_none) {
            return Err(format!(
                "the FTL decided {} programs and erases, {} ran",
                changes.len(),
                self.finished.len()
            ));
        }
        let differs = |(change, ran): (&Change, &Option<Ran>)| {
            matches!(change, Change::Erase { .. }) != ran.is_some_and(|ran| ran.erase)
        };
        match changes.iter().zip(&self.ran).position(differs) {
            Some(at) => Err(format!("operation {at} ran as another than the FTL decided: {:?}", changes[at])),
            None => Ok(()),
        }
    }
}
