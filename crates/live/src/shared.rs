//! What the threads of a server share.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, RunError};

use crate::awake::{Awake, JUDGE};
use crate::clock::{Clock, sleep_exactly};
use crate::engine::{Engine, Live, Sink};
use crate::interference::Serving;
use crate::nbd::Export;
use crate::socket::Stream;

/// How long the clock's thread sleeps while nothing is due.
const IDLE: Duration = Duration::from_secs(1);

/// What all threads share.
pub struct Shared {
    /// The device; see [`Shared::engine`].
    pub engine: Mutex<Engine>,
    /// Which thread wakes for due events.
    pub clock: Clock,
    /// The threads that keep processors awake.
    pub awake: Arc<Awake>,
    /// What the system counts for the threads that serve.
    pub serving: Serving,
    /// Whether a command has asked the device to stop.
    pub asked_to_stop: AtomicBool,
    /// Whether no more clients are accepted.
    pub closing: AtomicBool,
    /// Whether no more requests are accepted, and none is in flight.
    pub stopping: AtomicBool,
    /// Why the simulation can no longer be used, if it cannot.
    pub failed: Mutex<Option<RunError>>,
    /// What is exported.
    pub export: Export,
    /// The settings of the device, and its keys with their values.
    pub device: (Settings, Identity),
    /// How long a client may stay silent within a message, or leave its replies unread.
    pub patience: Duration,
    /// See [`Shared::clients`].
    pub clients: Mutex<Vec<Arc<Stream>>>,
    /// Number of clients served so far.
    pub connections: AtomicU64,
}

impl Shared {
    /// Returns the clients that are connected.
    pub fn clients(&self) -> MutexGuard<'_, Vec<Arc<Stream>>> {
        self.clients.lock().expect("no panic while clients are listed")
    }

    /// Locks and returns the engine.
    pub fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().expect("no panic in the engine")
    }

    /// Returns the result up to now, and the live device's own figures.
    pub fn report(&self) -> (Report, Live) {
        let engine = self.engine();
        let ((report, live), served) = (engine.report(), engine.served());
        drop(engine);
        (report, Live { interference: Some(self.serving.interference(served)), ..live })
    }

    /// Runs `how` on the engine, and collects the clients that then have replies to send; returns false if the engine
    /// can no longer be used.
    pub fn with_engine(
        &self,
        answered: &mut Vec<Arc<dyn Sink>>,
        how: impl FnOnce(&mut Engine) -> Result<(), RunError>,
    ) -> bool {
        let mut engine = self.engine();
        let outcome = how(&mut engine);
        engine.take_answered(answered);
        let (due, off) = (engine.due(), engine.is_off());
        drop(engine);
        if off {
            self.cut_off();
        }
        self.clock.look_at(due);
        outcome.map_err(|error| _ = self.failed().get_or_insert(error)).is_ok()
    }

    /// Disconnects clients and ends the process: power is off.
    fn cut_off(&self) {
        self.asked_to_stop.store(true, Ordering::Relaxed);
        let clients = self.clients.lock().expect("no panic while clients are listed");
        clients.iter().for_each(|stream| stream.shut(Shutdown::Both));
    }

    /// Returns what has ended the simulation, if anything has.
    pub fn failed(&self) -> MutexGuard<'_, Option<RunError>> {
        self.failed.lock().expect("no panic while a failure is noted")
    }

    /// Judges whether staying awake helps. With many threads their counts take long to read, and hardly any stays
    /// awake for one client.
    fn judge(&self, served: Duration, now: Instant) {
        const MOST_THREADS: usize = 32;
        if self.serving.threads() <= MOST_THREADS
            && let Some(waited_ns) = self.serving.waited().wait_ns
        {
            self.awake.judge(waited_ns, served.as_nanos() as u64, now);
        }
    }

    /// Lets due events happen until the server stops; the clock's thread runs this.
    pub fn keep_time(&self) {
        sleep_exactly();
        let mut answered: Vec<Arc<dyn Sink>> = Vec::new();
        let mut judged = Instant::now();
        while !self.stopping.load(Ordering::Relaxed) {
            let engine = self.engine();
            let now = Instant::now();
            let served = engine.served();
            if self.awake.is_judged() && now >= judged + JUDGE {
                judged = now;
                drop(engine);
                self.judge(served, now);
                continue;
            }
            let due = engine.due();
            let wake = due.map_or(now + IDLE, |due| self.clock.wake_for(due));
            if now < wake {
                self.clock.sleep(engine, wake - now);
                continue;
            }
            drop(engine);
            while due.is_some_and(|due| Instant::now() < due) {
                std::hint::spin_loop();
            }
            if !self.with_engine(&mut answered, Engine::catch_up) {
                return;
            }
            answered.drain(..).for_each(|sink| sink.kick());
        }
    }
}
