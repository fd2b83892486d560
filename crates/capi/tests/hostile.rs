//! Hostile use: any call with any arguments returns a code, and nothing ends the process.

#[path = "../../trace/tests/common/campaign.rs"]
mod campaign;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use campaign::campaign;
use ftlab::ftlab_code::{self, *};
use ftlab::*;
use rand::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus as Draw;

const OK: c_int = FTLAB_OK as c_int;
const MORE: c_int = FTLAB_MORE as c_int;
const SMALL: [&str; 4] = [
    "flash.blocks_per_plane=32",
    "flash.pages_per_block=16",
    "ftl.over_provisioning=30%",
    "device.precondition=none",
];

fn open(config: &str, set: &[&str]) -> Result<*mut ftlab_sim, (c_int, String)> {
    let config = CString::new(config).unwrap();
    let texts: Vec<CString> = set.iter().map(|text| CString::new(*text).unwrap()).collect();
    let set: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    let options = ftlab_options { set: set.as_ptr(), set_count: set.len(), load_state: null(), flags: 0 };
    let mut sim = null_mut();
    let code = unsafe { ftlab_open(config.as_ptr(), &options, &mut sim) };
    // The library's hook keeps back the messages of all panics, including this test's, so the default hook is restored.
    static AGAIN: Once = Once::new();
    AGAIN.call_once(|| drop(std::panic::take_hook()));
    match code {
        OK => Ok(sim),
        code => Err((code, error_of(sim))),
    }
}

fn error_of(sim: *const ftlab_sim) -> String {
    unsafe { CStr::from_ptr(ftlab_last_error(sim)) }.to_str().expect("UTF-8").to_owned()
}

fn request(op: u8, at_ns: u64, offset: u64, size: u64) -> ftlab_request {
    ftlab_request { at_ns, offset, size, stream: 0, op: op as c_char, fua: 0 }
}

fn now_ns(sim: *mut ftlab_sim) -> u64 {
    let mut now_ns = 0;
    assert_eq!(unsafe { ftlab_now_ns(sim, &mut now_ns) }, OK);
    now_ns
}

/// Advances time; returns the code and what completed.
fn advance(sim: *mut ftlab_sim, until_ns: Option<u64>, room: usize) -> (c_int, Vec<ftlab_completion>) {
    let (mut done, mut count) = (vec![ftlab_completion::default(); room], usize::MAX);
    let code = match until_ns {
        Some(until_ns) => unsafe { ftlab_advance(sim, until_ns, done.as_mut_ptr(), room, &mut count) },
        None => unsafe { ftlab_drain(sim, done.as_mut_ptr(), room, &mut count) },
    };
    assert!(count <= room);
    done.truncate(count);
    (code, done)
}

fn close(sim: *mut ftlab_sim) {
    assert_eq!(unsafe { ftlab_close(sim) }, OK);
}

