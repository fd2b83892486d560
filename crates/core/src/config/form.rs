//! Values in a form of their own: sizes with weights, a range of addresses, the size of a cache. The part that has such
//! a key declares the form once, with how it is read and what messages, schema and reference say about it.

use super::units::BYTES;
use std::fmt;

/// How the values of a key are written.
#[derive(Debug)]
pub struct Form {
    /// What a value looks like, for messages: `a range such as "0B..4GiB"`.
    pub takes: &'static str,
    /// The parts of a value, for the reference: "`from..to`".
    pub parts: &'static str,
    /// Pattern of the JSON schema.
    pub pattern: &'static str,
    /// Reads a value and writes it as results state it.
    pub canonical: fn(&str, &mut Bytes) -> Result<String, Misfit>,
}

/// Reads a size in bytes within the limits of the key; `None`: it cannot be read, which the caller knows why.
pub type Bytes<'a> = dyn FnMut(&str) -> Option<u64> + 'a;

/// Why a text is not of a form: what is wrong with it, where the example of the form does not say enough.
pub type Misfit = Option<String>;

/// A type whose values are written in a form.
pub trait Formed: Sized + fmt::Display {
    /// The form.
    const FORM: Form;

    /// Reads a value; `bytes` reads a size.
    ///
    /// # Errors
    /// The text is not of this form.
    fn read(text: &str, bytes: &mut Bytes) -> Result<Self, Misfit>;

    /// Reads a value and writes it as results state it.
    ///
    /// # Errors
    /// As [`Formed::read`].
    fn canonical(text: &str, bytes: &mut Bytes) -> Result<String, Misfit> {
        Self::read(text, bytes).map(|value| value.to_string())
    }

    /// Returns the value that a size stands for, since a word of the key may stand for a key that holds one; `None`: a
    /// size is not of this form.
    fn of_size(bytes: u64) -> Option<Self> {
        Self::of_text(&BYTES.format(bytes))
    }

    /// Reads what [`Formed::canonical`] has written, or a default; `None`: it is not of this form.
    fn of_text(text: &str) -> Option<Self> {
        Self::read(text, &mut |size| BYTES.parse(size).ok()).ok()
    }
}
