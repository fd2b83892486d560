//! A configuration as it is named on the command line: a preset, or a file.

use crate::error::{ConfigError, clean};
use crate::presets::{find, unknown};
use crate::suggest::nearest;
use crate::{Base, presets};
use std::io::{ErrorKind, Read};

/// The largest text that is read as a whole, in bytes. This keeps a trace given by mistake, or a device that
/// never ends, from being read.
const MAX_BYTES: u64 = 1 << 20;

/// What a name on the command line refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A preset's name.
    Preset(String),
    /// A file and its content.
    File {
        /// The file's path, as given.
        name: String,
        /// The text.
        text: String,
    },
}

impl Input {
    /// Returns the input in the form that [`crate::resolve()`] takes.
    pub fn base(&self) -> Base<'_> {
        match self {
            Input::Preset(name) => Base::Preset(name),
            Input::File { name, text } => Base::Text { name, text },
        }
    }
}

/// Finds the preset of this name, or reads the file; a file with the name of a preset is reached as `./name`.
///
/// # Errors
/// If there is neither a preset nor a file of this name, or the file cannot be read or is not text.
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
    if path.metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let meant = nearest(argument, presets().iter().map(|preset| preset.name));
        let hint = meant.map_or(String::new(), |name| format!("; did you mean the preset {name}?"));
        return fail(&format!("no file and no preset of this name{hint}"), &[unknown(argument).1]);
    }
    let text = read_text(argument, "configuration; a trace is given with --trace FILE")?;
    Ok(Input::File { name: argument.to_owned(), text })
}

/// Reads a text of at most 1 MiB, whatever the path leads to; if the file is larger, the message says that it
/// is not a `what`.
///
/// # Errors
/// If the file cannot be read, is larger or is not UTF-8.
pub fn read_text(path: &str, what: &str) -> Result<String, ConfigError> {
    let fail = |message: &str| ConfigError::plain(path, message, &[]);
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::IsADirectory => Err(fail("is a directory; name a file")),
        Err(error) => Err(fail(&format!("cannot be read: {}", reason(&error)))),
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err(fail(&format!("larger than 1MiB, so not a {what}"))),
        Ok(_) => decode(path, bytes, what),
    }
}

/// Returns the system's message without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or(&text).to_owned()
}

/// Converts a file's bytes to text.
fn decode(name: &str, bytes: Vec<u8>, what: &str) -> Result<String, ConfigError> {
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
        let message = format!("not UTF-8 text (byte 0x{:02x}), so not a {what}", bytes[good]);
        ConfigError::plain(&format!("{}:{line}", clean(name, 160)), &message, &[])
    })
}