#[test]
fn null_where_it_is_not_allowed_is_an_error() {
    const INVALID: c_int = FTLAB_INVALID as c_int;
    let sim = open("map-plus", &SMALL).unwrap();
    let mut other = sim;
    let (mut number, mut text, write) = (0, null(), request(b'W', FTLAB_NOW, 0, 4096));
    unsafe {
        assert_eq!(ftlab_open(null(), null(), &mut other), INVALID);
        assert!(other.is_null() && error_of(null()) == "config is NULL");
        assert_eq!(ftlab_open(c"map-plus".as_ptr(), null(), null_mut()), INVALID);
        let options = ftlab_options { set: null(), set_count: 1, load_state: null(), flags: 0 };
        assert_eq!(ftlab_open(c"map-plus".as_ptr(), &options, &mut other), INVALID);
        let set = [null()];
        let options = ftlab_options { set: set.as_ptr(), ..options };
        assert_eq!(ftlab_open(c"map-plus".as_ptr(), &options, &mut other), INVALID);
        let options = ftlab_options { set_count: 0, flags: 8, ..options };
        assert_eq!(ftlab_open(c"map-plus".as_ptr(), &options, &mut other), INVALID);
        assert_eq!(ftlab_open(c"\xff\xfe".as_ptr(), null(), &mut other), INVALID);

        assert_eq!(ftlab_submit(null_mut(), &write, &mut number), INVALID);
        assert_eq!(ftlab_submit(sim, null(), &mut number), INVALID);
        assert_eq!(error_of(sim), "request is NULL");
        assert_eq!(ftlab_submit_many(sim, null(), 2, &mut number, null_mut()), INVALID);
        assert_eq!(ftlab_submit_many(sim, null(), 0, null_mut(), null_mut()), OK);
        assert_eq!(ftlab_now_ns(sim, null_mut()), INVALID);
        assert_eq!(ftlab_now_ns(null_mut(), &mut number), INVALID);
        assert_eq!(ftlab_next_event_ns(sim, null_mut()), INVALID);
        assert_eq!(ftlab_advance(sim, 5, null_mut(), 1, &mut 0), INVALID);
        assert_eq!(ftlab_advance(sim, 5, &mut ftlab_completion::default(), 1, null_mut()), INVALID);
        assert_eq!(now_ns(sim), 0, "time stands where an argument is wrong");
        assert_eq!(ftlab_advance(sim, 5, null_mut(), 0, null_mut()), OK);
        assert_eq!(ftlab_drain(null_mut(), null_mut(), 0, null_mut()), INVALID);
        assert_eq!(ftlab_result_json(sim, null_mut()), INVALID);
        assert_eq!(ftlab_result_json(null_mut(), &mut text), INVALID);
        assert_eq!(ftlab_cut(null_mut(), 1, null_mut()), INVALID);
        assert_eq!(ftlab_recover(null_mut(), null_mut()), INVALID);
        assert_eq!(ftlab_submit(sim, &write, null_mut()), OK, "nobody has to want the number");
        assert_eq!(ftlab_close(null_mut()), OK);
    }
    close(sim);
}

#[test]
fn what_is_wrong_has_a_code_and_a_text_and_changes_nothing() {
    let (code, text) = open("map-minus", &[]).unwrap_err();
    assert!(code == FTLAB_CONFIG as c_int && text.contains("map-plus"), "{text}");
    let (code, text) = open("map-plus", &["host.schduler=noop"]).unwrap_err();
    assert!(code == FTLAB_CONFIG as c_int && text.contains("host.scheduler"), "{text}");
    assert_eq!(open("map-plus", &["noop"]).unwrap_err().0, FTLAB_INVALID as c_int);
    let sim = open("map-plus", &SMALL).unwrap();
    let rows = [
        (request(b'X', FTLAB_NOW, 0, 512), FTLAB_INVALID),
        (request(0, FTLAB_NOW, 0, 512), FTLAB_INVALID),
        (ftlab_request { stream: 65536, ..request(b'W', FTLAB_NOW, 0, 512) }, FTLAB_INVALID),
        (request(b'R', FTLAB_NOW, 0, 0), FTLAB_RANGE),
        (request(b'W', FTLAB_NOW, u64::MAX, 2), FTLAB_RANGE),
        (request(b'T', FTLAB_NOW, 0, u64::MAX), FTLAB_RANGE),
        (request(b'R', u64::MAX - 1, 0, 512), FTLAB_TIME),
    ];
    for (row, code) in rows {
        assert_eq!(unsafe { ftlab_submit(sim, &row, null_mut()) }, code as c_int, "{}", error_of(sim));
    }
    assert_eq!(advance(sim, Some(1000), 4), (OK, vec![]));
    assert_eq!(advance(sim, Some(999), 4).0, FTLAB_TIME as c_int);
    let many = [request(b'W', 2000, 0, 512), request(b'W', 1999, 0, 512), request(b'W', 2000, 0, 512)];
    let (mut first, mut taken) = (0, 0);
    let code = unsafe { ftlab_submit_many(sim, many.as_ptr(), 3, &mut first, &mut taken) };
    assert_eq!((code, first, taken), (FTLAB_TIME as c_int, 1, 1), "those before the wrong one are in");
    assert!(error_of(sim).starts_with("row 1: "), "{}", error_of(sim));
    assert_eq!(unsafe { ftlab_cut(sim, 1, null_mut()) }, FTLAB_POWER as c_int);
    assert_eq!(unsafe { ftlab_recover(sim, null_mut()) }, FTLAB_POWER as c_int);
    let (code, done) = advance(sim, None, 4);
    assert_eq!((code, done.len(), done[0].id), (OK, 1, 1));
    close(sim);
    let codes: Vec<c_int> = (-9..3).collect();
    let texts: BTreeSet<_> =
        codes.iter().map(|&code| unsafe { CStr::from_ptr(ftlab_strerror(code)) }).collect();
    assert_eq!(texts.len(), 10, "one for each code, and one for what is none");
    assert!(!unsafe { CStr::from_ptr(ftlab_version()) }.is_empty());
}

