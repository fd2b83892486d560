//! A device whose flash is in a file: programs and erases are written there as they finish, and its power can
//! be cut.
//!
//! The FTL decides on a change of the flash when a request is issued, and the device performs the change later; only
//! finished changes are in the file, and the reply to a request is sent after that. So whatever ends the process, the
//! file holds the flash of a device that lost its power at that moment; a cut also tears the operations in service.

use std::collections::VecDeque;
use std::io;

use ftlab_core::flash::Operation;
use ftlab_core::flash::media::Change;
use ftlab_core::ftl::Locate;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Activity, Cut, Identity, Prepared, RunError};
use ftlab_core::util::{below, stream};
use ftlab_core::workload::Record;
use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Engine, Live};
use crate::media::{Nand, Opened, Says, Stored, Stuff, is_data};
use crate::payload::Payload;
use crate::unflushed::Unflushed;

/// A period in which cells were busy with a program or an erase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    number: u32,
    begin_ns: u64,
    end_ns: u64,
    suspended: bool,
}

impl Ran {
    /// Returns the period if the activity is a program or an erase in the cells, else `None`.
    pub fn of(activity: &Activity) -> Option<Ran> {
        let cells =
            activity.stage == ftlab_core::device::Stage::Cells && activity.operation != Operation::Read;
        let number = activity.number.filter(|_| cells)?;
        let &Activity { begin_ns, end_ns, suspended, .. } = activity;
        Some(Ran { number, begin_ns, end_ns, suspended })
    }
}

/// A program or an erase that has been decided on and is not yet in the file.
struct Pending {
    change: Change,
    stuff: Vec<Stuff>,
    begin_ns: Option<u64>,
    ended: bool,
}

/// What is reported about the file that holds the flash.
#[derive(Clone, Debug)]
pub struct MediaStatus {
    /// The state in which the file was found.
    pub opened: Opened,
    /// Number of programs and erases finished since the file was opened.
    pub operations: u64,
    /// Number of writes, trims and flushes that clients have asked for since the file was opened.
    pub requests: u64,
    /// The outcome of the cut, once power has been cut.
    pub cut: Option<Cut>,
    /// Why the file can no longer be written, if it cannot.
    pub error: Option<String>,
}

/// The power supply, and the operations on their way to the flash.
pub(super) struct Supply {
    pub(super) nand: Nand,
    tape: ftlab_core::flash::media::Tape,
    says: Says,
    identity: Identity,
    settings: Settings,
    /// Number of the first operation in the queue.
    first: u32,
    queue: VecDeque<Option<Pending>>,
    /// Operations that have ended and are not yet in the file: the number of each, and the time at which it ended.
    ended: VecDeque<(u32, u64)>,
    pub(super) status: MediaStatus,
    /// If a cut is planned: the number of the operation in which the power will be cut, and the seed.
    planned: Option<(u64, u64)>,
    /// The same for a cut at a request of a client.
    pub(super) planned_request: Option<(u64, u64)>,
    /// What a cut may lose, if a seed draws that.
    pub(super) unflushed: Option<Unflushed>,
    /// Seed of the cut.
    pub(super) seed: u64,
    /// The result of the run, up to the cut; `None` before a cut.
    last: Option<Box<Report>>,
}

impl Supply {
    /// Makes the power supply and the payload of a device whose flash is in a file.
    pub fn new(settings: &Settings, stored: Stored) -> (Supply, Payload) {
        let Stored { nand, tape, says, mut payload, identity, opened } = stored;
        payload.keep_programmed();
        let status = MediaStatus { opened, operations: 0, requests: 0, cut: None, error: None };
        let supply = Supply {
            nand,
            tape,
            says,
            identity,
            settings: settings.clone(),
            first: 0,
            queue: VecDeque::new(),
            ended: VecDeque::new(),
            status,
            planned: None,
            planned_request: None,
            unflushed: Unflushed::of(settings),
            seed: 0,
            last: None,
        };
        (supply, payload)
    }

    /// Wears every block by this many erasures.
    ///
    /// # Errors
    /// A message, if the file cannot be written.
    pub fn wear(&mut self, cycles: u32) -> Result<(), String> {
        self.nand.wear(cycles).map_err(|error| {
            self.fail(&error);
            self.status.error.clone().unwrap_or_default()
        })
    }

    /// Whether power is off.
    pub fn is_off(&self) -> bool {
        self.status.cut.is_some()
    }

    /// Whether the file can no longer be written.
    pub fn is_full(&self) -> bool {
        self.status.error.is_some()
    }

