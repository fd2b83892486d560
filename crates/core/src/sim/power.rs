//! Power cuts of a simulation.
//!
//! Every operation that the FTL decides on goes on a tape, and the device says when each of them ran. At a cut,
//! operations that had finished are on the media, those in service are torn (or, one time in four, just finished), and
//! all others never happened. The FTL is then rebuilt from the media and from what RAM has kept under
//! `device.power_loss_protection`, and from nothing else.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::operations::Operations;
use super::{Feed, RunError, Simulation};
use crate::clock::NEVER;
use crate::device::{Array, Owner};
use crate::flash::media::{DESTAGED, Media, Tape};
use crate::flash::{Endurance, Reliability, Work};
use crate::ftl::recovery::{Flaw, Recovery};
use crate::ftl::{Ftl, Prepare, Serve, Survive, is_hybrid, keeps_trims, maps_blocks};
use crate::host::Host;
use crate::metrics::Preconditioning;
use crate::request::Pages;
use crate::settings::Settings;
use crate::sim::{Kept, Prepared};
use crate::util::stream;

pub use super::operations::Cut;

/// What survives a cut, and what is known about the operations since the last cut.
pub struct Power {
    /// The flash.
    pub media: Media,
    /// The operations that the FTL has decided on.
    pub tape: Tape,
    /// The operations that have run.
    pub operations: Operations,
    /// What a device whose power is protected keeps in RAM.
    pub kept: Kept,
    /// The errors that reads meet: they are the flash's own.
    pub reliability: Option<Box<Reliability>>,
}

impl Power {
    /// Makes the power supply of a device at time 0, which begins with everything on flash.
    fn begin(settings: &Settings, ftl: &mut Ftl, work: &mut Work) -> Result<Power, String> {
        ftl.flush(work);
        work.reset();
        ftl.start();
        let flash = &settings.flash;
        let wears_out = flash.endurance != Endurance::Unlimited || settings.ftl.spare_blocks > 0;
        if flash.cell.bits() > flash.unit_pages() {
            return Err(
                "power cuts of word lines that are programmed page by page are not simulated: a cut would tear pages that \
                 share cells with the one being programmed; set flash.programming to word-line, or flash.cell to slc"
                    .into(),
            );
        }
        if is_hybrid(settings) && wears_out {
            return Err(
                "power cuts of hybrid FTLs whose blocks wear out are not simulated; set flash.endurance to \
                        none and ftl.spare_blocks to 0, or choose a page-mapped ftl.kind"
                    .into(),
            );
        }
        if !keeps_trims(settings) {
            return Err(
                "there is no room to make trims durable; withhold more (ftl.over_provisioning), or raise \
                        flash.blocks_per_plane"
                    .into(),
            );
        }
        let mut media = Media::new(flash.luns(), flash.blocks_per_lun() as u32, flash.units_per_block(), 0);
        if maps_blocks(settings) {
            media.allow_gaps();
        }
        let tape = Tape::new(ftl.write_media(&mut media));
        ftl.record(&tape, &media);
        let (operations, kept) = Default::default();
        Ok(Power { media, tape, operations, kept, reliability: None })
    }

    /// Rebuilds the FTL from the media; returns the FTL, the cost of the recovery, and how long it took, ns. Afterwards
    /// `operations` holds only the operations of the recovery.
    ///
    /// # Errors
    /// A message, which means a bug in ftlab.
    pub fn recover(&mut self, settings: &Settings, flaw: Flaw) -> Result<(Ftl, Recovery, u64), String> {
        let mut work = settings.work();
        let known = self.reliability.take();
        let is_known = known.is_some();
        if is_known {
            work.set_reliability(known);
        }
        work.set_erases((0..self.media.blocks()).map(|block| self.media.erases(block)));
        work.label();
        work.number_loads();
        let (mut ftl, recovery) = Ftl::recover(settings, &self.media, (&self.tape, flaw), &mut work)?;
        if settings.device.buffer.protects() {
            self.restore(&mut ftl, &mut work)?;
        }
        let elapsed_ns;
        (self.operations, elapsed_ns) = run_alone(settings, &work);
        self.reliability = work.take_reliability().filter(|_| is_known);
        Ok((ftl, recovery, elapsed_ns))
    }

