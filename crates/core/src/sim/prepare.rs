//! The device at time 0: preconditioned here, or loaded as it was saved.
//!
//! - `none`: empty.
//! - `fill`: every logical page is written once, in order. No write is simulated: pages go where static
//!   allocation puts them, the mapping is on flash, and its cache is empty.
//! - `mapped`: the same for a share of the logical pages, by default chosen and ordered uniformly at random;
//!   with all logical pages, in order, it is `fill`.
//! - `random:SHARE`: random writes, with replacement, put in place in the same way; pages that they overwrite
//!   remain as invalid pages.
//! - `steady`: `fill`, then the user capacity once more in simulated writes of one logical page (twice the
//!   user capacity in all, as in SNIA's Solid State Storage Performance Test Specification), then rounds, each of the
//!   user capacity, until the write amplifications of five successive rounds differ by at most a bound. The mapping
//!   cache is then as the last write left it.

use rand::RngCore;

use super::{Observer, RunError};
use crate::device::Device;
use crate::device::settings::{PreconditionKind, Withheld, WriteOrder};
use crate::flash::Work;
use crate::flash::media::Tape;
use crate::ftl::{Ftl, Inspect, Locate, LookUp, Police, Prepare, Serve};
use crate::host::block_pages;
use crate::metrics::{Outcome, Preconditioning};
use crate::request::Pages;
use crate::settings::Settings;
use crate::util::{NONE, below, stream};
use crate::workload::{Scatter, SourceError};

/// Number of pages put in place between two calls of [`Observer::preconditioning`].
const CHUNK: usize = 1 << 16;

/// Number of simulated writes between two calls of [`Observer::preconditioning`]; it is smaller than `CHUNK` because
/// one write may merge hundreds of blocks.
const WRITES: usize = 1 << 10;

/// A device at time 0.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) ftl: Ftl,
    pub(super) work: Work,
    pub(super) done: Preconditioning,
    /// Whether the device is in check mode.
    pub check: bool,
    /// Records the operations that the FTL decides on, if power cuts are simulated.
    pub(super) tape: Option<Tape>,
}

/// Begins the run of a device whose reads may meet errors.
pub(super) fn begin_errors(settings: &Settings, work: &mut Work) {
    let flash = &settings.flash;
    if let Some(reliability) = work.reliability_mut() {
        let luns = (flash.luns(), flash.blocks_per_lun() as u32);
        reliability.begin(flash.age_ns, settings.ftl.refresh, luns);
    }
}

/// Sets which flash operations become steps of their own in a run; `pads` says whether the host's own requests may
/// outlast those of the workload.
pub(super) fn set_steps(settings: &Settings, device: &Device, pads: bool, work: &mut Work) {
    if settings.energy.differs_by_type() {
        work.tally(&settings.flash);
    }
    if device.array().overlaps_steps() {
        work.number_loads();
    }
    if device.keeps_apart() {
        work.keep_apart();
    } else if device.array().folds() && !pads {
        work.fold();
    }
}

impl Prepared {
    /// Returns the size of a flash block in bytes, as the host sees it.
    pub fn block_bytes(&self, settings: &Settings) -> u64 {
        u64::from(block_pages(settings, &self.ftl)) * u64::from(settings.ftl.logical_page_bytes)
    }

    /// Preconditions the device of `settings`.
    ///
    /// # Errors
    /// [`RunError`] if the observer stops the preconditioning or, with `check`, an invariant does not hold.
    ///
    /// # Panics
    /// If the settings were not checked.
    pub fn new(settings: &Settings, observer: &mut dyn Observer, check: bool) -> Result<Prepared, RunError> {
        let mut work = settings.work();
        let ftl = Ftl::new(settings, check, &mut work);
        let done = Preconditioning::new(&settings.device.precondition.kind.to_string());
        let mut prepared = Prepared { ftl, work, done, check, tape: None };
        if settings.device.precondition.withheld == Withheld::Used {
            prepared.ftl.close_unwritten();
        }
        prepared.write(settings, observer)?;
        prepared.ftl.close_unwritten();
        prepared.start()?;
        Ok(prepared)
    }

    /// Makes a prepared device from an FTL that has done nothing in this run; its flash is as worn as the FTL has
    /// recorded.
    pub(super) fn with(settings: &Settings, ftl: Ftl, done: Preconditioning, check: bool) -> Prepared {
        let (mut work, mut erases) = (settings.work(), Vec::new());
        ftl.erases(&mut |count| erases.push(count));
        work.set_erases(erases.into_iter());
        ftl.each_slc(&mut |first| work.use_as_slc(first));
        work.set_past(None, |block| !ftl.is_free(block));
        Prepared { ftl, work, done, check, tape: None }
    }

    /// Returns the FTL.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Returns how the device was preconditioned.
    pub fn preconditioning(&self) -> &Preconditioning {
        &self.done
    }

