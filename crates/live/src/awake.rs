//! Keeps awake the processors that a client and its connection leave free.
//!
//! When a client waits for each reply, the client and the connection that answers it wake each other. They are fastest
//! on one processor. But the system moves each thread that wakes to a free processor, and a halted processor takes 40
//! us to wake. While such a client is served, threads of the lowest priority keep every other processor busy; they
//! give way to any other work.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread, available_parallelism, park, spawn};
use std::time::{Duration, Instant};

/// Upper bound on the number of processors of a machine on which processors are kept awake; on a larger machine, this
/// would occupy too many of them.
const MOST_PROCESSORS: usize = 4;
/// How long processors are kept awake after a message, and how soon the next message must come to count as prompt.
pub const HOLD: Duration = Duration::from_millis(1);
/// The nice value of the lowest priority.
const NICE: i32 = 19;

/// How often it is judged whether staying awake helps.
pub const JUDGE: Duration = Duration::from_millis(250);
/// Least time in which requests were under way from which anything is judged.
const ENOUGH: Duration = Duration::from_millis(10);
/// Share of that time above which threads waited too long for a processor: staying awake may then be the cause, as the
/// system makes threads wait that have used up their turn.
const TOO_LONG: f64 = 0.1;
/// How many times less threads have to wait asleep than awake, for sleep to be worth that replies come later.
const WORTH: f64 = 2.0;
/// How long the outcome of a trial stands: at first, and at most, as it doubles with each trial of sleep in vain.
const REST: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(16);

/// How threads wait for events that are due and for clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Awake as long as the threads get the processors, asleep otherwise.
    #[default]
    Auto,
    /// Awake shortly before an event is due, and between the messages of a prompt client.
    Awake,
    /// Asleep.
    Sleep,
}

impl Wait {
    /// Returns the way to wait of this name: `auto`, `awake` or `sleep`.
    pub fn named(name: &str) -> Option<Wait> {
        [("auto", Wait::Auto), ("awake", Wait::Awake), ("sleep", Wait::Sleep)]
            .into_iter()
            .find_map(|(known, wait)| (known == name).then_some(wait))
    }
}

/// Whether staying awake helps, as far as sleep was tried.
#[derive(Debug)]
struct Judgement {
    /// What the threads had waited, and how long requests had been under way, at the last judgement; ns.
    before: (u64, u64),
    /// While sleep is tried: the share of the time that threads waited awake.
    awake: Option<f64>,
    /// When to try the other way.
    again: Instant,
    rest: Duration,
}

/// The threads that keep processors awake, and the time until which they do so.
pub struct Awake {
    wait: Wait,
    /// Whether threads may stay awake.
    allowed: AtomicBool,
    judgement: Mutex<Judgement>,
    start: Instant,
    /// When the threads go back to sleep, ns since `start`.
    until_ns: AtomicU64,
    threads: OnceLock<Vec<Thread>>,
    ended: AtomicBool,
}