    /// Writes to flash what protected RAM holds. A device that has no spare block left does so too, before it refuses
    /// anything: what was acknowledged is there.
    fn restore(&mut self, ftl: &mut Ftl, work: &mut Work) -> Result<(), String> {
        self.tape.issue(DESTAGED, 0, false);
        let mut worn_out = ftl.is_read_only();
        for (lpn, trim) in self.kept.lost(ftl, &self.media)? {
            ftl.set_read_only(false, work);
            let page = Pages { first: lpn, pages: 1, ..Pages::NONE };
            if trim {
                ftl.trim(page, work)
            } else {
                ftl.write(page, work)
            };
            worn_out |= ftl.is_read_only();
        }
        ftl.set_read_only(false, work);
        ftl.flush(work);
        worn_out |= ftl.is_read_only();
        ftl.set_read_only(worn_out, work);
        self.tape.take_events().1.iter().for_each(|event| self.kept.note(event));
        Ok(())
    }

    /// Cuts the power when `finished` operations have finished (or all, if there are fewer), a moment before the next
    /// one finishes.
    ///
    /// # Errors
    /// A message, if tape and device disagree.
    pub fn cut_after(&mut self, finished: u64, random: &mut Xoshiro256PlusPlus) -> Result<Cut, String> {
        let operations = std::mem::take(&mut self.operations);
        let at = operations.after(finished, random);
        self.cut(&operations, at, random)
    }

    fn cut(
        &mut self,
        operations: &Operations,
        at: (usize, u64),
        random: &mut Xoshiro256PlusPlus,
    ) -> Result<Cut, String> {
        let cut = operations.cut(self.tape.take_changes(), at, random, &mut self.media)?;
        self.tape.prune(&self.media);
        Ok(cut)
    }
}

/// The cost of a recovery.
#[derive(Clone, Copy, Debug)]
pub struct Recovered {
    /// The reads and writes of the recovery.
    pub recovery: Recovery,
    /// The simulated time that the recovery took, ns.
    pub elapsed_ns: u64,
}

impl Prepared {
    /// Makes the device able to lose its power; it must be in check mode, with `ftl.power_safe` set.
    ///
    /// # Errors
    /// A message, if the FTL cannot lose its power.
    pub fn allow_cuts(&mut self, settings: &Settings) -> Result<Power, String> {
        let power = Power::begin(settings, &mut self.ftl, &mut self.work)?;
        self.tape = Some(power.tape.clone());
        Ok(power)
    }

    /// Continues on other media, which hold the same data as the device, and records on `tape` from now on.
    pub fn resume(&mut self, tape: &Tape, media: &Media) {
        self.ftl.record(tape, media);
        self.tape = Some(tape.clone());
    }

    /// Makes a prepared device from an FTL that was rebuilt from flash ([`Power::recover`]).
    pub fn recovered(settings: &Settings, mut ftl: Ftl, tape: &Tape) -> Prepared {
        ftl.start();
        let done = Preconditioning::new("none");
        Prepared { tape: Some(tape.clone()), ..Prepared::with(settings, ftl, done, true) }
    }
}

