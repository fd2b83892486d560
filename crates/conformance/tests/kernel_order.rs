//! The schedulers that Linux has, compared with the order in which a kernel's own dispatched.
//!
//! A recording has the scheduler and its settings in its first line, then the events of the kernel, one a line, with
//! the time in us and the kernel's ticks of 4 ms: `I` a request enters (operation, sector, sectors, stream), `A` the
//! scheduler is asked and answers with the request at a sector, or with none (`-`), `D` the device begins a request,
//! `C` it ends one, `T` the timer of kyber expires. `tests/order` has the beginnings of such recordings. `make
//! kernel-order` records whole ones in a guest and compares them (`FTLAB_KERNEL_ORDER=FOLDER`).

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ftlab_core::host::sched::{Around, Decision, Keys, Sched};
use ftlab_core::request::{Pages, Pool, Request};
use ftlab_core::workload::Op;

const TICK_NS: u64 = 4_000_000;
const SECTOR: u64 = 512;

/// Surroundings that have only a clock.
struct Clock(u64);

impl Around for Clock {
    fn pages_of(&self, _block: u32) -> Range<u32> {
        0..0
    }

    fn query(&self, _first: u32, _pages: u32, _set: &mut Vec<u32>) {}

    fn join(&mut self, _block: u32, _pool: &mut Pool, _found: &mut Vec<u32>) {}

    fn now_ns(&self) -> u64 {
        self.0
    }

    fn pad(&mut self, _op: Op, _pages: Range<u32>, _pool: &mut Pool) -> u32 {
        panic!("the schedulers of Linux pad nothing")
    }
}

/// Returns the scheduler of a first line with its settings, and whether its clock is the kernel's ticks.
fn scheduler(line: &str) -> (Sched, bool) {
    let mut keys = Keys::default();
    let (name, settings) = line.split_once(' ').expect("a name and settings");
    for setting in settings.split_whitespace() {
        let (option, value) = setting.split_once('=').expect("option=value");
        let whole = || value.parse::<u64>().expect("a number");
        match option {
            "read_expire" => keys.own.mq_deadline.read_expire_ns = whole() * 1_000_000,
            "write_expire" => keys.own.mq_deadline.write_expire_ns = whole() * 1_000_000,
            "read_lat_nsec" => keys.own.kyber.read_lat_ns = whole(),
            "write_lat_nsec" => keys.own.kyber.write_lat_ns = whole(),
            "slice_idle" => keys.own.bfq.slice_idle_ns = whole() * 1_000_000,
            "low_latency" => assert_eq!(whole(), 0, "low_latency is left out"),
            "weights" => {
                keys.weights.0 = value.split(',').map(|weight| weight.parse().expect("a weight")).collect();
            }
            other => panic!("{other} is not compared"),
        }
    }
    (Sched::new(name, &keys, 64), name == "mq-deadline")
}

/// What a comparison found.
#[derive(Debug, Default, PartialEq)]
struct Found {
    /// Number of the kernel's answers, and how many of ftlab's are the same, place by place.
    answers: usize,
    same: usize,
    /// Places where one of the two answered with no request and the other did not.
    rests: usize,
    /// The first place with another answer.
    first: Option<String>,
}

/// A scheduler of ftlab that is asked as the kernel's was.
struct Replay {
    scheduler: Sched,
    pool: Pool,
    /// Requests that ftlab answered with and that did not begin, and those that began and did not end.
    answered: VecDeque<u32>,
    begun: VecDeque<u32>,
    entered: u64,
}

impl Replay {
    fn enter(&mut self, now_ns: u64, words: &[&str]) {
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let (op, offset) = (if words[0] == "R" { Op::Read } else { Op::Write }, number(1) * SECTOR);
        let pages =
            Pages { first: (offset / 4096) as u32, pages: 1, stream: number(3) as u16, ..Pages::NONE };
        self.entered += 1;
        let request = Request::new(self.entered, now_ns, op, offset, number(2) * SECTOR, pages);
        let id = self.pool.insert(request);
        self.scheduler.admit(id, &mut self.pool);
    }