/// The result says how many pages of each stream were written.
#[test]
fn a_request_has_the_stream_that_it_was_given() {
    let sim = open("map-plus", &[&SMALL[..], &["ftl.placement=stream", "ftl.fronts=5"]].concat()).unwrap();
    let rows = [0, 3, 3, 65535].map(|stream| ftlab_request { stream, ..request(b'W', FTLAB_NOW, 0, 4096) });
    assert_eq!(unsafe { ftlab_submit_many(sim, rows.as_ptr(), 4, null_mut(), null_mut()) }, OK);
    assert_eq!(advance(sim, None, 4).0, OK);
    let mut text = null();
    assert_eq!(unsafe { ftlab_result_json(sim, &mut text) }, OK);
    let result: serde_json::Value =
        serde_json::from_slice(unsafe { CStr::from_ptr(text) }.to_bytes()).unwrap();
    let written = |stream: usize| &result["placement"]["fronts"][stream]["written"];
    // Stream 65535 has no open block of its own.
    assert_eq!(
        (written(0), written(1), written(3)),
        (&2.into(), &0.into(), &2.into()),
        "{}",
        result["placement"]
    );
    let wrong = ftlab_request { stream: 65536, ..rows[0] };
    assert_eq!(unsafe { ftlab_submit_many(sim, [rows[0], wrong].as_ptr(), 2, null_mut(), null_mut()) }, -2);
    assert!(error_of(sim).starts_with("row 1: stream is 65536"), "{}", error_of(sim));
    close(sim);
}

#[test]
fn a_second_thread_in_one_object_is_told_that_it_is_busy() {
    let sim = open("map-plus", &["flash.blocks_per_plane=512"]).unwrap();
    let mut draw = Draw::seed_from_u64(1);
    let rows: Vec<_> =
        (0..200_000).map(|row| request(b'W', row * 1000, 4096 * draw.random_range(0..8000), 4096)).collect();
    assert_eq!(unsafe { ftlab_submit_many(sim, rows.as_ptr(), rows.len(), null_mut(), null_mut()) }, OK);
    let (address, over) = (sim as usize, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let (sim, mut seen) = (address as *mut ftlab_sim, BTreeSet::new());
            while !over.load(Ordering::Relaxed) {
                seen.insert(unsafe { ftlab_now_ns(sim, &mut 0) });
                seen.insert(unsafe { ftlab_advance(sim, 0, null_mut(), 0, null_mut()) });
                error_of(sim);
            }
            seen
        });
        let mut all = 0;
        loop {
            let (code, done) = advance(sim, None, 50_000);
            all += done.len();
            if code == OK {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(all, rows.len());
        let seen = other.join().unwrap();
        assert!(seen.contains(&(FTLAB_BUSY as c_int)), "{seen:?}");
    });
    close(sim);
}

