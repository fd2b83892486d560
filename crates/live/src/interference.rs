//! What other programs on the machine take from the live device: how long its threads waited for a processor.
//!
//! A request that has reached the socket waits for the thread that reads it, which the engine cannot see: it stamps a
//! request when it reads it. The system counts that wait for each thread. Source: Linux's documentation of
//! `/proc/PID/schedstat` (scheduler/sched-stats), `/proc/PID/status` (filesystems/proc) and pressure stall information
//! (accounting/psi).

use std::collections::HashMap;
use std::fs::read_to_string;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::thread::gettid;

/// What the system has counted for threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Time in which a thread could have run and had no processor, ns; `None` if the system does not count it.
    pub wait_ns: Option<u64>,
    /// Number of times that a thread had to leave its processor.
    pub involuntary_switches: u64,
}

impl Waited {
    /// Reads what was counted for a thread of this process; `None` if it has ended.
    fn of(thread: i32) -> Option<Waited> {
        let task = format!("/proc/self/task/{thread}");
        let status = read_to_string(format!("{task}/status")).ok()?;
        let wait_ns = read_to_string(format!("{task}/schedstat")).ok().and_then(|text| wait_ns(&text));
        Some(Waited { wait_ns, involuntary_switches: involuntary_switches(&status)? })
    }

    fn and(self, other: Waited) -> Waited {
        Waited {
            wait_ns: self.wait_ns.zip(other.wait_ns).map(|(own, other)| own + other),
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }

    fn since(self, before: Waited) -> Waited {
        Waited {
            wait_ns: self.wait_ns.zip(before.wait_ns).map(|(now, before)| now.saturating_sub(before)),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
        }
    }
}

/// Returns the time that a thread waited for a processor, from the text of its `schedstat`: time on a processor, time
/// in which it waited for one, both ns, and the number of its turns.
fn wait_ns(schedstat: &str) -> Option<u64> {
    let numbers: Vec<&str> = schedstat.split_whitespace().collect();
    let [_, wait, _] = numbers[..] else { return None };
    wait.parse().ok()
}

/// Returns how often a thread had to leave its processor, from the text of its `status`.
fn involuntary_switches(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// Returns the time in which some task of the machine waited for a processor, from the text of `/proc/pressure/cpu`.
fn stalled(pressure: &str) -> Option<Duration> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    let total = line.split(' ').find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

fn stalled_now() -> Option<Duration> {
    stalled(&read_to_string("/proc/pressure/cpu").ok()?)
}

/// How much the live device was interfered with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interference {
    /// Wall time in which requests of clients were under way, ns.
    pub served_ns: u64,
    /// What was counted for the threads that serve clients and keep the time.
    pub waited: Waited,
    /// Share of the wall time in which some task of the machine waited for a processor; `None` if the system does not
    /// say.
    pub pressure: Option<f64>,
}

/// The threads that serve clients and keep the time, and what was counted for them.
#[derive(Debug)]
pub struct Serving {
    since: Instant,
    stalled: Option<Duration>,
    threads: Mutex<Threads>,
}

#[derive(Debug)]
struct Threads {
    /// What the system had counted for each thread when it was looked at last.
    joined: HashMap<i32, Waited>,
    /// The sum of what was counted while threads were joined.
    sum: Waited,
}

impl Threads {
    /// Adds what was counted for a thread since it was looked at last; a thread that has ended adds nothing.
    fn settle(&mut self, thread: i32) {
        if let (Some(now), Some(before)) = (Waited::of(thread), self.joined.get_mut(&thread)) {
            self.sum = self.sum.and(now.since(*before));
            *before = now;
        }
    }
}

impl Serving {
    /// Begins to count.
    pub fn new() -> Serving {
        let sum = Waited { wait_ns: Some(0), involuntary_switches: 0 };
        let threads = Mutex::new(Threads { joined: HashMap::new(), sum });
        Serving { since: Instant::now(), stalled: stalled_now(), threads }
    }

    fn open(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().expect("no panic while threads are listed")
    }

    /// Counts for the calling thread from now on.
    pub fn join(&self) {
        let thread = gettid().as_raw_nonzero().get();
        if let Some(now) = Waited::of(thread) {
            self.open().joined.insert(thread, now);
        }
    }

    /// Counts for the calling thread while it does something.
    pub fn during<T>(&self, what: impl FnOnce() -> T) -> T {
        self.join();
        let outcome = what();
        let thread = gettid().as_raw_nonzero().get();
        let mut threads = self.open();
        threads.settle(thread);
        threads.joined.remove(&thread);
        outcome
    }

    /// Returns how many threads are counted for.
    pub fn threads(&self) -> usize {
        self.open().joined.len()
    }

    /// Returns what was counted so far.
    pub fn waited(&self) -> Waited {
        let mut threads = self.open();
        let joined: Vec<i32> = threads.joined.keys().copied().collect();
        joined.into_iter().for_each(|thread| threads.settle(thread));
        threads.sum
    }

    /// Returns how much the device was interfered with, if requests were under way for `served`.
    pub fn interference(&self, served: Duration) -> Interference {
        let wall = self.since.elapsed().as_secs_f64();
        let stalled = self.stalled.zip(stalled_now()).map(|(before, now)| now.saturating_sub(before));
        Interference {
            served_ns: served.as_nanos() as u64,
            waited: self.waited(),
            pressure: stalled.map(|stalled| (stalled.as_secs_f64() / wall).min(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_texts_are_read() {
        assert_eq!(wait_ns("1234 5678 9\n"), Some(5678));
        assert_eq!(wait_ns("0 0\n"), None);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t42\n";
        assert_eq!(involuntary_switches(status), Some(42));
        let pressure = "some avg10=98.60 avg60=99.01 avg300=95.28 total=1500000\nfull avg10=0.00 total=3\n";
        assert_eq!(stalled(pressure), Some(Duration::from_millis(1500)));
        assert_eq!(stalled("none"), None);
    }

    /// Two threads that want one processor wait for each other; what they waited stays when they have ended, and does
    /// not count after they have left.
    #[test]
    fn threads_wait_for_one_processor() {
        let serving = Serving::new();
        let mut one = rustix::thread::CpuSet::new();
        let all = rustix::thread::sched_getaffinity(None).unwrap();
        one.set((0..).find(|&at| all.is_set(at)).unwrap());
        let spin = |done: &dyn Fn() -> bool| {
            while !done() {
                std::hint::spin_loop();
            }
        };
        let switched = || serving.waited().involuntary_switches > 4;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    rustix::thread::sched_setaffinity(None, &one).unwrap();
                    serving.during(|| spin(&switched));
                });
            }
        });
        let waited = serving.waited();
        assert_eq!(serving.threads(), 0);
        assert!(waited.wait_ns.is_none_or(|ns| ns > 0) && waited.involuntary_switches > 4, "{waited:?}");
        assert_eq!(serving.waited(), waited, "nobody is counted for any more");
    }
}