    /// Returns the sector of the scheduler's answer, or `-`.
    fn ask(&mut self, now_ns: u64) -> String {
        match self.scheduler.choose(&mut self.pool, &mut Clock(now_ns)) {
            Decision::One(id) => {
                self.answered.push_back(id);
                (self.pool[id].offset / SECTOR).to_string()
            }
            Decision::Nothing => "-".to_owned(),
            Decision::Batch(_) => panic!("the schedulers of Linux make no batches"),
        }
    }

    /// Lets the device begin the request that ftlab answered with first, as it begins requests in that order.
    fn begin(&mut self, now_ns: u64) {
        let Some(id) = self.answered.pop_front() else { return };
        self.pool[id].dispatch_ns = now_ns;
        self.begun.push_back(id);
    }

    fn end(&mut self, now_ns: u64) {
        let Some(id) = self.begun.pop_front() else { return };
        self.scheduler.completed(id, now_ns, &self.pool);
        self.pool.release(id);
    }
}

/// Compares ftlab's scheduler with the kernel's in a recording.
fn compare(recording: &str) -> Found {
    let mut lines = recording.lines();
    let (scheduler, ticks) = scheduler(lines.next().expect("a first line"));
    let mut replay = Replay {
        scheduler,
        pool: Pool::default(),
        answered: VecDeque::new(),
        begun: VecDeque::new(),
        entered: 0,
    };
    let (mut found, mut began) = (Found::default(), None);
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (us, tick) = (words[1].parse::<u64>().expect("us"), words[2].parse::<u64>().expect("ticks"));
        let (us_before, tick_before) = *began.get_or_insert((us, tick));
        let now_ns = if ticks { (tick - tick_before) * TICK_NS } else { (us - us_before) * 1000 };
        match words[0] {
            "I" => replay.enter(now_ns, &words[3..]),
            "D" => replay.begin(now_ns),
            "C" => replay.end(now_ns),
            "T" => {}
            _ => {
                let answer = replay.ask(now_ns);
                if words[3] != "-" || answer != "-" {
                    found.answers += 1;
                    found.same += usize::from(answer == words[3]);
                    found.rests += usize::from(answer != words[3] && (answer == "-" || words[3] == "-"));
                }
                if answer != words[3] && found.first.is_none() {
                    found.first = Some(format!("{line}: ftlab answers {answer}"));
                }
            }
        }
        replay.scheduler.verify(&replay.pool).expect("the scheduler is consistent");
    }
    found
}

/// Returns the recordings in a folder, in the order of their names.
fn recordings(folder: &Path) -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder).expect("a folder of recordings");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "order"));
    paths.sort();
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = |path: &Path| std::fs::read_to_string(path).expect("a recording");
    paths.iter().map(|path| (name(path), text(path))).collect()
}

#[test]
fn schedulers_dispatch_as_those_of_a_kernel() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/order");
    let recordings = recordings(&folder);
    assert_eq!(recordings.len(), 3, "{}", folder.display());
    for (name, recording) in recordings {
        let found = compare(&recording);
        assert!(found.answers >= 500, "{name}: {found:?}");
        assert_eq!((found.same, found.first), (found.answers, None), "{name}");
    }
}

#[test]
fn another_order_is_noticed() {
    let recording =
        "mq-deadline read_expire=100\nI 0 0 R 80 8 0\nI 1 0 R 8 8 0\nA 2 0 80\nA 3 0 8\nA 4 0 -\n";
    let found = compare(recording);
    assert_eq!((found.answers, found.same, found.rests), (2, 0, 0));
    let same = compare(&recording.replace("A 2 0 80\nA 3 0 8", "A 2 0 8\nA 3 0 80"));
    assert_eq!(same, Found { answers: 2, same: 2, ..Found::default() });
}

/// The long form: `make kernel-order`.
#[test]
fn whole_recordings() {
    let Some(folder) = std::env::var_os("FTLAB_KERNEL_ORDER") else {
        println!("FTLAB_KERNEL_ORDER names no folder of recordings, so none is compared");
        return;
    };
    for (name, recording) in recordings(Path::new(&folder)) {
        let Found { answers, same, rests, first } = compare(&recording);
        let first = first.unwrap_or_else(|| "none".to_owned());
        println!("{name}: {same} of {answers} answers are the kernel's; rests {rests}; first other: {first}");
    }
}
