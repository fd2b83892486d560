//! Whose fault an error is, panics included.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ftlab_config::ConfigError;
use ftlab_core::host::SubmitError;
use ftlab_core::sim::RunError;
use ftlab_core::workload::SourceError;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller's fault; holds the finished message.
    User(String),
    /// ftlab's fault; says what happened, in one line.
    Internal(String),
    /// The call was asked to stop.
    Interrupted,
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

impl From<SubmitError> for Fault {
    fn from(error: SubmitError) -> Fault {
        Fault::User(error.to_string())
    }
}

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Fault {
        Fault::User(error.to_string())
    }
}

thread_local! {
    /// The message of this thread's last panic, with its place in the source.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the message of a panic for the error instead of printing it; with `FTLAB_DEBUG=1` it is printed too
/// (and `RUST_BACKTRACE=1` adds the backtrace).
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

/// Runs `work`. A panic inside it is reported as a bug in ftlab; an error that a part sent through the core by
/// unwinding is returned as that error.
///
/// # Errors
/// What `work` returns, or [`Fault::Internal`] with the panic's message.
pub fn guard<T, E: From<Fault> + 'static>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    // Whatever `work` mutates is dropped or never used again after a panic.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let payload = match payload.downcast::<E>() {
            Ok(error) => return Err(*error),
            Err(payload) => payload,
        };
        let text = PANIC.with_borrow_mut(Option::take);
        Err(Fault::Internal(text.unwrap_or_else(|| format!("panic: {}", payload_text(&*payload)))).into())
    })
}
