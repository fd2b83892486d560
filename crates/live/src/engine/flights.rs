//! Requests in flight: what clients asked for, the submissions they became, and their bytes.

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ftlab_core::flash::moves::Move;
use ftlab_core::metrics::Histogram;
use ftlab_core::sim::{Activity, Completion, Observer};
use ftlab_core::workload::Op;

use super::Sink;
use super::power::Ran;
use super::programs::Origin;
use crate::nbd::Errno;
use crate::nbd::reply::{self, To};
use crate::payload::Payload;

/// Collects completions until the engine examines them.
#[derive(Default)]
pub(super) struct Heard {
    pub answers: Vec<(u64, bool, u64)>,
    pub ended: Vec<u64>,
    pub ran: Vec<Ran>,
    /// Simulated times from arrival to completion of the submissions that succeeded, by operation.
    pub latency: Vec<Histogram>,
}

impl Observer for Heard {
    fn complete(&mut self, completion: &Completion) {
        self.ended.push(completion.id);
    }

    fn answer(&mut self, completion: &Completion) {
        self.answers.push((completion.id, completion.failed, completion.complete_ns));
        if !completion.failed {
            self.latency[completion.op as usize].add(completion.complete_ns - completion.arrival_ns);
        }
    }

    fn activity(&mut self, activity: &Activity) {
        self.ran.extend(Ran::of(activity));
    }
}

/// A client's request in flight.
pub(super) struct Ticket {
    pub sink: Arc<dyn Sink>,
    /// What the reply repeats of the request.
    pub to: To,
    pub charged: usize,
    /// Stream of the request; 0: none.
    pub stream: u16,
    pub origin: Origin,
    /// Whether the reply has data.
    pub reads: bool,
    /// The reply to a read, and where its data begins.
    pub reply: Vec<u8>,
    pub data_at: usize,
    /// Number of submissions that have not completed.
    pub parts: u32,
    pub failed: bool,
    /// Whether a flush follows the submissions.
    pub flush: bool,
}

impl Ticket {
    /// Passes the reply to the client's sink, and returns the sink.
    pub fn answer(mut self, broken: bool) -> Arc<dyn Sink> {
        let failed = broken || self.failed;
        if failed {
            self.reply.clear();
            reply::failed(&mut self.reply, self.to, Errno::Io, self.reads);
        } else if !self.reads {
            reply::done(&mut self.reply, self.to);
        }
        self.sink.put(self.reply, self.charged);
        self.sink
    }
}

/// All open tickets; each is identified by its place in `places`.
#[derive(Default)]
pub(super) struct Tickets {
    places: Vec<Option<Ticket>>,
    free: Vec<usize>,
    /// Since when there are any, and how long there were any before that.
    since: Option<Instant>,
    served: Duration,
}

impl Tickets {
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns how many tickets are open.
    pub fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns the wall time in which tickets were open.
    pub fn served(&self) -> Duration {
        self.served + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub fn open(&mut self, ticket: Ticket) -> usize {
        self.since.get_or_insert_with(Instant::now);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(ticket);
        place
    }

    pub fn close(&mut self, place: usize) -> Ticket {
        self.free.push(place);
        if self.is_empty() {
            self.served += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        }
        self.places[place].take().expect("it is open")
    }

    /// Closes and returns all tickets.
    pub fn drain(&mut self) -> impl Iterator<Item = Ticket> {
        self.free.clear();
        std::mem::take(&mut self.places).into_iter().flatten()
    }
}

impl Index<usize> for Tickets {
    type Output = Ticket;

    fn index(&self, place: usize) -> &Ticket {
        self.places[place].as_ref().expect("it is open")
    }
}

impl IndexMut<usize> for Tickets {
    fn index_mut(&mut self, place: usize) -> &mut Ticket {
        self.places[place].as_mut().expect("it is open")
    }
}

/// One submission.
pub(super) struct Flight {
    pub ticket: usize,
    pub op: Op,
    pub offset: u64,
    pub end: u64,
    /// Data of a write; if it is empty, zeroes are written.
    pub data: Option<Arc<[u8]>>,
}

impl Flight {
    /// Returns the range of the submission's bytes that lies in the page that begins at `start`, if there is one.
    fn within(&self, start: u64, page_bytes: usize) -> Option<(u64, u64)> {
        let (from, to) = (self.offset.max(start), self.end.min(start + page_bytes as u64));
        (from < to).then_some((from, to))
    }
}

/// All submissions in flight, by number.
#[derive(Default)]
pub(super) struct Flights {
    /// Number of the first submission in the queue.
    first: u64,
    queue: VecDeque<Option<Flight>>,
    /// If requests merge: the submissions that make up each request.
    behind: HashMap<u64, Vec<u64>>,
    /// The submissions that make up the request being issued.
    issuing: Vec<u64>,
    /// Slot from which the next program takes its data, and whether the request being issued writes over that data.
    source: (u32, bool),
    /// What the write buffer holds, by logical page.
    buffer: HashMap<u32, Box<[u8]>>,
    /// The pages that leave the write buffer, until they are programmed.
    destaging: HashMap<u32, Box<[u8]>>,
}

impl Flights {
    /// Notes that a submission was handed over to the simulation.
    pub fn begin(&mut self, number: u64, flight: Flight) {
        if self.queue.is_empty() {
            self.first = number;
        }
        debug_assert_eq!(number, self.first + self.queue.len() as u64, "they are numbered in turn");
        self.queue.push_back(Some(flight));
    }

