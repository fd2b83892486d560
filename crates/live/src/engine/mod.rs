//! The simulation with its payload: clients' requests go in, replies come out.
//!
//! Whichever thread holds the engine advances time: a connection when requests arrive, or a thread of the server when
//! an event is due that no new request causes. A client's request becomes one or a few submissions to the simulation.

mod asked;
mod flights;
mod lost;
mod orders;
mod power;
mod programs;
mod status;
mod zeroes;

use std::sync::Arc;
use std::time::Instant;

use ftlab_core::Simulation;
use ftlab_core::flash::moves::{Move, Moves};
use ftlab_core::metrics::Histogram;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Prepared, RunError};
use ftlab_core::workload::{Op, Record};

use crate::media::Stored;
use crate::nbd::reply;
use crate::nbd::{Command, Errno, MAX_PAYLOAD, Request};
use crate::pace::{Pace, Time};
use crate::payload::Payload;
use crate::recording::Recording;
pub use asked::{Asked, Sink};
use asked::{done, refuse};
use flights::{Flight, Flights, Heard, Ticket, Tickets};
use orders::Orders;
pub use power::MediaStatus;
use power::Supply;
pub use programs::{OPERATIONS, Program, Slow};
use programs::{Origin, Programs, operation};
pub use status::Live;

/// The live device: the simulation, its payload, and the clients' requests in flight.
pub struct Engine {
    simulation: Simulation<'static>,
    payload: Payload,
    /// The power supply and the file, if the flash is in a file.
    supply: Option<Supply>,
    pace: Pace,
    moves: Moves,
    taken: Vec<Move>,
    heard: Heard,
    flights: Flights,
    tickets: Tickets,
    /// Clients with replies that have not been sent.
    answered: Vec<Arc<dyn Sink>>,
    recording: Option<Recording>,
    /// What the device has been told, and the sectors that fail.
    orders: Orders,
    /// The latencies of each program, if programs are told apart.
    programs: Option<Programs>,
    lateness: Histogram,
    size: u64,
    read_only: bool,
    broken: bool,
}

impl Engine {
    /// Makes the live device for checked settings. The device was prepared for these settings or, with `stored`, was
    /// kept in a file. Time begins now.
    pub fn new(
        settings: &Settings,
        (prepared, stored): (Prepared, Option<Stored>),
        (time, read_only): (Time, bool),
        recording: Option<Recording>,
    ) -> Engine {
        let mut simulation = Simulation::new(settings, prepared);
        let moves = simulation.follow();
        let page_bytes = settings.ftl.logical_page_bytes;
        let slots = settings.flash.raw_bytes() / u64::from(page_bytes);
        let (supply, payload) = match stored {
            None => (None, Payload::new(slots as usize, page_bytes)),
            Some(stored) => {
                simulation.report_activity();
                let (supply, payload) = Supply::new(settings, stored);
                (Some(supply), payload)
            }
        };
        Engine {
            simulation,
            payload,
            supply,
            pace: Pace::new(time),
            moves,
            taken: Vec::new(),
            heard: Heard { latency: vec![Histogram::default(); OPERATIONS.len()], ..Heard::default() },
            flights: Flights::default(),
            tickets: Tickets::default(),
            answered: Vec::new(),
            recording,
            orders: Orders::default(),
            programs: None,
            lateness: Histogram::default(),
            size: settings.user_bytes(),
            read_only,
            broken: false,
        }
    }

    /// Moves the clients with unsent replies into `emptied`, so that they can be told to send: see [`Sink::kick`].
    pub fn take_answered(&mut self, emptied: &mut Vec<Arc<dyn Sink>>) {
        debug_assert!(emptied.is_empty());
        std::mem::swap(&mut self.answered, emptied);
    }

    /// Whether requests are in flight.
    pub fn is_busy(&self) -> bool {
        !self.tickets.is_empty()
    }

