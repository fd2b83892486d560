//! What happens to a running device from outside: it slows down, ages, wears or turns read-only, so that what is above
//! it can be seen to cope. None of it is in a trace: a run that repeats the requests repeats nothing of this.

use super::Simulation;
use crate::ftl::{Inspect, Serve};

const HOUR_NS: f64 = 3.6e12;

/// Something that happens to a device from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outside {
    /// Cells take this many times as long as the settings say: reads, programs and erases that begin from now on, not
    /// transfers.
    Slow(f64),
    /// Data lie for this many hours more, in which no time passes for requests.
    Age(f64),
    /// Each block is worn by this many erasures more.
    Wear(u32),
    /// The device turns read-only, as one does that needs a spare block and has none.
    ReadOnly,
}

impl Simulation<'_> {
    /// Lets something happen to the device now.
    ///
    /// # Errors
    /// A message, if it cannot happen to this device.
    pub fn suffer(&mut self, what: Outside) -> Result<(), String> {
        match what {
            Outside::Slow(factor) => self.work.slow(&self.settings.flash, factor),
            Outside::Age(hours) => {
                self.work.set_now(self.now_ns);
                if !self.work.age((hours * HOUR_NS) as u64) {
                    let why = "reads of this device meet no errors, so age does nothing; choose flash.errors.process";
                    return Err(why.into());
                }
            }
            Outside::Wear(cycles) => return self.wear(cycles),
            Outside::ReadOnly => {
                if !self.ftl.give_out() {
                    return Err("this FTL never turns read-only".into());
                }
                self.device.turned_read_only(self.now_ns, &self.ftl);
            }
        }
        self.undecided = true;
        Ok(())
    }

    fn wear(&mut self, cycles: u32) -> Result<(), String> {
        if self.settings.allocates_by_speed() {
            return Err("writes of this device choose blocks by speed, which wear would change".into());
        }
        if !self.ftl.wear(cycles) {
            return Err("this FTL counts no erasures".into());
        }
        let mut erases = Vec::new();
        self.ftl.erases(&mut |count| erases.push(count));
        if let Some(power) = &mut self.power {
            (0..).zip(&erases).for_each(|(block, _)| {
                let worn = power.media.erases(block).saturating_add(cycles);
                power.media.set_erases(block, worn);
            });
        }
        self.work.set_now(self.now_ns);
        self.work.wear(erases.into_iter());
        self.undecided = true;
        Ok(())
    }
}
