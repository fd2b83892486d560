//! A configuration as it is named on the command line: a preset, or a file.

use crate::error::{ConfigError, clean};
use crate::presets::{find, unknown};
use crate::suggest::nearest;
use crate::{Base, presets};
use std::io::{ErrorKind, Read};

/// Largest configuration file, bytes. A trace given by mistake is told apart before it is read.
const MAX_BYTES: u64 = 1 << 20;

/// What a name on the command line turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A preset's name.
    Preset(String),
    /// A file and its content.
    File {
        /// Path as given.
        name: String,
        /// Its text.
        text: String,
    },
}

impl Input {
    /// The same for [`crate::resolve`].
    pub fn base(&self) -> Base<'_> {
        match self {
            Input::Preset(name) => Base::Preset(name),
            Input::File { name, text } => Base::Text { name, text },
        }
    }
}

/// Finds the preset of this name (a file of the same name is reached as `./name`), or
/// reads the file.
///
/// # Errors
/// If there is neither, or the file cannot be read or is no text.
pub fn open(argument: &str) -> Result<Input, ConfigError> {
    if find(argument).is_some() {
        return Ok(Input::Preset(argument.to_owned()));
    }
    let fail = |message: &str, notes: &[String]| Err(ConfigError::plain(argument, message, notes));
    if argument.is_empty() {
        return Err(ConfigError::plain(
            "CONFIG",
            "empty; give a preset's name or a TOML file",
            &[unknown("").1],
        ));
    }
    let path = std::path::Path::new(argument);
    if path.is_dir() {
        return fail("a directory, where a configuration file or a preset is expected", &[]);
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let meant = nearest(argument, presets().iter().map(|preset| preset.name));
            let hint = meant.map_or(String::new(), |name| format!("; did you mean the preset {name}?"));
            return fail(&format!("no file and no preset of this name{hint}"), &[unknown(argument).1]);
        }
        Err(error) => return fail(&format!("cannot be read: {error}"), &[]),
        Ok(_) if bytes.len() as u64 > MAX_BYTES => {
            let message = "larger than 1MiB, so no configuration; a trace is given with --trace FILE";
            return fail(message, &[]);
        }
        Ok(_) => {}
    }
    let text = decode(argument, bytes)?;
    Ok(Input::File { name: argument.to_owned(), text })
}

/// The text of a file's bytes.
fn decode(name: &str, bytes: Vec<u8>) -> Result<String, ConfigError> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(ConfigError::plain(
            &format!("{}:1", clean(name, 160)),
            "UTF-16 text; save it as UTF-8",
            &[],
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = bytes[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        let note = "A configuration is a TOML file; a trace is given with --trace FILE.".to_owned();
        let message = format!("not UTF-8 text (byte 0x{:02x})", bytes[good]);
        ConfigError::plain(&format!("{}:{line}", clean(name, 160)), &message, &[note])
    })
}