    /// Takes a client's request, which arrives in the simulation at the next [`Engine::go`].
    pub fn ask(&mut self, asked: &Asked) {
        let Request { command, flags, offset, length, .. } = asked.request;
        let end = offset.checked_add(length).filter(|&end| end <= self.size);
        let writes = matches!(command, Command::Write | Command::Trim | Command::WriteZeroes);
        let ranged = !matches!(command, Command::Flush | Command::Disconnect | Command::Unknown(_));
        if self.is_off() {
            return asked.sink.lose();
        }
        let changes = writes || command == Command::Flush;
        let refused = match command {
            Command::Unknown(_) => Some(Errno::Inval),
            command if flags.foreign(command) => Some(Errno::Inval),
            // Both fields are reserved: a flush covers the whole device.
            Command::Flush if offset != 0 || length != 0 => Some(Errno::Inval),
            _ if writes && self.read_only => Some(Errno::Perm),
            _ if ranged && end.is_none() => {
                Some(if matches!(command, Command::Write | Command::WriteZeroes) {
                    Errno::NoSpace
                } else {
                    Errno::Inval
                })
            }
            Command::Read if length > MAX_PAYLOAD.into() => Some(Errno::Overflow),
            // An answer must have at least one extent, and a query of no bytes would have none.
            Command::BlockStatus if length == 0 => Some(Errno::Inval),
            Command::WriteZeroes if flags.fast_zero() && !self.trims(&asked.request) => Some(Errno::NotSup),
            // What is written is one request of the simulation.
            Command::WriteZeroes if flags.no_hole() && length > u32::MAX.into() => Some(Errno::Overflow),
            _ if self.broken => Some(Errno::Io),
            _ if writes && self.orders.fail_write(offset, length) => Some(Errno::Io),
            _ if changes && self.is_full() => Some(Errno::NoSpace),
            _ => None,
        };
        if let Some(error) = refused {
            return refuse(asked, error);
        }
        if changes && self.is_cut_here() {
            return asked.sink.lose();
        }
        match command {
            Command::BlockStatus => asked.sink.put(self.block_status(asked), asked.charged),
            Command::Cache => done(asked),
            _ if length == 0 && ranged => {
                let empty = || reply::read(asked.to(), 0).0;
                if command == Command::Read { asked.sink.put(empty(), asked.charged) } else { done(asked) }
            }
            _ => self.submit(asked),
        }
    }

    /// Hands a request over to the simulation.
    fn submit(&mut self, asked: &Asked) {
        let Request { command, flags, offset, length, .. } = asked.request;
        let (reply, data_at) = match command {
            Command::Read => reply::read(asked.to(), length as u32),
            _ => (Vec::new(), 0),
        };
        let ticket = self.tickets.open(Ticket {
            sink: asked.sink.clone(),
            to: asked.to(),
            charged: asked.charged,
            stream: asked.stream,
            origin: Origin {
                program: asked.program,
                operation: operation(command),
                arrival_ns: self.simulation.now_ns() + 1,
                range: (offset, length),
            },
            reads: command == Command::Read,
            reply,
            data_at,
            parts: 0,
            failed: false,
            flush: false,
        });
        let end = offset + length;
        let fua = flags.fua();
        match command {
            Command::Read => self.enter(ticket, Op::Read, (offset, end), None, false),
            Command::Write => {
                let data: Arc<[u8]> = asked.data.into();
                self.enter(ticket, Op::Write, (offset, end), Some(data), fua);
            }
            Command::WriteZeroes if flags.no_hole() => {
                self.enter(ticket, Op::Write, (offset, end), Some(Arc::default()), fua);
            }
            Command::WriteZeroes => self.zero(ticket, offset, end),
            Command::Trim => self.trim(ticket, offset, end),
            _ => self.enter(ticket, Op::Flush, (0, 0), None, false),
        }
        // Only a write carries FUA itself; the other commands are followed by a flush.
        self.tickets[ticket].flush =
            fua && (command == Command::Trim || (command == Command::WriteZeroes && !flags.no_hole()));
    }

    /// Makes one submission of a request. What comes in at time t, after the decisions at t, arrives at t + 1, so
    /// that a replay of the recording makes the same decisions.
    fn enter(
        &mut self,
        ticket: usize,
        op: Op,
        (offset, end): (u64, u64),
        data: Option<Arc<[u8]>>,
        fua: bool,
    ) {
        let (time_ns, stream) = (self.simulation.now_ns() + 1, self.tickets[ticket].stream);
        let flags = if fua { Record::FUA } else { 0 };
        let record = Record { time_ns, op, offset, size: end - offset, flags, stream, ..Record::FLUSH };
        match self.simulation.submit(record) {
            Ok(number) => {
                if let Some(recording) = &mut self.recording {
                    recording.push(number, &record, self.tickets.count());
                }
                self.tickets[ticket].parts += 1;
                self.note_change(number, &record, data.as_ref());
                self.flights.begin(number, Flight { ticket, op, offset, end, data });
            }
            // The range was checked before, so this means that simulated time has reached its end.
            Err(_) => self.tickets[ticket].failed = true,
        }
    }