    fn get(&self, number: u64) -> Option<&Flight> {
        self.queue.get(number.checked_sub(self.first)? as usize)?.as_ref()
    }

    /// Returns the page that the write buffer holds, or has just handed out.
    pub fn buffered(&self, lpn: u32) -> Option<&[u8]> {
        self.buffer.get(&lpn).or_else(|| self.destaging.get(&lpn)).map(|page| &**page)
    }

    /// Notes that a submission has completed, and returns it.
    pub fn end(&mut self, number: u64) -> Flight {
        let flight = self.queue[(number - self.first) as usize].take().expect("it is under way");
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
        flight
    }

    /// Notes that a request, which may consist of several submissions, has completed.
    pub fn forget(&mut self, request: u64) {
        self.behind.remove(&request);
    }

    /// Moves the bytes the way the FTL moved the pages.
    pub fn follow(&mut self, moves: &[Move], payload: &mut Payload, tickets: &mut Tickets) {
        for &what in moves {
            match what {
                Move::Arrive { request, submission } => _ = self.behind.insert(request, vec![submission]),
                Move::Merge { request, submission } => {
                    self.behind.entry(request).or_default().push(submission);
                }
                Move::Issue { request } => {
                    self.issuing.clear();
                    // A page that a read-only device refused stays where it was.
                    self.buffer.extend(self.destaging.drain());
                    if let Some(request) = request {
                        match self.behind.get(&request) {
                            Some(several) => self.issuing.extend(several),
                            None => self.issuing.push(request),
                        }
                        // Of several submissions that write the same page, the last one submitted wins.
                        self.issuing.sort_unstable();
                    }
                }
                Move::Read { lpn, slot } => self.read(lpn, slot, payload, tickets),
                Move::Keep { lpn, slot } => self.keep(lpn, slot, payload),
                Move::Kept { lpn } => {
                    if let Some(page) = self.buffer.get(&lpn) {
                        self.reply(lpn, page, tickets);
                    }
                }
                Move::Destage { lpn } => self.destaging.extend(self.buffer.remove_entry(&lpn)),
                Move::Drop { lpn } => _ = self.buffer.remove(&lpn),
                Move::Write { old } => self.source = (old, true),
                Move::Copy { from } => self.source = (from, false),
                Move::Program { slot, lpn } => self.program(lpn, slot, payload),
                Move::Erase { first, slots } => payload.erase(first, slots),
            }
        }
    }

    fn read(&self, lpn: u32, slot: u32, payload: &Payload, tickets: &mut Tickets) {
        if let Some(page) = payload.read(slot) {
            self.reply(lpn, page, tickets);
        }
    }

    /// Puts the bytes of a page into the replies to those submissions of the request being issued that read them.
    fn reply(&self, lpn: u32, page: &[u8], tickets: &mut Tickets) {
        let start = u64::from(lpn) * page.len() as u64;
        for flight in self.issuing.iter().filter_map(|&number| self.get(number)) {
            let Some((from, to)) = flight.within(start, page.len()) else { continue };
            let ticket = &mut tickets[flight.ticket];
            if !ticket.reads {
                continue;
            }
            let at = ticket.data_at + (from - ticket.to.offset) as usize;
            let bytes = &page[(from - start) as usize..(to - start) as usize];
            ticket.reply[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Puts a page into the write buffer, as the request being issued writes it.
    fn keep(&mut self, lpn: u32, slot: u32, payload: &Payload) {
        let old = || payload.read(slot).map_or_else(|| vec![0; payload.page_bytes()].into(), Box::from);
        let mut page = self.buffer.remove(&lpn).unwrap_or_else(old);
        self.write(lpn, &mut page);
        self.buffer.insert(lpn, page);
    }

    /// Returns the submissions of the request being issued that write to a page.
    fn writers(&self, lpn: u32, page_bytes: usize) -> impl Iterator<Item = (&Flight, (u64, u64))> {
        let start = u64::from(lpn) * page_bytes as u64;
        let flights = self.issuing.iter().filter_map(|&number| self.get(number));
        let writes = flights.filter(|flight| flight.op == Op::Write);
        writes.filter_map(move |flight| Some((flight, flight.within(start, page_bytes)?)))
    }

    /// Overwrites the parts of a page that the request being issued writes.
    fn write(&self, lpn: u32, page: &mut [u8]) {
        let start = u64::from(lpn) * page.len() as u64;
        for (flight, (from, to)) in self.writers(lpn, page.len()) {
            let into = &mut page[(from - start) as usize..(to - start) as usize];
            match flight.data.as_deref() {
                None | Some([]) => into.fill(0),
                Some(data) => into
                    .copy_from_slice(&data[(from - flight.offset) as usize..(to - flight.offset) as usize]),
            }
        }
    }

    fn program(&mut self, lpn: u32, slot: u32, payload: &mut Payload) {
        let (from, writes) = self.source;
        if writes && let Some(kept) = self.destaging.remove(&lpn) {
            return payload.program(u32::MAX, slot, |page| {
                page.copy_from_slice(&kept);
                self.write(lpn, page);
            });
        }
        if !writes || self.writers(lpn, payload.page_bytes()).next().is_none() {
            return payload.share(from, slot);
        }
        payload.program(from, slot, |page| self.write(lpn, page));
    }
}