impl Awake {
    /// Makes an object that keeps no processor awake yet.
    pub fn new(wait: Wait) -> Awake {
        let start = Instant::now();
        Awake {
            wait,
            allowed: AtomicBool::new(wait != Wait::Sleep),
            judgement: Mutex::new(Judgement {
                before: (0, 0),
                awake: None,
                again: start,
                rest: *REST.start(),
            }),
            start,
            until_ns: AtomicU64::new(0),
            threads: OnceLock::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// Whether threads may stay awake.
    pub fn is_allowed(&self) -> bool {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Whether it has to be judged whether staying awake helps.
    pub fn is_judged(&self) -> bool {
        self.wait == Wait::Auto
    }

    /// Judges whether staying awake helps, from what the threads have waited for a processor and how long requests have
    /// been under way so far, both ns. Where threads wait too long, sleep is tried, and kept for a while if it helps.
    pub fn judge(&self, waited_ns: u64, served_ns: u64, now: Instant) {
        let mut judgement = self.judgement.lock().expect("no panic while it is judged");
        let (waited, served) = (waited_ns - judgement.before.0, served_ns - judgement.before.1);
        if served < ENOUGH.as_nanos() as u64 {
            return;
        }
        judgement.before = (waited_ns, served_ns);
        let share = waited as f64 / served as f64;
        let allowed = match judgement.awake.take() {
            Some(awake) => {
                let helps = WORTH * share <= awake;
                judgement.rest = if helps { *REST.start() } else { judgement.rest };
                judgement.again = now + judgement.rest;
                judgement.rest = (2 * judgement.rest).min(*REST.end());
                !helps
            }
            None if !self.is_allowed() => now >= judgement.again,
            None if share > TOO_LONG && now >= judgement.again => {
                judgement.awake = Some(share);
                false
            }
            None => true,
        };
        self.allowed.store(allowed, Ordering::Relaxed);
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Keeps the other processors awake for [`HOLD`]; returns false if there are no others, or too many of them, or
    /// threads are to sleep.
    pub fn keep(&self) -> bool {
        if !self.is_allowed() {
            return false;
        }
        let now_ns = self.now_ns();
        if self.until_ns.fetch_max(now_ns + HOLD.as_nanos() as u64, Ordering::Relaxed) <= now_ns {
            self.wake();
        }
        self.threads.get().is_some_and(|threads| !threads.is_empty())
    }

    /// Ends the threads.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Wakes the threads, so that each of them checks whether it has to stay awake or to end.
    fn wake(&self) {
        self.threads.get().into_iter().flatten().for_each(Thread::unpark);
    }

    /// Starts a thread for each processor except one.
    pub fn start(self: &Arc<Awake>) -> Vec<JoinHandle<()>> {
        let processors = available_parallelism().map_or(1, usize::from);
        let none = processors > MOST_PROCESSORS || self.wait == Wait::Sleep;
        let count = if none { 0 } else { processors - 1 };
        let threads = (0..count).map(|_| {
            let awake = self.clone();
            spawn(move || awake.run())
        });
        let threads: Vec<JoinHandle<()>> = threads.collect();
        self.threads.get_or_init(|| threads.iter().map(|thread| thread.thread().clone()).collect());
        threads
    }

    fn run(&self) {
        // If the priority cannot be set, the system still shares the processors fairly.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        while !self.ended.load(Ordering::Relaxed) {
            park();
            while self.now_ns() < self.until_ns.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where threads wait more than a tenth of the time, sleep is tried; it is kept for a while if they then wait half
    /// as long, and tried ever less often if they do not.
    #[test]
    fn sleep_is_tried_and_kept_if_it_helps() {
        let awake = Awake::new(Wait::Auto);
        let second = Duration::from_secs(1);
        let mut now = awake.start;
        let (mut waited, mut served) = (0, 0);
        let mut judge = |more_ms: u64, after: Duration| {
            now += after;
            (waited, served) = (waited + 1_000_000 * more_ms, served + 1_000_000_000);
            awake.judge(waited, served, now);
            awake.is_allowed()
        };
        assert!(judge(100, second), "a tenth");
        assert!(!judge(400, second), "more: sleep is tried");
        assert!(judge(201, second), "not half: in vain");
        assert!(judge(400, second / 2), "not tried again so soon");
        assert!(!judge(400, second / 2), "tried again after a second");
        assert!(judge(400, second), "in vain");
        assert!(judge(400, second), "tried again only after two");
        assert!(!judge(400, second));
        assert!(!judge(200, second), "half: it helps");
        assert!(!judge(900, second / 2), "kept for a second, whatever happens meanwhile");
        assert!(judge(200, second / 2), "then awake, to compare again");
        assert!(!judge(400, second), "sleep is tried again");
        let fixed = Awake::new(Wait::Awake);
        assert!(fixed.is_allowed() && !fixed.is_judged() && !Awake::new(Wait::Sleep).is_allowed());
    }

    /// Little that was served says nothing, and is kept for the next judgement.
    #[test]
    fn little_says_nothing() {
        let awake = Awake::new(Wait::Auto);
        awake.judge(9_000_000, 9_000_000, awake.start);
        assert!(awake.is_allowed());
        awake.judge(9_000_000, 10_000_000, awake.start);
        assert!(!awake.is_allowed());
    }
}
