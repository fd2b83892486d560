//! What a cut loses: unflushed writes are noted as they come, and written back as they were drawn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ftlab_core::sim::RunError;
use ftlab_core::util::stream;
use ftlab_core::workload::{Op, Record};

use super::power::Supply;
use super::{Asked, Engine, Sink};
use crate::nbd::{Command, Flags, Form, Request};
use crate::remains;
use crate::unflushed::{Bytes, SECTOR, Sector, Unflushed, Write};

/// Takes replies that nobody reads; notes whether one is an error.
#[derive(Default)]
struct Nobody(AtomicBool);

impl Sink for Nobody {
    fn put(&self, reply: Vec<u8>, _: usize) {
        self.0.fetch_or(reply[4..8] != [0; 4], Ordering::Relaxed);
    }

    fn kick(&self) {}

    fn lose(&self) {}
}

impl Engine {
    /// Plans to cut the power when the `after`-th write, trim or flush from now comes, which is then lost.
    ///
    /// # Errors
    /// A message, if the flash is only in memory.
    pub fn cut_at_request(&mut self, after: u64, seed: u64) -> Result<(), String> {
        if after == 0 || self.supply.is_none() {
            return self.cut(0, seed);
        }
        let supply = self.supply.as_mut().expect("it is there");
        supply.planned_request = Some((supply.status.requests + after, seed));
        Ok(())
    }

    /// Counts a client's write, trim or flush; returns whether the power goes as it comes.
    pub(super) fn is_cut_here(&mut self) -> bool {
        let now_ns = self.simulation.now_ns();
        let Some(supply) = &mut self.supply else { return false };
        supply.status.requests += 1;
        let requests = supply.status.requests;
        let Some((_, seed)) = supply.planned_request.take_if(|(at, _)| *at == requests) else { return false };
        self.lose_power(now_ns + 1, seed);
        self.give_up();
        true
    }

    fn unflushed(&mut self) -> Option<&mut Unflushed> {
        self.supply.as_mut()?.unflushed.as_mut()
    }

    /// Notes a submission that may be lost.
    pub(super) fn note_change(&mut self, number: u64, record: &Record, data: Option<&Arc<[u8]>>) {
        let page_bytes = self.payload.page_bytes() as u64;
        let Some(Supply { unflushed: Some(unflushed), .. }) = &mut self.supply else { return };
        let &Record { time_ns, op, offset, size, .. } = record;
        let range = match op {
            Op::Read => return,
            Op::Flush => return unflushed.flush(number, time_ns),
            Op::Write => (offset, offset + size),
            // A trim discards only whole pages.
            Op::Trim => (offset.next_multiple_of(page_bytes), (offset + size) / page_bytes * page_bytes),
        };
        if range.0 >= range.1 {
            return;
        }
        let (simulation, flights, payload) = (&self.simulation, &self.flights, &self.payload);
        let old = |sector: u64, into: &mut Bytes| {
            let lpn = (sector * SECTOR / page_bytes) as u32;
            let page = flights.buffered(lpn).or_else(|| payload.read(simulation.slot(lpn)));
            let at = (sector * SECTOR % page_bytes) as usize;
            page.into_iter().for_each(|page| into.copy_from_slice(&page[at..at + SECTOR as usize]));
        };
        let data = data.cloned().unwrap_or_default();
        let fua = record.flags & Record::FUA != 0;
        let write = Write { number, op, range, data, end_ns: None, failed: false, fua, persists: Vec::new() };
        unflushed.write(write, time_ns, old);
    }

    /// Notes that a submission has completed.
    pub(super) fn note_end(&mut self, number: u64, failed: bool, at_ns: u64) {
        if let Some(unflushed) = self.unflushed() {
            unflushed.acknowledge(number, failed, at_ns);
        }
    }

    /// After a cut: draws what persists, and leaves it next to the media file.
    pub(super) fn leave_remains(&mut self) {
        let Some(supply) = &mut self.supply else { return };
        let (Some(mut unflushed), Some(cut)) = (supply.unflushed.take(), supply.status.cut) else { return };
        unflushed.draw(&mut stream(supply.seed, "unflushed"));
        let media = (supply.nand.path(), supply.nand.last());
        if let Err(error) = remains::leave(media, &unflushed, (cut.time_ns, supply.seed)) {
            supply.fail(error.io_error());
        }
    }

    /// Writes sectors, in ascending order of their numbers, and makes them durable; returns false if the device refuses
    /// to.
    ///
    /// # Errors
    /// The simulation's error.
    pub fn restore(&mut self, sectors: &[(u64, Sector)]) -> Result<bool, RunError> {
        let page_bytes = self.payload.page_bytes() as u64;
        let nobody = Arc::new(Nobody::default());
        let sink: Arc<dyn Sink> = nobody.clone();
        let adjacent = |a: &(u64, Sector), b: &(u64, Sector)| {
            a.0 + 1 == b.0 && a.0 * SECTOR / page_bytes == b.0 * SECTOR / page_bytes
        };
        let mut data = Vec::new();
        for run in sectors.chunk_by(adjacent) {
            let offset = run[0].0 * SECTOR;
            let slot = self.simulation.slot((offset / page_bytes) as u32);
            let at = (offset % page_bytes) as usize;
            data.clear();
            run.iter().for_each(|(_, sector)| data.extend_from_slice(&sector.bytes[..]));
            let same = match self.payload.read(slot) {
                Some(page) => page[at..at + data.len()] == data[..],
                None => data.iter().all(|&byte| byte == 0),
            };
            if !same {
                let length = data.len() as u64;
                self.say(
                    Request { command: Command::Write, flags: Flags(0), cookie: 0, offset, length },
                    &data,
                    &sink,
                );
                self.drain()?;
            }
        }
        let flush = Request { command: Command::Flush, flags: Flags(0), cookie: 0, offset: 0, length: 0 };
        self.say(flush, &[], &sink);
        self.drain()?;
        Ok(!nobody.0.load(Ordering::Relaxed))
    }

    fn say(&mut self, request: Request, data: &[u8], sink: &Arc<dyn Sink>) {
        self.ask(&Asked { request, data, form: Form::Simple, stream: 0, program: 0, sink, charged: 0 });
    }
}
