//! Fields of a line, and their values; messages name the fields.

use crate::number::{self, Fault};
use memchr::memchr;

/// What is wrong with a line.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The line does not parse; `skip_bad` may allow that.
    Line(String),
    /// The trace cannot be read at all.
    Input(String),
}

/// Bytes of a sector in every layout that counts sectors.
pub(crate) const SECTOR: u64 = 512;

/// Strips blanks from both ends.
#[inline]
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Comma-separated fields, without the blanks around them. Any of them may be in quotation marks, as pyarrow, base R
/// and Python's csv module write them; a mark within such a field stays doubled.
pub(crate) struct Commas<'a>(Option<&'a [u8]>);

impl<'a> Commas<'a> {
    /// Splits `line` into fields.
    pub(crate) fn of(line: &'a [u8]) -> Commas<'a> {
        Commas(Some(line))
    }

    /// Returns the part of the line that has not been taken yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0.unwrap_or_default()
    }

    /// Returns the next field, or a message that names the missing one.
    #[inline]
    pub(crate) fn need(&mut self, name: &'static str) -> Result<&'a [u8], Trouble> {
        self.next().ok_or_else(|| missing(name))
    }

    /// Takes the part of the line up to the next comma.
    #[inline]
    fn take(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let Some(at) = memchr(b',', rest) else { return self.0.take() };
        self.0 = Some(&rest[at + 1..]);
        Some(&rest[..at])
    }

    /// Returns the field that begins after the quotation mark before `rest`.
    #[cold]
    fn quoted(&mut self, rest: &'a [u8]) -> &'a [u8] {
        // A mark that is followed by another one does not end the field.
        let mut end = 0;
        loop {
            end += memchr(b'"', &rest[end..]).unwrap_or(rest.len() - end);
            if rest.get(end + 1) != Some(&b'"') {
                break;
            }
            end += 2;
        }
        self.0 = Some(&rest[(end + 1).min(rest.len())..]);
        // What is left up to the comma is nothing.
        self.take();
        &rest[..end]
    }
}

impl<'a> Iterator for Commas<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self.0?.trim_ascii_start() {
            [b'"', rest @ ..] => Some(self.quoted(rest)),
            _ => self.take().map(trim),
        }
    }
}

/// Fields separated by blanks.
pub(crate) struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// Splits `line` into fields.
    pub(crate) fn of(line: &'a [u8]) -> Words<'a> {
        Words(line)
    }

    /// Returns the next field, or a message that names the missing one.
    #[inline]
    pub(crate) fn need(&mut self, name: &'static str) -> Result<&'a [u8], Trouble> {
        self.next().ok_or_else(|| missing(name))
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
        let text = &self.0[start..];
        let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
        self.0 = &text[end..];
        Some(&text[..end])
    }
}

/// Fields separated by blanks or commas, or both.
pub(crate) struct Blanks<'a>(&'a [u8]);

impl<'a> Blanks<'a> {
    /// Splits `line` into fields.
    pub(crate) fn of(line: &'a [u8]) -> Blanks<'a> {
        Blanks(line)
    }
}

impl<'a> Iterator for Blanks<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let apart = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
        let start = self.0.iter().position(|byte| !apart(byte))?;
        let text = &self.0[start..];
        let end = text.iter().position(apart).unwrap_or(text.len());
        self.0 = &text[end..];
        Some(&text[..end])
    }
}

/// Parses a whole number.
#[inline]
pub(crate) fn whole(text: &[u8], name: &'static str) -> Result<u64, Trouble> {
    number::uint(text).map_err(|fault| complain(name, text, "a whole number", fault))
}

/// Parses a whole number of sectors; returns bytes.
#[inline]
pub(crate) fn sectors(text: &[u8], name: &'static str) -> Result<u64, Trouble> {
    let count = whole(text, name)?;
    count.checked_mul(SECTOR).ok_or_else(|| complain(name, text, "a whole number", Fault::TooLarge))
}

