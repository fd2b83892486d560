//! The C library `libftlab.so`: what `ftlab.h` declares. `crates/capi/include/ftlab.h` is generated from this
//! file, and the comments here are its documentation.
// The names are C's. What a caller has to promise is stated once, in the preamble of the header
// (cbindgen.toml).
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod failure;
mod handle;
mod object;

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::slice;

use failure::Failure;
use handle::call;
pub use handle::ftlab_sim;

/// The outcome of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ftlab_code {
    /// Done.
    FTLAB_OK = 0,
    /// Done up to the last completion that fits the buffer; call again for the rest.
    FTLAB_MORE = 1,
    /// Another thread is in a call with this object.
    FTLAB_BUSY = -1,
    /// An argument is wrong: NULL, not UTF-8, or a value that is not allowed.
    FTLAB_INVALID = -2,
    /// The configuration or the saved state is at fault.
    FTLAB_CONFIG = -3,
    /// The request has no bytes, or bytes that the device does not have.
    FTLAB_RANGE = -4,
    /// A time is in the past, before the last request submitted, or more than a century after the start.
    FTLAB_TIME = -5,
    /// The power is not in the state that the call needs, or the device was not made for power cuts.
    FTLAB_POWER = -6,
    /// A bug in ftlab. The object can only be closed now.
    FTLAB_INTERNAL = -7,
}

/// As an arrival time: now.
pub const FTLAB_NOW: u64 = 0xffff_ffff_ffff_ffff;

/// No time: nothing can happen.
pub const FTLAB_NEVER: u64 = 0xffff_ffff_ffff_ffff;

/// Flag of ftlab_options: verify every invariant after every request (slow).
pub const FTLAB_CHECK: u32 = 1;

/// How to make a device. Zeros are the defaults; ftlab_open reads this struct and does not keep it.
#[repr(C)]
pub struct ftlab_options {
    /// Settings that override the configuration's, each "key=value", for example "host.scheduler=noop"; may
    /// be NULL if there are none.
    pub set: *const *const c_char,
    /// Number of settings in `set`.
    pub set_count: usize,
    /// File with the state at time 0 to start from, instead of preconditioning (`ftlab run --save-state`); or
    /// NULL.
    pub load_state: *const c_char,
    /// FTLAB_CHECK, or 0.
    pub flags: u32,
}

/// A request.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ftlab_request {
    /// Arrival time, ns, or FTLAB_NOW; neither before now nor before the arrival of the last request submitted. A
    /// request that arrives now does so after the decisions already taken.
    pub at_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Stream of the request, at most 65535: the tenant, or the placement handle of the data; 0 for none.
    pub stream: u32,
    /// 'R' read, 'W' write, 'T' trim or 'F' flush; a flush ignores offset and size.
    pub op: c_char,
    /// If not 0, the write completes only when it would survive a power cut.
    pub fua: u8,
}

/// A completed request: a row of the per-request file. If host.merge_limit merges requests, every submitted
/// one still has a row of its own.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ftlab_completion {
    /// Number of the submission, from 1.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Time at which it was handed to the device, ns.
    pub dispatch_ns: u64,
    /// Completion time, ns; for a failed request, the time at which it was refused.
    pub complete_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Batch, from 1; 0: none.
    pub batch: u64,
    /// Channel batch within its chip batch, from 1; 0: none.
    pub channel_batch: u64,
    /// Mapping-cache misses of its pages; of merged requests, the first carries all of them.
    pub mapping_misses: u32,
    /// Pages of a read that the device had in RAM, in its write buffer or read ahead; of merged requests, each carries
    /// all of them.
    pub buffered: u32,
    /// 'R', 'W', 'T' or 'F'.
    pub op: c_char,
    /// Whether it was dispatched ahead of others by the scheduler's choice.
    pub prioritized: bool,
    /// Whether it was dispatched by deadline.
    pub expired: bool,
    /// Whether the device was read-only and refused it, or part of it.
    pub failed: bool,
}

/// The effects of a power cut.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ftlab_cut_report {
    /// Programs and erases finished since the last cut.
    pub operations: u64,
    /// Programs torn.
    pub torn_programs: u64,
    /// Erases torn.
    pub torn_erases: u64,
}

/// The cost of a recovery.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ftlab_recovery {
    /// Pages whose spare areas were read.
    pub scan_reads: u64,
    /// Translation pages and trims read.
    pub map_reads: u64,
    /// Other pages read, while mappings were written back.
    pub gc_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Simulated time, ns; the clock has moved on by this much.
    pub elapsed_ns: u64,
}

