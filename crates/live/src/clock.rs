//! Which thread wakes when an event is due.
//!
//! The clock's thread can always wake for the event. It is better if a connection that waits for its client does so:
//! the reply then needs no other thread and wakes the client from the processor that both used last. Only one
//! connection at a time keeps the time in this way, with the clock's thread as a backup.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::{Duration, Instant};

use crate::awake::Awake;
use crate::engine::Engine;

/// How a thread waits for the time at which an event is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Asleep until then.
    Asleep,
    /// It wakes somewhat earlier, and polls.
    Awake,
    /// The same, while other processors are kept awake.
    AmongAwake,
}

impl Waiting {
    /// Returns how long before the due time a thread stops sleeping, if `left` is left.
    pub fn early(self, left: Duration) -> Duration {
        match self {
            Waiting::Asleep => Duration::ZERO,
            // A thread that never slept would occupy the processor that its client used last and on which the client
            // should be woken.
            Waiting::Awake => SPIN.min(left / 2),
            Waiting::AmongAwake => SPIN_AMONG_AWAKE.min(left),
        }
    }
}

/// How long before the due time a thread stops sleeping and polls the clock instead. Even if a halted processor has to
/// be woken, 99 % of wake-ups take no longer than this.
const SPIN: Duration = Duration::from_micros(150);
/// If other processors are kept awake, polling begins this long before an event is due: it then takes no processor away
/// from other threads.
const SPIN_AMONG_AWAKE: Duration = Duration::from_micros(500);
/// The clock's thread, as a backup, wakes this much later than the connection that keeps the time.
const RESERVE: Duration = Duration::from_millis(2);
/// How often a thread that waits for a client checks whether it should keep waiting.
pub const LOOK: Duration = Duration::from_millis(500);
/// Marks that no connection keeps the time.
const NOBODY: u64 = u64::MAX;

/// The times at which the threads that keep the time wake, ns since `start`. `wakes_ns` and `kept_ns` change only
/// while the engine is locked; but the clock's thread sets `wakes_ns` to 0 as it wakes, before it looks at the engine.
pub struct Clock {
    awake: Arc<Awake>,
    start: Instant,
    /// The clock's thread sleeps on this.
    changed: Condvar,
    /// When the clock's thread wakes on its own; 0 while it is awake.
    wakes_ns: AtomicU64,
    /// When the connection that keeps the time wakes, or [`NOBODY`].
    kept_ns: AtomicU64,
}

impl Clock {
    /// Makes a clock with nothing due; `awake` says whether threads may stay awake.
    pub fn new(awake: Arc<Awake>) -> Clock {
        let (wakes_ns, kept_ns) = (AtomicU64::new(0), AtomicU64::new(NOBODY));
        Clock { awake, start: Instant::now(), changed: Condvar::new(), wakes_ns, kept_ns }
    }

    fn ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_nanos() as u64
    }

    /// Returns when the clock's thread should wake for an event that is due at `due`.
    pub fn wake_for(&self, due: Instant) -> Instant {
        let kept = self.kept_ns.load(Ordering::Relaxed) <= self.ns(due);
        match kept {
            true => due + RESERVE,
            false if self.awake.is_allowed() => due - SPIN,
            false => due,
        }
    }

    /// Wakes the clock's thread if it would otherwise sleep past the time at which it should wake for `due`.
    pub fn look_at(&self, due: Option<Instant>) {
        if due.is_some_and(|due| self.ns(self.wake_for(due)) < self.wakes_ns.load(Ordering::Relaxed)) {
            self.wake();
        }
    }

    /// Wakes the clock's thread.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Makes a connection keep the time until `due`, unless another connection already does; if `due` is `None`, the
    /// connection stops keeping it. `kept` is the moment at which the connection wakes.
    pub fn keep(&self, kept: &mut Option<Instant>, due: Option<Instant>) {
        let due = due.filter(|due| *due < Instant::now() + LOOK);
        let (now_ns, next_ns) = (kept.map_or(NOBODY, |at| self.ns(at)), due.map_or(NOBODY, |at| self.ns(at)));
        let done = self.kept_ns.compare_exchange(now_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed);
        *kept = due.filter(|_| done.is_ok());
    }

    /// Sleeps for `left` or until woken; the engine is not locked meanwhile.
    pub fn sleep(&self, engine: MutexGuard<'_, Engine>, left: Duration) {
        self.wakes_ns.store(self.ns(Instant::now() + left), Ordering::Relaxed);
        drop(self.changed.wait_timeout(engine, left).expect("no panic in the engine"));
        self.wakes_ns.store(0, Ordering::Relaxed);
    }
}

/// Lets the thread sleep precisely: the system may otherwise wake it 50 us late.
pub fn sleep_exactly() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}
