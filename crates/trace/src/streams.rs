//! Numbers for what a trace calls the source of a request: a process, an application, a user, a tenant.

use crate::fields::{Trouble, shown};
use rustc_hash::FxHashMap;

/// Numbers names from 1, in order of first appearance. Stream 0 is that of requests without a name.
#[derive(Default)]
pub(crate) struct Streams {
    numbers: FxHashMap<Box<[u8]>, u16>,
    /// What people are shown for each stream, from stream 1 on.
    names: Vec<String>,
}

impl Streams {
    /// Returns the stream of this name; an empty one has stream 0.
    ///
    /// # Errors
    /// If there are more names than numbers of 16 bits.
    #[inline]
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u16, Trouble> {
        self.labelled(name, b"")
    }

    /// Returns the stream of this name, as [`Streams::number`] does. People are shown the label of its first
    /// appearance too.
    ///
    /// # Errors
    /// If there are more names than numbers of 16 bits.
    #[inline]
    pub(crate) fn labelled(&mut self, name: &[u8], label: &[u8]) -> Result<u16, Trouble> {
        match self.numbers.get(name) {
            Some(&number) => Ok(number),
            None if name.is_empty() => Ok(0),
            None => self.add(name, label),
        }
    }

    #[cold]
    fn add(&mut self, name: &[u8], label: &[u8]) -> Result<u16, Trouble> {
        let Ok(number) = u16::try_from(self.names.len() + 1) else {
            let most = u16::MAX;
            return Err(Trouble::Input(format!(
                "{} is one stream too many: a trace may have {most}; split it by volume or by time",
                shown(name)
            )));
        };
        self.numbers.insert(name.into(), number);
        let space = if label.is_empty() { "" } else { " " };
        self.names.push(format!("{}{space}{}", shown(name), shown(label)));
        Ok(number)
    }

    /// Returns what people are shown for each stream; the first is that of stream 1.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_as_they_appear() {
        let mut streams = Streams::default();
        let names = [&b"b"[..], b"", b"a", b"b", b"b", b"\xff", b"a"];
        assert_eq!(names.map(|name| streams.number(name).unwrap()), [1, 0, 2, 1, 1, 3, 2]);
        assert_eq!(streams.labelled(b"7", b"sh").unwrap(), 4);
        assert_eq!(streams.labelled(b"7", b"bash").unwrap(), 4);
        assert_eq!(streams.names(), ["b", "a", "\\xff", "7 sh"]);
    }

    #[test]
    fn there_are_as_many_streams_as_numbers() {
        let mut streams = Streams::default();
        for name in 1..=u32::from(u16::MAX) {
            assert_eq!(u32::from(streams.number(name.to_string().as_bytes()).unwrap()), name);
        }
        assert!(
            matches!(streams.number(b"x"), Err(Trouble::Input(text)) if text.starts_with("x is one stream"))
        );
        assert_eq!(streams.number(b"65535").unwrap(), u16::MAX);
    }
}