#[test]
fn after_a_fork_both_go_on_with_one_each() {
    let sim = open("map-plus", &SMALL).unwrap();
    let rows: Vec<_> = (0..100).map(|row| request(b'W', row * 1000, 4096 * (row % 50), 4096)).collect();
    assert_eq!(unsafe { ftlab_submit_many(sim, rows.as_ptr(), rows.len(), null_mut(), null_mut()) }, OK);
    advance(sim, Some(30_000), 100);
    let end = |sim| {
        let (code, done) = advance(sim, None, 100);
        (code == OK).then(|| done.iter().map(|done| done.id * done.complete_ns % 251).sum::<u64>() % 251)
    };
    // SAFETY: the child calls only the library, and exits at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let sum = end(sim).unwrap_or(255);
        unsafe { libc::_exit(sum as c_int) };
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(Some(libc::WEXITSTATUS(status) as u64), end(sim));
    close(sim);
}

/// What a case knows about the object that it mistreats.
struct Case {
    sim: *mut ftlab_sim,
    draw: Draw,
    now_ns: u64,
    submitted: u64,
    open: BTreeSet<u64>,
    /// Requests not known to have completed when the power was cut; completions that were kept may still come.
    lost: BTreeSet<u64>,
    on: bool,
}

impl Case {
    fn odd(&mut self) -> u64 {
        let shift = self.draw.random_range(0..64);
        match self.draw.random_range(0..8) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - 1,
            3 => 1 << shift,
            _ => self.draw.random_range(0..1 << 21),
        }
    }

    fn row(&mut self) -> ftlab_request {
        let op = *b"RRWWWTFX".choose(&mut self.draw).unwrap();
        let at_ns = match self.draw.random_range(0..6) {
            0 => self.odd(),
            1..4 => FTLAB_NOW,
            _ => self.now_ns + self.draw.random_range(0..3_000_000),
        };
        let (offset, size) = match self.draw.random_range(0..6) {
            0 => (self.odd(), self.odd()),
            _ => (512 * self.draw.random_range(0..800), 512 * self.draw.random_range(1..30)),
        };
        ftlab_request { stream: 7, fua: self.draw.random(), ..request(op, at_ns, offset, size) }
    }

    fn taken(&mut self, first: u64, count: u64) -> Result<(), String> {
        if count > 0 && first != self.submitted + 1 {
            return Err(format!("number {first} after {}", self.submitted));
        }
        self.open.extend(first..first + count);
        self.submitted += count;
        Ok(())
    }

    fn submit(&mut self) -> Result<c_int, String> {
        if self.draw.random() {
            let (row, mut id) = (self.row(), 0);
            let code = unsafe { ftlab_submit(self.sim, &row, &mut id) };
            self.taken(id, u64::from(code == OK))?;
            return Ok(code);
        }
        let count = self.draw.random_range(0..9);
        let rows: Vec<_> = (0..count).map(|_| self.row()).collect();
        let (mut first, mut taken) = (0, 0);
        let code = unsafe { ftlab_submit_many(self.sim, rows.as_ptr(), count, &mut first, &mut taken) };
        self.taken(first, taken as u64)?;
        Ok(code)
    }

    /// Advances time; returns the code.
    fn drive(&mut self, until_ns: Option<u64>, room: usize) -> Result<c_int, String> {
        let (code, done) = advance(self.sim, until_ns, room);
        // Whether the last completion is of a request that completed before the power was cut, and was kept.
        let mut old = false;
        for done in &done {
            old = self.lost.remove(&done.id);
            if !old && !self.open.remove(&done.id) {
                return Err(format!("{} completed, and had before or never was", done.id));
            }
        }
        let now_ns = now_ns(self.sim);
        let last_ns = done.last().map(|done| done.complete_ns);
        match code {
            OK if until_ns.is_some_and(|until_ns| until_ns != now_ns) => {
                Err(format!("time stands at {now_ns}, not at {until_ns:?}"))
            }
            OK if until_ns.is_none() && !self.open.is_empty() => Err(format!("left: {:?}", self.open)),
            MORE if done.len() != room || last_ns.is_some_and(|last_ns| last_ns != now_ns && !old) => {
                Err(format!("more than {room}: {} to {last_ns:?}, now {now_ns}", done.len()))
            }
            _ => Ok(code),
        }
    }

    /// Makes a call; returns its code.
    fn call(&mut self) -> Result<c_int, String> {
        let sim = self.sim;
        match self.draw.random_range(0..40) {
            0..14 => self.submit(),
            14..24 => {
                let until_ns = if self.draw.random_range(0..8) == 0 {
                    self.odd()
                } else {
                    self.now_ns + self.draw.random_range(0..2_000_000)
                };
                let room = self.draw.random_range(0..6);
                self.drive(Some(until_ns), room)
            }
            24..30 => {
                let room = self.draw.random_range(0..6);
                self.drive(None, room)
            }
            30..33 => Ok(unsafe { ftlab_next_event_ns(sim, &mut 0) }),
            33 => {
                let mut text = null();
                let code = unsafe { ftlab_result_json(sim, &mut text) };
                let text = unsafe { CStr::from_ptr(text) }.to_str().map_err(|error| error.to_string())?;
                serde_json::from_str::<serde_json::Value>(text).map_err(|error| error.to_string())?;
                Ok(code)
            }
            34 | 35 => {
                let mut report = ftlab_cut_report::default();
                let code = unsafe { ftlab_cut(sim, self.odd(), &mut report) };
                if code == OK {
                    self.on = false;
                    // Some requests may have completed and been kept because they did not fit the buffer.
                    self.lost.append(&mut self.open);
                }
                Ok(code)
            }
            36..39 => {
                let code = unsafe { ftlab_recover(sim, null_mut()) };
                self.on |= code == OK;
                Ok(code)
            }
            _ => Ok(unsafe { ftlab_submit(sim, null(), null_mut()) }),
        }
    }
}

