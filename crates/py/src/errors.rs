//! Whose fault: the user's ([`UserError`]) or ftlab's ([`InternalError`]).

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ftlab_core::sim::RunError;
use ftlab_core::workload::SourceError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

create_exception!(
    ftlab,
    UserError,
    PyException,
    "An input or an option is at fault; the text says what, where and what to do (exit status 2)."
);
create_exception!(
    ftlab,
    OutputError,
    UserError,
    "A file could not be written; the arguments are the system's error number, the text and which file."
);
create_exception!(
    ftlab,
    InternalError,
    PyException,
    "A fault of ftlab: a broken invariant or a panic (exit status 1)."
);

/// Why a call from Python failed.
pub enum Fault {
    /// The user's: the finished text.
    User(String),
    /// An output file could not be written: the system's error number (0: none), the text, and the
    /// argument that names the file.
    Unwritable(i32, String, &'static str),
    /// ftlab's: what happened, in one line.
    Internal(String),
    /// Raised by Python code that was called back, an interrupt included.
    Python(PyErr),
    /// Asked to stop without an exception to pass on.
    Interrupted,
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::User(text) => UserError::new_err(text),
            Fault::Unwritable(number, text, which) => OutputError::new_err((number, text, which)),
            Fault::Internal(text) => InternalError::new_err(text),
            Fault::Python(error) => error,
            Fault::Interrupted => PyKeyboardInterrupt::new_err(()),
        }
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Fault {
        Fault::Python(error)
    }
}

impl From<SourceError> for Fault {
    fn from(error: SourceError) -> Fault {
        match error {
            SourceError::Input(text) => Fault::User(text),
            SourceError::Interrupted => Fault::Interrupted,
        }
    }
}

impl From<RunError> for Fault {
    fn from(error: RunError) -> Fault {
        match error {
            RunError::Source(source) => source.into(),
            check @ RunError::Check(_) => Fault::Internal(check.to_string()),
            of_the_driver => Fault::User(of_the_driver.to_string()),
        }
    }
}

thread_local! {
    /// What the last panic of this thread said, with its place.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the text of a panic for the exception instead of printing it; with `FTLAB_DEBUG=1` it
/// is printed too (and `RUST_BACKTRACE=1` adds the backtrace).
pub fn install_panic_hook() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
        let text = format!("panic{place}: {}", payload_text(info.payload()));
        PANIC.with_borrow_mut(|last| *last = Some(text));
        if std::env::var_os("FTLAB_DEBUG").is_some_and(|value| value != "0") {
            default(info);
        }
    }));
}

fn payload_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

/// Runs `work`; a panic inside becomes a fault of ftlab.
///
/// # Errors
/// What `work` returns, or [`Fault::Internal`] with the panic's text.
pub fn guard<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // Whatever `work` mutates is dropped or never used again after a panic.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = PANIC.with_borrow_mut(Option::take);
        Err(Fault::Internal(text.unwrap_or_else(|| format!("panic: {}", payload_text(&*payload)))))
    })
}