    /// Whether a logical page has data.
    pub fn has_data(&self, lpn: u32) -> bool {
        self.ftl.slot(lpn) != NONE
    }

    fn write(&mut self, settings: &Settings, observer: &mut dyn Observer) -> Result<(), RunError> {
        let how = &settings.device.precondition;
        let lpns = self.ftl.logical_pages();
        let mut random = stream(settings.seed, "precondition");
        match how.kind {
            PreconditionKind::None => Ok(()),
            PreconditionKind::Fill => self.prefill(0..lpns, observer),
            PreconditionKind::Mapped => {
                let share = u128::from(lpns) * u128::from(how.share_ppm);
                let pages = (share / 1_000_000).max(1) as u32;
                if how.order == WriteOrder::Random {
                    let order = Scatter::new(u64::from(lpns), &mut random);
                    self.prefill((0..pages).map(|rank| order.place(u64::from(rank)) as u32), observer)
                } else {
                    self.prefill(0..pages, observer)
                }
            }
            PreconditionKind::Random(share_ppm) => {
                let pages = (u128::from(lpns) * u128::from(share_ppm) / 1_000_000).max(1) as u32;
                let page = u64::from(settings.ftl.logical_page_bytes);
                let size = how.request_bytes.div_ceil(page).min(u64::from(lpns)) as u32;
                let mut first = 0;
                let mut next = |page: u32| {
                    if page.is_multiple_of(size) {
                        first = below(random.next_u64(), u64::from(lpns / size)) as u32 * size;
                    }
                    first + page % size
                };
                self.prefill((0..pages).map(&mut next), observer)
            }
            PreconditionKind::Steady => {
                self.prefill(0..lpns, observer)?;
                let mut next = 0;
                let mut draw = || {
                    if how.order == WriteOrder::Random {
                        return below(random.next_u64(), u64::from(lpns)) as u32;
                    }
                    let lpn = next;
                    next = if next + 1 == lpns { 0 } else { next + 1 };
                    lpn
                };
                self.overwrite(lpns, &mut draw, observer)?;
                let bound = how.bound_ppm as f64 / 1e6;
                while self.done.rounds < how.rounds {
                    let waf = self.overwrite(lpns, &mut draw, observer)?;
                    self.done.add_round(waf);
                    if self.done.spread().is_some_and(|spread| spread <= bound) {
                        self.done.outcome = Some(Outcome::Reached);
                        return Ok(());
                    }
                }
                self.done.outcome = Some(Outcome::Capped);
                Ok(())
            }
        }
    }

    /// Puts data in place without simulating its writes.
    fn prefill(
        &mut self,
        mut lpns: impl Iterator<Item = u32>,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let mut chunk = Vec::with_capacity(CHUNK);
        while let Some(first) = lpns.next() {
            chunk.push(first);
            chunk.extend(lpns.by_ref().take(CHUNK - 1));
            self.ftl.prefill(&chunk, &mut self.work);
            self.advance(chunk.len(), observer)?;
            chunk.clear();
        }
        Ok(())
    }

    /// Simulates `pages` writes of one page each; returns their write amplification.
    fn overwrite(
        &mut self,
        pages: u32,
        draw: &mut dyn FnMut() -> u32,
        observer: &mut dyn Observer,
    ) -> Result<f64, RunError> {
        let before = self.programs();
        let mut left = pages as usize;
        while left > 0 {
            let chunk = left.min(WRITES);
            for _ in 0..chunk {
                let request = Pages { first: draw(), pages: 1, ..Pages::NONE };
                self.ftl.write(request, &mut self.work);
                self.work.clear();
            }
            left -= chunk;
            self.advance(chunk, observer)?;
        }
        let slots = self.ftl.slots_per_page();
        Ok((self.programs() - before) as f64 * f64::from(slots) / f64::from(pages))
    }

    fn programs(&self) -> u64 {
        self.work.counts().programs.total()
    }

    fn advance(&mut self, pages: usize, observer: &mut dyn Observer) -> Result<(), RunError> {
        if self.ftl.is_read_only() {
            return Err(SourceError::Input(
                "preconditioning wore the device out: it turned read-only before time 0; raise \
                 flash.endurance or ftl.spare_blocks, or lower device.precondition_rounds"
                    .into(),
            )
            .into());
        }
        self.done.pages_written += pages as u64;
        match observer.preconditioning(&self.done) {
            true => Ok(()),
            false => Err(SourceError::Interrupted.into()),
        }
    }

    /// Begins the run: everything so far counts as preconditioning.
    fn start(&mut self) -> Result<(), RunError> {
        self.done.programs = self.programs();
        self.done.erases = self.work.counts().erases.total();
        self.work.reset();
        self.ftl.start();
        if self.check { self.verify("after preconditioning") } else { Ok(()) }
    }

    /// Verifies all invariants.
    pub(super) fn verify(&self, when: &str) -> Result<(), RunError> {
        self.ftl.verify().map_err(|fault| RunError::Check(format!("{fault} ({when})")))
    }
}