    /// Takes in the operations that the FTL has decided on and the periods in which operations have run; returns the
    /// time and the seed of the planned cut, if its operation is among those that ran. Replies have been sent up to
    /// `since_ns`.
    fn take(&mut self, ran: &mut Vec<Ran>, payload: &mut Payload, since_ns: u64) -> Option<(u64, u64)> {
        for change in self.tape.take_changes() {
            let stuff = self.stuff(&change, payload);
            self.queue.push_back(Some(Pending { change, stuff, begin_ns: None, ended: false }));
        }
        self.tape.take_events();
        let mut due = None;
        for Ran { number, begin_ns, end_ns, suspended } in ran.drain(..) {
            let pending = self.queue[number.wrapping_sub(self.first) as usize].as_mut();
            let pending = pending.expect("an operation ends once");
            let begin_ns = *pending.begin_ns.get_or_insert(begin_ns);
            if suspended {
                continue;
            }
            pending.ended = true;
            self.ended.push_back((number, end_ns));
            self.status.operations += 1;
            if let Some((_, seed)) = self.planned.take_if(|(at, _)| *at == self.status.operations) {
                // The cut falls on a moment at which the operation was in service and after which no reply has been
                // sent.
                let from_ns = begin_ns.max(since_ns);
                let within = below(stream(seed, "moment").next_u64(), (end_ns - from_ns).max(1));
                due = Some((from_ns + 1 + within, seed));
            }
        }
        due
    }

    /// Returns what a program puts into its slots.
    fn stuff(&mut self, change: &Change, payload: &mut Payload) -> Vec<Stuff> {
        let Change::Program { page, kind, spares } = change else { return Vec::new() };
        let first = page * spares.len() as u32;
        let lpns = self.settings.user_pages();
        let mut stuff = Vec::with_capacity(spares.len());
        for (slot, spare) in (first..).zip(spares) {
            stuff.push(match is_data(*kind, spare.owner, lpns) {
                true => Stuff::Data(payload.take_programmed(slot)),
                false => self.says.of(&self.tape, *kind, *spare),
            });
        }
        stuff
    }

    /// Writes the operations that ended before `until_ns` to the file, in the order in which they ended.
    fn settle(&mut self, until_ns: u64, payload: &mut Payload) {
        while let Some(&(number, end_ns)) = self.ended.front()
            && end_ns < until_ns
        {
            let place = &mut self.queue[number.wrapping_sub(self.first) as usize];
            let pending = place.take().expect("it is written once");
            if let Err(error) = self.nand.apply(&pending.change, &pending.stuff, payload) {
                *place = Some(pending);
                return self.fail(&error);
            }
            pending.stuff.into_iter().for_each(|stuff| stuff.release(payload));
            self.ended.pop_front();
            while let Some(None) = self.queue.front() {
                self.queue.pop_front();
                self.first = self.first.wrapping_add(1);
            }
        }
        self.status.error = None;
    }

    pub(super) fn fail(&mut self, error: &io::Error) {
        let why = ftlab_trace::atomic::reason(error);
        self.status.error = Some(format!("{}: cannot write: {why}", self.nand.path().display()));
    }

    /// Whether any of the first `decided` operations in the queue has not ended.
    fn is_under_way(&self, decided: usize) -> bool {
        self.queue.iter().take(decided).flatten().any(|pending| !pending.ended)
    }

    /// Cuts the power at `time_ns`: operations that ended before that time are on the flash; one that was in service is
    /// torn or, one time in four, has just finished.
    fn cut(&mut self, time_ns: u64, mut random: Xoshiro256PlusPlus, payload: &mut Payload) {
        self.settle(time_ns, payload);
        let finished = self.status.operations - self.ended.len() as u64;
        let mut cut = Cut { time_ns, finished, torn_programs: 0, torn_erases: 0 };
        while let Some((number, _)) = self.ended.pop_front().filter(|_| !self.is_full()) {
            let place = &mut self.queue[number.wrapping_sub(self.first) as usize];
            let pending = place.take().expect("it is written once");
            if pending.begin_ns.is_none_or(|begin_ns| begin_ns >= time_ns) {
                continue;
            }
            let done = if below(random.next_u64(), 4) == 0 {
                self.nand.apply(&pending.change, &pending.stuff, payload)
            } else {
                let erase = matches!(pending.change, Change::Erase { .. });
                cut.torn_erases += u64::from(erase);
                cut.torn_programs += u64::from(!erase);
                self.nand.tear(&pending.change)
            };
            if let Err(error) = done {
                self.fail(&error);
            }
        }
        if let Err(error) = self.nand.end(None) {
            self.fail(&error);
        }
        self.status.cut = Some(cut);
    }
}

impl Engine {
    /// Plans to cut the power in the `after`-th program or erase from now; 0 cuts it now.
    ///
    /// # Errors
    /// A message, if the flash is only in memory.
    pub fn cut(&mut self, after: u64, seed: u64) -> Result<(), String> {
        let Some(supply) = &mut self.supply else {
            let why = "the flash of this device is in memory and would be gone; start it with --media FILE";
            return Err(why.into());
        };
        if after > 0 {
            supply.planned = Some((supply.status.operations + after, seed));
            return Ok(());
        }
        if !supply.is_off() {
            self.lose_power(self.simulation.now_ns() + 1, seed);
            self.give_up();
        }
        Ok(())
    }

    /// Whether power is off.
    pub fn is_off(&self) -> bool {
        self.supply.as_ref().is_some_and(Supply::is_off)
    }

