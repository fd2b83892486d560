//! Keeps awake the processors that a client and its connection leave free.
//!
//! When a client waits for each reply, the client and the connection that answers it wake each other. They are fastest
//! on one processor. But the system moves each thread that wakes to a free processor, and a halted processor takes 40
//! us to wake. While such a client is served, threads of the lowest priority keep every other processor busy; they
//! give way to any other work.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, Thread, available_parallelism, park, spawn};
use std::time::{Duration, Instant};

/// Upper bound on the number of processors of a machine on which processors are kept awake; on a larger machine, this
/// would occupy too many of them.
const MOST_PROCESSORS: usize = 4;
/// How long processors are kept awake after a message, and how soon the next message must come to count as prompt.
pub const HOLD: Duration = Duration::from_millis(1);
/// The nice value of the lowest priority.
const NICE: i32 = 19;

/// The threads that keep processors awake, and the time until which they do so.
pub struct Awake {
    start: Instant,
    /// When the threads go back to sleep, ns since `start`.
    until_ns: AtomicU64,
    threads: OnceLock<Vec<Thread>>,
    ended: AtomicBool,
}

impl Awake {
    /// Makes an object that keeps no processor awake yet.
    pub fn new() -> Awake {
        let (until_ns, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        Awake { start: Instant::now(), until_ns, threads: OnceLock::new(), ended }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Keeps the other processors awake for [`HOLD`]; returns false if there are no others, or too many of them.
    pub fn keep(&self) -> bool {
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
        let count = if processors > MOST_PROCESSORS { 0 } else { processors - 1 };
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