    /// Advances simulated time to what the wall clock says; must be called before requests are taken.
    ///
    /// # Errors
    /// The simulation's error; the engine can then no longer be used.
    pub fn catch_up(&mut self) -> Result<(), RunError> {
        match self.pace.simulated_ns(Instant::now()) {
            Some(now_ns) if now_ns > self.simulation.now_ns() => self.advance(now_ns),
            _ => Ok(()),
        }
    }

    /// Lets the requests taken so far arrive and, if time is free, complete.
    ///
    /// # Errors
    /// Those of [`Engine::catch_up`].
    pub fn go(&mut self) -> Result<(), RunError> {
        if !self.is_busy() {
            return Ok(());
        }
        self.advance(self.simulation.now_ns() + 1)?;
        while self.pace.time() == Time::Free && self.is_busy() {
            let next_ns = self.simulation.next_event_ns();
            self.advance(next_ns.unwrap_or(self.simulation.now_ns() + 1))?;
        }
        Ok(())
    }

    /// Returns the moment, by the wall clock, at which the simulation's next event is due; `None` if there is none.
    pub fn due(&self) -> Option<Instant> {
        self.simulation.next_event_ns().and_then(|at_ns| self.pace.moment(at_ns))
    }

    /// Lets all requests complete, whatever the wall clock says.
    ///
    /// # Errors
    /// Those of [`Engine::catch_up`].
    pub fn drain(&mut self) -> Result<(), RunError> {
        while self.is_busy() {
            self.run(|simulation, heard| simulation.run_until_idle(heard))?;
        }
        if self.is_off() {
            return Ok(());
        }
        self.run(|simulation, heard| simulation.run_until_idle(heard))
    }

    fn advance(&mut self, until_ns: u64) -> Result<(), RunError> {
        self.run(|simulation, heard| simulation.advance(until_ns, heard))
    }

    /// Advances the simulation with `how`, then moves the bytes and passes on the replies.
    fn run(
        &mut self,
        how: impl FnOnce(&mut Simulation<'static>, &mut Heard) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if self.is_off() {
            return Ok(());
        }
        let since_ns = self.simulation.now_ns();
        let outcome = how(&mut self.simulation, &mut self.heard);
        self.follow_moves();
        let cut_ns = self.follow_flash(since_ns);
        let mut heard = std::mem::take(&mut self.heard);
        for (number, failed, at_ns) in heard.answers.drain(..) {
            if cut_ns.is_none_or(|cut_ns| at_ns < cut_ns) {
                self.arrived(number, failed, at_ns);
            }
        }
        if cut_ns.is_some() {
            self.give_up();
        }
        heard.ended.drain(..).for_each(|request| self.flights.forget(request));
        self.heard = heard;
        if let Err(error) = outcome {
            self.broken = true;
            let lost: Vec<Ticket> = self.tickets.drain().collect();
            lost.into_iter().for_each(|ticket| self.answer(ticket, true));
            return Err(error);
        }
        Ok(())
    }

    /// Moves the bytes the way the FTL moved the pages.
    fn follow_moves(&mut self) {
        self.moves.take(&mut self.taken);
        self.flights.follow(&self.taken, &mut self.payload, &mut self.tickets);
    }

    fn answer(&mut self, ticket: Ticket, broken: bool) {
        let sink = ticket.answer(broken);
        if !self.answered.iter().any(|other| Arc::ptr_eq(other, &sink)) {
            self.answered.push(sink);
        }
    }

    /// Notes when a submission has completed.
    fn arrived(&mut self, number: u64, failed: bool, at_ns: u64) {
        self.recording.iter_mut().for_each(|recording| recording.complete(number, at_ns));
        let flight = self.flights.end(number);
        let full = self.supply.as_ref().is_some_and(Supply::is_full) && flight.op != Op::Read;
        let bad = self.orders.fails(flight.op, flight.offset..flight.end);
        self.note_end(number, failed || full || bad, at_ns);
        let ticket = &mut self.tickets[flight.ticket];
        ticket.parts -= 1;
        ticket.failed |= failed || full || bad;
        if ticket.parts > 0 {
            return;
        }
        if std::mem::take(&mut ticket.flush) && !ticket.failed {
            if self.is_off() {
                return;
            }
            return self.enter(flight.ticket, Op::Flush, (0, 0), None, false);
        }
        let ticket = self.tickets.close(flight.ticket);
        if let Some(programs) = self.programs.as_mut().filter(|_| !ticket.failed) {
            programs.add(ticket.origin, at_ns);
        }
        self.answer(ticket, false);
        if let Some(due) = self.pace.moment(at_ns) {
            let late = Instant::now().saturating_duration_since(due);
            self.lateness.add(late.as_nanos() as u64);
        }
    }
}
