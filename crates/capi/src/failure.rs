//! Why calls fail: a code and a message.

use std::ffi::{CStr, c_int};

use ftlab_config::ConfigError;
use ftlab_core::host::SubmitError;
use ftlab_core::sim::RunError;
use ftlab_embed::Fault;

use crate::ftlab_code::{self, *};

/// Why a call failed: a code and a message.
pub struct Failure {
    pub code: ftlab_code,
    pub text: String,
}

impl Failure {
    /// Makes the failure for a wrong argument.
    pub fn invalid(text: String) -> Failure {
        Failure { code: FTLAB_INVALID, text }
    }

    /// Makes the failure for an argument that is NULL where NULL is not allowed.
    pub fn null(argument: &str) -> Failure {
        Failure::invalid(format!("{argument} is NULL"))
    }

    #[cold]
    pub fn unknown_op(op: u8) -> Failure {
        let shown = op.escape_ascii();
        Failure::invalid(format!("op is '{shown}'; it is one of R, W, T (trim) and F (flush)"))
    }

    #[cold]
    pub fn unknown_stream(stream: u32) -> Failure {
        Failure::invalid(format!("stream is {stream}; it is a number from 0 to 65535"))
    }

    /// Adds the number of the row at fault to the message, for an argument with several rows.
    pub fn in_row(self, row: usize) -> Failure {
        Failure { text: format!("row {row}: {}", self.text), ..self }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault {
            Fault::User(text) => Failure { code: FTLAB_CONFIG, text },
            Fault::Internal(text) => Failure { code: FTLAB_INTERNAL, text },
            Fault::Interrupted => Failure { code: FTLAB_INTERNAL, text: "interrupted".into() },
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Fault::from(error).into()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        let code = match &error {
            RunError::Past { .. } | RunError::Late(_) => FTLAB_TIME,
            RunError::Power(_) => FTLAB_POWER,
            RunError::Source(_) | RunError::Held { .. } | RunError::Check(_) => FTLAB_INTERNAL,
        };
        Failure { code, text: error.to_string() }
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Failure {
        let code = match &error {
            SubmitError::Range { .. } => FTLAB_RANGE,
            SubmitError::Stream { .. } => FTLAB_INVALID,
            SubmitError::Past { .. } | SubmitError::Before { .. } | SubmitError::Late(_) => FTLAB_TIME,
            SubmitError::Off => FTLAB_POWER,
            SubmitError::Fed => FTLAB_INTERNAL,
        };
        Failure { code, text: error.to_string() }
    }
}

/// Returns what a code means.
pub fn meaning(code: c_int) -> &'static CStr {
    const MEANINGS: [(ftlab_code, &CStr); 9] = [
        (FTLAB_OK, c"done"),
        (FTLAB_MORE, c"the buffer is full; call again for the rest"),
        (FTLAB_BUSY, c"another thread is in a call with this object"),
        (FTLAB_INVALID, c"an argument is wrong"),
        (FTLAB_CONFIG, c"the configuration or the saved state is at fault"),
        (FTLAB_RANGE, c"no bytes, or bytes that the device does not have"),
        (FTLAB_TIME, c"a time in the past, before the last request submitted, or too far ahead"),
        (FTLAB_POWER, c"the power is not in the state that the call needs"),
        (FTLAB_INTERNAL, c"a bug in ftlab; close the object"),
    ];
    let found = MEANINGS.iter().find(|(known, _)| *known as c_int == code);
    found.map_or(c"not a code of ftlab", |(_, meaning)| meaning)
}
