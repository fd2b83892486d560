//! Whose fault an error is: the user's ([`UserError`]) or ftlab's ([`InternalError`]).

use std::panic::resume_unwind;

use ftlab_config::ConfigError;
use ftlab_core::host::SubmitError;
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
    "A bug in ftlab: a broken invariant or a panic (exit status 1)."
);

/// Why a call from Python failed.
pub enum Fault {
    /// The user's fault; holds the finished message.
    User(String),
    /// An output file could not be written: the system's error number (0: none), the message, and the
    /// argument that names the file.
    Unwritable(i32, String, &'static str),
    /// ftlab's fault; says what happened, in one line.
    Internal(String),
    /// An exception raised by Python code that was called back, interrupts included.
    Python(PyErr),
    /// The call was asked to stop, without an exception to pass on.
    Interrupted,
}

impl Fault {
    /// Returns the reason, in one line.
    pub fn shown(&self) -> String {
        match self {
            Fault::User(text) | Fault::Internal(text) | Fault::Unwritable(_, text, _) => text.clone(),
            Fault::Python(error) => error.to_string(),
            Fault::Interrupted => "interrupted".into(),
        }
    }
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

impl From<ftlab_embed::Fault> for Fault {
    fn from(fault: ftlab_embed::Fault) -> Fault {
        match fault {
            ftlab_embed::Fault::User(text) => Fault::User(text),
            ftlab_embed::Fault::Internal(text) => Fault::Internal(text),
            ftlab_embed::Fault::Interrupted => Fault::Interrupted,
        }
    }
}

/// Errors of lower crates that [`ftlab_embed::Fault`] classifies.
macro_rules! judged_below {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Fault {
                ftlab_embed::Fault::from(error).into()
            }
        }
    )*};
}

judged_below!(ConfigError, SourceError, RunError, SubmitError);

/// Unwinds to the enclosing [`guard`], which returns `fault`; for code that the core calls and that cannot return
/// an error.
pub fn end(fault: Fault) -> ! {
    resume_unwind(Box::new(fault))
}

/// Runs `work`; a panic inside it is reported as a bug in ftlab.
///
/// # Errors
/// What `work` returns, or [`Fault::Internal`] with the panic's message.
pub fn guard<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    ftlab_embed::guard(work)
}