/// Makes a device at time 0, preconditioned or loaded, without a workload. `config` is a preset's name or a
/// TOML file, as on the command line; `options` may be NULL. `*sim` is the new object, which the caller owns
/// and passes to ftlab_close; it is NULL after an error, and ftlab_last_error(NULL) in the same thread then
/// says more.
///
/// FTLAB_CONFIG: the configuration, a setting or the state is at fault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_open(
    config: *const c_char,
    options: *const ftlab_options,
    sim: *mut *mut ftlab_sim,
) -> c_int {
    // SAFETY: as the caller promises, here and in all functions below.
    unsafe { handle::open(config, options.as_ref(), sim.as_mut()) }
}

/// Frees an object and everything it owns. NULL is allowed and does nothing.
///
/// FTLAB_BUSY: another thread is in a call with the object, which stays open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_close(sim: *mut ftlab_sim) -> c_int {
    // SAFETY: see above.
    unsafe { handle::close(sim) }
}

/// Submits a request. `*id` becomes its number, from 1 in the order of submission; `id` may be NULL.
///
/// FTLAB_RANGE, FTLAB_TIME, FTLAB_POWER; FTLAB_INVALID also for a wrong op or stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_submit(
    sim: *mut ftlab_sim,
    request: *const ftlab_request,
    id: *mut u64,
) -> c_int {
    // SAFETY: see above.
    let (sim, request, id) = unsafe { (sim.as_ref(), request.as_ref(), id.as_mut()) };
    call(sim, |object| {
        let number = object.submit(request.ok_or_else(|| Failure::null("request"))?)?;
        if let Some(id) = id {
            *id = number;
        }
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Submits `count` requests, in order. Their numbers are `*first_id` and those that follow; `*submitted` is the number
/// of requests taken: all or, after an error, those before the one at fault. Both pointers may be NULL.
///
/// FTLAB_RANGE, FTLAB_TIME, FTLAB_POWER; FTLAB_INVALID also for a wrong op or stream: ftlab_last_error names
/// the row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_submit_many(
    sim: *mut ftlab_sim,
    requests: *const ftlab_request,
    count: usize,
    first_id: *mut u64,
    submitted: *mut usize,
) -> c_int {
    // SAFETY: see above.
    let (sim, first_id, mut submitted) = unsafe { (sim.as_ref(), first_id.as_mut(), submitted.as_mut()) };
    if let Some(taken) = submitted.as_deref_mut() {
        *taken = 0;
    }
    call(sim, |object| {
        if requests.is_null() && count > 0 {
            return Err(Failure::null("requests"));
        }
        if let Some(id) = first_id {
            *id = object.submitted + 1;
        }
        for row in 0..count {
            // SAFETY: the caller promises that there are this many of them.
            let request = unsafe { &*requests.add(row) };
            object.submit(request).map_err(|failure| failure.in_row(row))?;
            if let Some(taken) = submitted.as_deref_mut() {
                *taken = row + 1;
            }
        }
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Stores in `*at_ns` the time at which something can happen without another submission, ns, or FTLAB_NEVER
/// if nothing can.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_next_event_ns(sim: *mut ftlab_sim, at_ns: *mut u64) -> c_int {
    // SAFETY: see above.
    let (sim, at_ns) = unsafe { (sim.as_ref(), at_ns.as_mut()) };
    call(sim, |object| {
        let next_ns = object.simulation.next_event_ns().unwrap_or(FTLAB_NEVER);
        *at_ns.ok_or_else(|| Failure::null("at_ns"))? = next_ns;
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Stores the simulated time in `*now_ns`, ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_now_ns(sim: *mut ftlab_sim, now_ns: *mut u64) -> c_int {
    // SAFETY: see above.
    let (sim, now_ns) = unsafe { (sim.as_ref(), now_ns.as_mut()) };
    call(sim, |object| {
        *now_ns.ok_or_else(|| Failure::null("now_ns"))? = object.simulation.now_ns();
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Lets everything up to and including `until_ns` happen. Afterwards the time is `until_ns`, even if nothing happened.
/// Completions go into `completions`, a buffer that the caller owns and that has room for `capacity` of them; `*count`
/// becomes the number stored.
///
/// FTLAB_MORE: the buffer is full. The time is that of the last completion in it; completions of the same instant that
/// did not fit are kept, and come first in the next call, whether with the same `until_ns` or another. That call may
/// find that there are none left. With a capacity of 0, with which `completions` and `count` may be NULL, the call
/// stops at the first completion and keeps it.
///
/// FTLAB_TIME: `until_ns` is in the past, or FTLAB_NEVER. FTLAB_POWER: the power is off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_advance(
    sim: *mut ftlab_sim,
    until_ns: u64,
    completions: *mut ftlab_completion,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    // SAFETY: see above.
    unsafe { drive(sim, Some(until_ns), (completions, capacity), count) }
}

/// Lets everything happen up to the completion of the last request submitted, and stops there: the device's own work,
/// for which no request waits, does not begin at that instant. Completions and FTLAB_MORE are as in ftlab_advance.
///
/// FTLAB_POWER: the power is off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_drain(
    sim: *mut ftlab_sim,
    completions: *mut ftlab_completion,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    // SAFETY: see above.
    unsafe { drive(sim, None, (completions, capacity), count) }
}

unsafe fn drive(
    sim: *mut ftlab_sim,
    until_ns: Option<u64>,
    (completions, capacity): (*mut ftlab_completion, usize),
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises; a slice is never larger than memory.
    let (sim, count) = unsafe { (sim.as_ref(), count.as_mut()) };
    let most = isize::MAX as usize / size_of::<ftlab_completion>();
    let buffer: &mut [MaybeUninit<ftlab_completion>] = match (completions.is_null(), capacity) {
        (_, 0) | (true, _) => &mut [],
        // SAFETY: see above.
        (false, _) => unsafe { slice::from_raw_parts_mut(completions.cast(), capacity.min(most)) },
    };
    let mut filled = 0;
    let code = call(sim, |object| {
        if buffer.len() < capacity.min(1) {
            return Err(Failure::null("completions"));
        }
        if count.is_none() && capacity > 0 {
            return Err(Failure::null("count"));
        }
        object.drive(until_ns, buffer, &mut filled)
    });
    if let Some(count) = count {
        *count = filled;
    }
    code
}

/// Stores in `*json` the result of everything up to now, as `ftlab run --json` writes it. The object owns it
/// until the next call of this function, or of ftlab_close, with that object. The call has no effect on the
/// simulation. In the engine block, wall_s is the time since ftlab_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_result_json(sim: *mut ftlab_sim, json: *mut *const c_char) -> c_int {
    // SAFETY: see above.
    let (sim, json) = unsafe { (sim.as_ref(), json.as_mut()) };
    call(sim, |object| {
        *json.ok_or_else(|| Failure::null("json"))? = object.result_json();
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Loses power now: operations under way are torn as `seed` decides, memory is lost, and requests that have not
/// completed never will (those that completed and were kept because they did not fit are still delivered). The
/// configuration needs ftl.power_safe. `report` is filled in; it may be NULL.
///
/// FTLAB_POWER: the device was not made for power cuts, or the power is already off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_cut(sim: *mut ftlab_sim, seed: u64, report: *mut ftlab_cut_report) -> c_int {
    // SAFETY: see above.
    let (sim, report) = unsafe { (sim.as_ref(), report.as_mut()) };
    call(sim, |object| {
        let cut = object.cut(seed)?;
        if let Some(report) = report {
            *report = cut;
        }
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Brings the device up again from its flash alone. Time moves on by the duration of the recovery; the result's figures
/// start again from zero. `recovery` is filled in; it may be NULL.
///
/// FTLAB_POWER: the power is on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_recover(sim: *mut ftlab_sim, recovery: *mut ftlab_recovery) -> c_int {
    // SAFETY: see above.
    let (sim, recovery) = unsafe { (sim.as_ref(), recovery.as_mut()) };
    call(sim, |object| {
        let found = object.recover()?;
        if let Some(recovery) = recovery {
            *recovery = found;
        }
        Ok(ftlab_code::FTLAB_OK)
    })
}

/// Returns what a code means, in a few words; any number is allowed. The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn ftlab_strerror(code: c_int) -> *const c_char {
    failure::meaning(code).as_ptr()
}

/// Returns the message of the last call with this object that failed or, with NULL, of the last ftlab_open of
/// this thread that failed. It is empty if none has. The object owns the text until the next call with it
/// fails, or ftlab_close; for NULL, the thread owns it until its next ftlab_open. FTLAB_BUSY and a `sim` of
/// NULL leave no text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftlab_last_error(sim: *const ftlab_sim) -> *const c_char {
    // SAFETY: see above.
    handle::last_error(unsafe { sim.as_ref() })
}

/// Returns the library's version, "1.2.3". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn ftlab_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL in it"),
        };
    VERSION.as_ptr()
}