    /// Passes on to the flash what the simulation has done since `since_ns`; returns the time at which power was cut,
    /// if it was.
    pub(super) fn follow_flash(&mut self, since_ns: u64) -> Option<u64> {
        let supply = self.supply.as_mut()?;
        match supply.take(&mut self.heard.ran, &mut self.payload, since_ns) {
            Some((at_ns, seed)) => {
                self.lose_power(at_ns, seed);
                Some(at_ns)
            }
            None => {
                supply.settle(u64::MAX, &mut self.payload);
                None
            }
        }
    }

    /// Loses power at `time_ns`, which is no earlier than the moment of the last reply.
    pub(super) fn lose_power(&mut self, time_ns: u64, seed: u64) {
        let report = self.simulation.report();
        let Some(mut supply) = self.supply.take() else { return };
        supply.last = Some(Box::new(report));
        supply.seed = seed;
        // The end of an operation in service is known only once it has ended. Whatever else happens after the cut
        // is discarded.
        let decided = supply.queue.len();
        let answers = std::mem::take(&mut self.heard.answers);
        while supply.is_under_way(decided)
            && let Some(next_ns) = self.simulation.next_event_ns()
            && self.simulation.advance(next_ns, &mut self.heard).is_ok()
        {
            self.follow_moves();
            supply.take(&mut self.heard.ran, &mut self.payload, next_ns);
        }
        self.heard.answers = answers;
        supply.cut(time_ns, stream(seed, "cut"), &mut self.payload);
        self.supply = Some(supply);
    }

    /// Abandons the requests in flight: their clients get no reply and are cut off.
    pub(super) fn give_up(&mut self) {
        self.leave_remains();
        self.tickets.drain().for_each(|ticket| ticket.sink.lose());
    }

    /// Whether writes have to be refused because the file can no longer be written.
    pub(super) fn is_full(&mut self) -> bool {
        let Some(supply) = self.supply.as_mut().filter(|supply| supply.is_full()) else { return false };
        supply.settle(u64::MAX, &mut self.payload);
        supply.is_full()
    }

    /// Returns the result up to the cut, or up to now if there was none, and the live device's own figures.
    pub fn report(&self) -> (Report, Live) {
        let live = Live::new(self);
        let Some(supply) = &self.supply else { return (self.simulation.report(), live) };
        let live = Live { media: Some(supply.status.clone()), ..live };
        match &supply.last {
            Some(last) => ((**last).clone(), live),
            None => (self.simulation.report(), live),
        }
    }

    /// Closes the file of a device that has stopped cleanly: makes everything durable, and appends the FTL's state
    /// to the flash if it can be saved. Returns why closing failed, if it did.
    ///
    /// # Errors
    /// The simulation's error.
    pub fn end_media(&mut self) -> Result<Option<String>, RunError> {
        if self.supply.is_none() {
            return Ok(None);
        }
        if !self.is_off() {
            let time_ns = self.simulation.now_ns() + 1;
            let flush = Record { time_ns, ..Record::FLUSH };
            let flushed = self.simulation.submit(flush).is_ok();
            self.simulation.run_until_idle(&mut self.heard)?;
            let failed = self.heard.answers.drain(..).any(|(_, failed, _)| failed);
            self.follow_moves();
            self.follow_flash(time_ns);
            let whole = flushed && !failed && !self.is_full() && !self.is_off();
            let checkpoint = if whole { self.checkpoint() } else { None };
            let supply = self.supply.as_mut().expect("it is there");
            if !supply.is_full()
                && let Err(error) = supply.nand.end(checkpoint.as_deref())
            {
                supply.fail(&error);
            }
        }
        Ok(self.supply.as_ref().and_then(|supply| supply.status.error.clone()))
    }

    /// Returns the FTL's state as [`Prepared::save`] writes it: that of a device on which all requests that have issued
    /// are done, and what its write buffer holds is on flash.
    ///
    /// # Errors
    /// A message, if loading the state would not give this device.
    pub fn state(&self, settings: &Settings, identity: &Identity) -> Result<Vec<u8>, String> {
        if settings.allocates_by_speed() || settings.ftl.gc_background.is_some() {
            let why = "a saved state lacks what background collection and the choice of blocks by speed keep in RAM";
            return Err(why.into());
        }
        let prepared = self.simulation.prepared();
        let mut bytes = Vec::new();
        prepared.save(identity, &mut bytes).map_err(|error| error.to_string())?;
        let read = Prepared::load(settings, identity, &mut bytes.as_slice(), false);
        let read = read.map_err(|error| format!("a saved state cannot hold this device: {error}"))?;
        let lpns = settings.user_pages() as u32;
        match (0..lpns).all(|lpn| read.ftl().slot(lpn) == prepared.ftl().slot(lpn)) {
            true => Ok(bytes),
            false => Err("a saved state cannot hold this device".into()),
        }
    }

    /// Returns the FTL's state, if loading it would restore the same device.
    fn checkpoint(&self) -> Option<Vec<u8>> {
        let Supply { settings, identity, queue, .. } = self.supply.as_ref()?;
        if !queue.is_empty() {
            return None;
        }
        self.state(settings, identity).ok()
    }
}
