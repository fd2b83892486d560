//! The layer between C and an object: it allows one call at a time, and no panic unwinds into C.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ftlab_config::Override;
use ftlab_embed::guard;

use crate::failure::{Failure, meaning};
use crate::ftlab_code::{self, *};
use crate::object::Object;
use crate::{FTLAB_CHECK, ftlab_options};

/// One simulated device.
pub struct ftlab_sim {
    /// Whether a call is using the object.
    busy: AtomicBool,
    object: UnsafeCell<Object>,
}

// Objects may move from thread to thread.
const _: () = {
    const fn goes_to_another_thread<T: Send>() {}
    goes_to_another_thread::<Object>();
};

thread_local! {
    /// The message of this thread's last failed call of `open`.
    static OPENING: RefCell<CString> = RefCell::default();
}

/// Converts a string to the form that C expects.
pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("no NUL is left")
}

/// # Safety
/// `text` is NULL or a valid string.
unsafe fn text_of<'a>(text: *const c_char, argument: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(argument));
    }
    // SAFETY: see above.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::invalid(format!("{argument} is not UTF-8: {}", text.to_string_lossy())))
}

/// # Safety
/// The strings of `options` are NULL or valid strings, and there are `set_count` of them in `set`.
unsafe fn overrides(options: &ftlab_options) -> Result<Vec<Override>, Failure> {
    if options.set.is_null() && options.set_count > 0 {
        return Err(Failure::null("options->set"));
    }
    let one = |index: usize| {
        // SAFETY: see above.
        let text = unsafe { text_of(*options.set.add(index), &format!("options->set[{index}]"))? };
        let Some((key, value)) = text.split_once('=') else {
            return Err(Failure::invalid(format!("options->set[{index}] is {text:?}; key=value is needed")));
        };
        Ok(Override { origin: format!("set {text}"), key: key.into(), value: value.into() })
    };
    (0..options.set_count).map(one).collect()
}

/// # Safety
/// As for [`crate::ftlab_open`].
unsafe fn made(config: *const c_char, options: Option<&ftlab_options>) -> Result<Object, Failure> {
    // SAFETY: as the caller promises, for all strings here.
    let config = unsafe { text_of(config, "config")? };
    let (mut set, mut load_state, mut check) = (Vec::new(), None, false);
    if let Some(options) = options {
        if options.flags & !FTLAB_CHECK != 0 {
            let text = format!("options->flags is {:#x}; it is FTLAB_CHECK or 0", options.flags);
            return Err(Failure::invalid(text));
        }
        check = options.flags != 0;
        // SAFETY: see above.
        set = unsafe { overrides(options)? };
        if !options.load_state.is_null() {
            // SAFETY: see above.
            load_state = Some(Path::new(unsafe { text_of(options.load_state, "options->load_state")? }));
        }
    }
    let input = ftlab_config::open(config)?;
    let resolved = ftlab_config::resolve(input.base(), &set)?;
    let simulation = ftlab_embed::simulation(&resolved, load_state, check, &mut ())?;
    Ok(Object::new(simulation, resolved))
}

/// Makes an object and stores it in `sim`; returns a code.
///
/// # Safety
/// As for [`crate::ftlab_open`].
pub unsafe fn open(
    config: *const c_char,
    options: Option<&ftlab_options>,
    sim: Option<&mut *mut ftlab_sim>,
) -> c_int {
    static HOOK: Once = Once::new();
    HOOK.call_once(ftlab_embed::install_panic_hook);
    let outcome = guard(|| {
        let sim = sim.ok_or_else(|| Failure::null("sim"))?;
        *sim = std::ptr::null_mut();
        // SAFETY: see above.
        let object = UnsafeCell::new(unsafe { made(config, options)? });
        *sim = Box::into_raw(Box::new(ftlab_sim { busy: AtomicBool::new(false), object }));
        Ok(FTLAB_OK)
    });
    let code = outcome.unwrap_or_else(|failure: Failure| {
        OPENING.with_borrow_mut(|text| *text = c_string(&failure.text));
        failure.code
    });
    code as c_int
}

/// Takes the object for one call, unless another call has it.
struct Taken<'a>(&'a ftlab_sim);

impl<'a> Taken<'a> {
    fn take(sim: &'a ftlab_sim) -> Option<Taken<'a>> {
        let free = sim.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        free.is_ok().then(|| Taken(sim))
    }

    fn object(&mut self) -> &mut Object {
        // SAFETY: whoever set the flag has exclusive access until `Taken` is dropped.
        unsafe { &mut *self.0.object.get() }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

/// Runs one call on an object, unless another call is using it.
pub fn call(sim: Option<&ftlab_sim>, work: impl FnOnce(&mut Object) -> Result<ftlab_code, Failure>) -> c_int {
    let Some(sim) = sim else { return FTLAB_INVALID as c_int };
    let Some(mut taken) = Taken::take(sim) else { return FTLAB_BUSY as c_int };
    let object = taken.object();
    let outcome = match &object.broken {
        None => guard(|| work(object)),
        Some(text) => Err(Failure { code: FTLAB_INTERNAL, text: format!("it ended early: {text}") }),
    };
    outcome.unwrap_or_else(|failure| failed(object, failure)) as c_int
}

#[cold]
fn failed(object: &mut Object, failure: Failure) -> ftlab_code {
    object.error = c_string(&failure.text);
    if failure.code == FTLAB_INTERNAL && object.broken.is_none() {
        object.broken = Some(failure.text);
    }
    failure.code
}

/// Frees an object.
///
/// # Safety
/// `sim` is NULL or comes from [`open`], and is not used again.
pub unsafe fn close(sim: *mut ftlab_sim) -> c_int {
    // SAFETY: see above.
    let Some(shared) = (unsafe { sim.as_ref() }) else { return FTLAB_OK as c_int };
    let Some(taken) = Taken::take(shared) else { return FTLAB_BUSY as c_int };
    // The object stays taken: there is nothing to return it to.
    std::mem::forget(taken);
    // SAFETY: `sim` is from `Box::into_raw`, and nobody else uses it.
    let object = unsafe { Box::from_raw(sim) };
    let closed = guard(|| {
        drop(object);
        Ok(FTLAB_OK)
    });
    closed.unwrap_or_else(|failure: Failure| failure.code) as c_int
}

/// Returns the message of the last failed call; without an object, that of this thread's last failed [`open`].
pub fn last_error(sim: Option<&ftlab_sim>) -> *const c_char {
    let Some(sim) = sim else { return OPENING.with_borrow(|text| text.as_ptr()) };
    match Taken::take(sim) {
        Some(mut taken) => taken.object().error.as_ptr(),
        None => meaning(FTLAB_BUSY as c_int).as_ptr(),
    }
}