impl Simulation<'_> {
    /// Makes the device able to lose its power; must be called before anything is submitted. The device must be in
    /// check mode, with `ftl.power_safe` set, and begins with everything on flash.
    ///
    /// # Errors
    /// [`RunError::Power`] if the FTL cannot lose its power.
    pub fn allow_cuts(&mut self) -> Result<(), RunError> {
        if self.check.is_none() || !self.settings.ftl.power_safe {
            let why =
                "power can be cut where the device is prepared for it: set ftl.power_safe, and check mode";
            return Err(RunError::Power(why.into()));
        }
        let power = Power::begin(&self.settings, &mut self.ftl, &mut self.work).map_err(RunError::Power)?;
        self.device.keep_tape(power.tape.clone());
        self.report_activity();
        self.power = Some(Box::new(power));
        Ok(())
    }

    /// Cuts the power now. Requests that have not completed never will.
    ///
    /// # Errors
    /// [`RunError::Power`] if cuts were not allowed, or power is already off.
    pub fn cut(&mut self, seed: u64) -> Result<Cut, RunError> {
        self.has_power()?;
        let Some(mut power) = self.power.take() else {
            let why = "this device cannot lose its power: set ftl.power_safe to true when it is made";
            return Err(RunError::Power(why.into()));
        };
        if self.under_way() > 0 || !self.extent.outlasts {
            self.device.used(self.now_ns, &mut self.extent.used);
        }
        self.device.passes(self.now_ns, self.extent.first_ns);
        // Operations in service are recorded with the times at which they would have ended.
        while self.device.array().next_ns() != NEVER {
            let at_ns = self.device.array().next_ns();
            self.device.advance(at_ns, &mut self.host.pool, &mut self.done);
            self.device.take_spans(&self.host.pool, |span, _, _| power.operations.add_span(span));
        }
        self.device.forget_commands();
        self.done.clear();
        let operations = std::mem::take(&mut power.operations);
        let at = (operations.finished_by(self.now_ns), self.now_ns.saturating_add(1));
        let cut = power.cut(&operations, at, &mut stream(seed, "cut")).map_err(RunError::Check)?;
        let (_, events) = power.tape.take_events();
        if self.settings.device.buffer.protects() {
            events.iter().for_each(|event| power.kept.note(event));
        }
        power.reliability = self.work.take_reliability();
        self.power = Some(power);
        self.off = true;
        if let Feed::Submitted(submitted) = &mut self.feed {
            submitted.lose();
        }
        Ok(cut)
    }

    /// Brings the device up again from its flash and, with power-loss protection, its RAM. Time moves on by the
    /// duration of the recovery, and reports start afresh from then on.
    ///
    /// # Errors
    /// [`RunError::Power`] if power is on.
    pub fn recover(&mut self) -> Result<Recovered, RunError> {
        let Some(mut power) = self.power.take_if(|_| self.off) else {
            return Err(RunError::Power("the power is on; only a device that lost it recovers".into()));
        };
        let found = power.recover(&self.settings, Flaw::default());
        let (ftl, recovery, elapsed_ns) =
            found.map_err(|what| RunError::Check(format!("recovery: {what}")))?;
        let kept = power.cut_after(u64::MAX, &mut stream(0, "kept"));
        kept.map_err(|what| RunError::Check(format!("recovery: {what}")))?;
        power.tape.take_events();
        power.kept.settle();
        let host = Host::new(&self.settings, &ftl, false);
        let fresh = Feed::Submitted(crate::host::Submitted::new(&self.settings, host.merges()));
        let feed = std::mem::replace(&mut self.feed, fresh);
        let mut prepared = Prepared::recovered(&self.settings, ftl, &power.tape);
        prepared.work.set_reliability(power.reliability.take());
        let now_ns = self.now_ns + elapsed_ns;
        let settings = self.settings.clone();
        *self = Simulation::fed(&settings, prepared, host, feed);
        self.report_activity();
        (self.now_ns, self.extent.last_ns, self.extent.first_ns) = (now_ns, now_ns, None);
        self.power = Some(power);
        Ok(Recovered { recovery, elapsed_ns })
    }

    /// Checks that power is on.
    ///
    /// # Errors
    /// [`RunError::Power`] if it is off.
    pub(super) fn has_power(&self) -> Result<(), RunError> {
        match self.off {
            true => Err(RunError::Power("the power is cut; recover first".into())),
            false => Ok(()),
        }
    }
}

/// Runs the steps of a recovery on an idle device; returns its operations and how long they took, ns.
fn run_alone(settings: &Settings, work: &Work) -> (Operations, u64) {
    let mut array = Array::new(settings, &settings.order);
    let mut operations = Operations::default();
    let mut now_ns = 0;
    array.keep_spans();
    array.start(Owner { id: 0, stream: None }, work, false, 0);
    array.settle(0);
    while !array.all_idle() {
        now_ns = array.next_ns();
        while array.advance(now_ns).is_some() {}
        array.take_spans().for_each(|span| operations.add_span(&span));
    }
    (operations, now_ns)
}