/// Whether these numbers of bytes are whole sectors.
pub(crate) fn in_sectors(texts: &[&[u8]]) -> bool {
    texts.iter().all(|text| number::uint(text).is_ok_and(|bytes| bytes.is_multiple_of(SECTOR)))
}

/// Parses a whole number of ticks of `tick_ns` each; returns ns.
#[inline]
pub(crate) fn ticks(text: &[u8], name: &'static str, tick_ns: u64) -> Result<u64, Trouble> {
    let count = whole(text, name)?;
    count.checked_mul(tick_ns).ok_or_else(|| complain(name, text, "a time", Fault::TooLarge))
}

/// Parses a decimal time in a unit of 10^`unit` ns; returns ns.
#[inline]
pub(crate) fn time(text: &[u8], name: &'static str, unit: u32) -> Result<u64, Trouble> {
    number::time_ns(text, unit).map_err(|fault| complain(name, text, "a time", fault))
}

/// Makes the message for a field that holds none of the allowed words.
#[cold]
pub(crate) fn unexpected(name: &'static str, text: &[u8], want: &str) -> Trouble {
    Trouble::Line(format!("{name} is \"{}\", not {want}", shown(text)))
}

#[cold]
fn missing(name: &'static str) -> Trouble {
    Trouble::Line(format!("{name} is missing: the line has too few fields"))
}

#[cold]
fn complain(name: &'static str, text: &[u8], want: &str, fault: Fault) -> Trouble {
    let shown = shown(text);
    Trouble::Line(match fault {
        Fault::Missing => format!("{name} is empty"),
        Fault::Negative => format!("{name} is \"{shown}\": it must not be negative"),
        Fault::NotANumber => format!("{name} is \"{shown}\", not {want}"),
        Fault::TooLarge => format!("{name} is \"{shown}\": too large"),
    })
}

/// Prepares text for a message: short, and harmless to a terminal.
pub(crate) fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let mut shown = text[..text.len().min(MOST)].escape_ascii().to_string();
    if text.len() > MOST {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits() {
        let fields: Vec<_> = Commas::of(b"a, b ,,\tc").collect();
        assert_eq!(fields, [&b"a"[..], b"b", b"", b"c"]);
        assert_eq!(Commas::of(b"").count(), 1);
        let words: Vec<_> = Words::of(b"  8,16 \t 0 x").collect();
        assert_eq!(words, [&b"8,16"[..], b"0", b"x"]);
        assert_eq!(Words::of(b" \t").count(), 0);
        let fields: Vec<_> = Blanks::of(b" 1, W,\t8 ").collect();
        assert_eq!(fields, [&b"1"[..], b"W", b"8"]);
    }

    #[test]
    fn quoted_fields_may_hold_commas() {
        let split = |line: &'static str| Commas::of(line.as_bytes()).collect::<Vec<_>>();
        assert_eq!(split("1,\"a, b\",2"), [&b"1"[..], b"a, b", b"2"]);
        assert_eq!(split("\"a \"\"b\"\"\",\"\",x"), [&b"a \"\"b\"\""[..], b"", b"x"]);
        assert_eq!(split("\"a"), [&b"a"[..]]);
        assert_eq!(split("\"a\""), [&b"a"[..]]);
        assert_eq!(split("1,"), [&b"1"[..], b""]);
        assert_eq!(split("\"time_ns\",\"op\" , \"W\" ,4"), [&b"time_ns"[..], b"op", b"W", b"4"]);
    }

    #[test]
    fn messages_name_the_field() {
        let text = |result: Result<u64, Trouble>| match result.unwrap_err() {
            Trouble::Line(text) | Trouble::Input(text) => text,
        };
        assert_eq!(text(whole(b"-5", "Size")), "Size is \"-5\": it must not be negative");
        assert_eq!(text(sectors(b"99999999999999999", "LBA")), "LBA is \"99999999999999999\": too large");
        assert_eq!(text(time(b"x\x1b[31m", "Time", 9)), "Time is \"x\\x1b[31m\", not a time");
    }
}