fn judge(number: u64) -> Result<(), String> {
    let mut draw = Draw::seed_from_u64(number);
    let more = [
        &["ftl.power_safe=true"][..],
        &["host.merge_limit=16KiB"],
        &["host.scheduler=map+", "device.queue_depth=4"],
        &["ftl.kind=fast"],
        &["ftl.background_flush=true"],
        &[],
    ];
    let set = [&SMALL[..], more.choose(&mut draw).unwrap()].concat();
    let sim = open("map-plus", &set).map_err(|(code, text)| format!("{set:?}: {code}: {text}"))?;
    let calls = draw.random_range(1..60);
    let mut case =
        Case { sim, draw, now_ns: 0, submitted: 0, open: BTreeSet::new(), lost: BTreeSet::new(), on: true };
    for _ in 0..calls {
        let code = case.call()?;
        let known = [OK, MORE, FTLAB_INVALID as c_int, FTLAB_RANGE as c_int, FTLAB_TIME as c_int];
        if !known.contains(&code) && code != FTLAB_POWER as c_int {
            return Err(format!("code {code}: {}", error_of(sim)));
        }
        let before = std::mem::replace(&mut case.now_ns, now_ns(sim));
        if case.now_ns < before {
            return Err(format!("time went back from {before} to {}", case.now_ns));
        }
    }
    while case.on && case.drive(None, 3)? == MORE {}
    close(sim);
    Ok(())
}

#[test]
fn no_sequence_of_calls_ends_the_process() {
    let _: ftlab_code = FTLAB_OK;
    campaign("c_calls", 1500, Duration::from_secs(120), |number, _| judge(number).err());
}
