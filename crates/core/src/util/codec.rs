//! Saved state as bytes: sections, each with its own checksum (XXH3, 64 bits).
//!
//! A section holds either one value in postcard's wire format, or 32-bit words in little-endian order, which
//! are read directly into their final place in memory.

use std::hash::Hasher;
use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash3_64;

/// Number of bytes that are passed on at a time.
const CHUNK: usize = 64 << 10;

/// The largest total size of the strings in one value, bytes.
const TEXTS: usize = 64 << 10;

/// Why a section cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The system reported an error.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The bytes end within a section.
    #[error("it ends early")]
    Truncated,
    /// There are bytes after the last section.
    #[error("it goes on after its end")]
    Excess,
    /// The bytes differ from those that were written, or state something impossible.
    #[error("{0}")]
    Corrupt(String),
}

/// The largest value that a saved counter may have; it leaves a run room to go on counting.
pub const MOST_COUNTED: u64 = 1 << 62;

impl Damage {
    /// Returns an error for bytes that are intact but state something impossible.
    pub fn impossible<T>(what: impl Into<String>) -> Result<T, Damage> {
        Err(Damage::Corrupt(what.into()))
    }
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Damage {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Damage::Truncated,
            _ => Damage::Read(error),
        }
    }
}

/// A writer of sections.
pub struct Encoder<'a> {
    out: &'a mut dyn Write,
    hash: XxHash3_64,
    buffer: Vec<u8>,
    /// The system's error, which postcard does not keep.
    failed: Option<io::Error>,
}

impl<'a> Encoder<'a> {
    /// Makes a writer of sections to `out`.
    pub fn new(out: &'a mut dyn Write) -> Encoder<'a> {
        Encoder { out, hash: XxHash3_64::new(), buffer: Vec::with_capacity(CHUNK), failed: None }
    }

    /// Writes a section that holds one value.
    ///
    /// # Errors
    /// The output's error.
    pub fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        if let Err(error) = postcard::to_io(value, Section(self)) {
            return Err(self.failed.take().unwrap_or_else(|| io::Error::other(error)));
        }
        self.seal()
    }

    /// Writes a section of words; the reader has to know their number.
    ///
    /// # Errors
    /// The output's error.
    pub fn words(&mut self, mut words: impl ExactSizeIterator<Item = u32>) -> io::Result<()> {
        while words.len() > 0 {
            self.buffer.extend(words.by_ref().take(CHUNK / 4).flat_map(u32::to_le_bytes));
            self.pass_on()?;
        }
        self.seal()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.hash.write(&self.buffer);
        let done = self.out.write_all(&self.buffer);
        self.buffer.clear();
        done
    }

    fn seal(&mut self) -> io::Result<()> {
        self.pass_on()?;
        let sum = std::mem::replace(&mut self.hash, XxHash3_64::new()).finish();
        self.out.write_all(&sum.to_le_bytes())
    }
}

/// A section that is being written.
struct Section<'a, 'b>(&'a mut Encoder<'b>);

impl Write for Section<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.buffer.len() + bytes.len() > CHUNK
            && let Err(error) = self.0.pass_on()
        {
            let kind = error.kind();
            self.0.failed = Some(error);
            return Err(kind.into());
        }
        self.0.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader of sections.
pub struct Decoder<'a> {
    input: &'a mut dyn Read,
    hash: XxHash3_64,
    buffer: Vec<u8>,
    /// How many bytes of the buffer have been handed out, how many of these have been hashed, and how many bytes the
    /// buffer holds.
    taken: usize,
    hashed: usize,
    filled: usize,
    failed: Option<io::Error>,
}

impl<'a> Decoder<'a> {
    /// Makes a reader of sections from `input`.
    pub fn new(input: &'a mut dyn Read) -> Decoder<'a> {
        Decoder {
            input,
            hash: XxHash3_64::new(),
            buffer: vec![0; CHUNK],
            taken: 0,
            hashed: 0,
            filled: 0,
            failed: None,
        }
    }

    /// Reads a section that holds one value.
    ///
    /// # Errors
    /// [`Damage`] if the section cannot be read, or if its bytes are intact but do not represent such a value.
    pub fn value<T: DeserializeOwned>(&mut self) -> Result<T, Damage> {
        let mut texts = vec![0; TEXTS];
        let read = postcard::from_io((&mut *self, &mut texts[..])).map(|(value, _)| value);
        match read {
            Ok(value) => self.seal().map(|()| value),
            Err(error) => Err(match self.failed.take() {
                Some(failed) => failed.into(),
                None => Damage::Corrupt(format!("a value in it cannot be read ({error})")),
            }),
        }
    }

    /// Reads a section of words into `words`.
    ///
    /// # Errors
    /// [`Damage`] if the section cannot be read.
    pub fn words(&mut self, words: &mut [u32]) -> Result<(), Damage> {
        // The words are read in pieces that are still in the processor's cache when they are hashed.
        for part in words.chunks_mut(CHUNK) {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(part);
            let ready = bytes.len().min(self.filled - self.taken);
            bytes[..ready].copy_from_slice(&self.buffer[self.taken..self.taken + ready]);
            self.taken += ready;
            self.hashed = self.taken;
            self.input.read_exact(&mut bytes[ready..])?;
            self.hash.write(bytes);
            for word in part {
                *word = u32::from_le(*word);
            }
        }
        self.seal()
    }

    /// Checks that no bytes follow the last section.
    ///
    /// # Errors
    /// [`Damage::Excess`] if any do.
    pub fn end(&mut self) -> Result<(), Damage> {
        let mut byte = [0];
        match self.read(&mut byte)? {
            0 => Ok(()),
            _ => Err(Damage::Excess),
        }
    }

    /// Adds the bytes handed out to the hash.
    fn absorb(&mut self) {
        self.hash.write(&self.buffer[self.hashed..self.taken]);
        self.hashed = self.taken;
    }

    fn seal(&mut self) -> Result<(), Damage> {
        self.absorb();
        let sum = std::mem::replace(&mut self.hash, XxHash3_64::new()).finish();
        let mut stored = [0; 8];
        self.read_exact(&mut stored)?;
        self.absorb();
        self.hash = XxHash3_64::new();
        if u64::from_le_bytes(stored) != sum {
            return Err(Damage::Corrupt("a checksum in it does not match".into()));
        }
        Ok(())
    }
}

impl Read for Decoder<'_> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.filled {
            self.absorb();
            self.filled = loop {
                match self.input.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            (self.taken, self.hashed) = (0, 0);
        }
        let count = bytes.len().min(self.filled - self.taken);
        bytes[..count].copy_from_slice(&self.buffer[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }

    /// Keeps the system's error, which postcard does not pass on.
    #[inline]
    fn read_exact(&mut self, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let result = match self.read(bytes) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                other => other,
            };
            match result {
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) => {
                    self.failed = Some(io::Error::new(error.kind(), error.to_string()));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Value = (Vec<u32>, Option<f64>, String);

    fn encoded(value: &Value, words: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes);
        encoder.value(value).unwrap();
        encoder.words(words.iter().copied()).unwrap();
        encoder.value(value).unwrap();
        bytes
    }

    fn decoded(mut bytes: &[u8], words: usize) -> Result<(Value, Vec<u32>), Damage> {
        let mut decoder = Decoder::new(&mut bytes);
        let value = decoder.value()?;
        let mut read = vec![0; words];
        decoder.words(&mut read)?;
        let again: Value = decoder.value()?;
        assert_eq!(value, again);
        decoder.end()?;
        Ok((value, read))
    }

    fn sample() -> (Value, Vec<u32>) {
        ((vec![1, 200, u32::MAX], Some(1.5), "text".into()), (0..1000).map(|n| n * 7919).collect())
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            // The longer lists can exceed the buffer; bytes handed out must be hashed before the buffer is filled
            // again.
            numbers in (any::<u32>(), prop_oneof![0u32..300, 10_000u32..60_000])
                .prop_map(|(first, count)| (0..count).map(|at| first.wrapping_mul(at)).collect::<Vec<u32>>()),
            count in prop_oneof![0usize..50, 60_000usize..140_000],
            text in "[a-z]{0,40}",
        ) {
            let value = (numbers, Some(0.25), text);
            let words: Vec<u32> = (0..count as u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
            let bytes = encoded(&value, &words);
            let (read, again) = decoded(&bytes, count).unwrap();
            prop_assert_eq!(read, value);
            prop_assert!(again == words);
        }

        /// Any changed bit, missing byte or additional byte is an error.
        #[test]
        fn damage_is_found(at: prop::sample::Index, bit in 0u32..8, more in 1usize..20) {
            let (value, words) = sample();
            let bytes = encoded(&value, &words);
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= 1 << bit;
            prop_assert!(decoded(&changed, words.len()).is_err());
            let short = decoded(&bytes[..at.index(bytes.len())], words.len());
            prop_assert!(matches!(short, Err(Damage::Truncated)), "{short:?}");
            let mut long = bytes;
            long.resize(long.len() + more, 0);
            prop_assert!(matches!(decoded(&long, words.len()), Err(Damage::Excess)));
        }
    }

    /// When a disk is full, the system's own error is returned.
    #[test]
    fn a_failed_write_is_passed_on() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if self.0 < bytes.len() {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                self.0 -= bytes.len();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let big = vec![u32::MAX; 100_000];
        for room in [0, 10, CHUNK, CHUNK + 100] {
            for values in [true, false] {
                let mut out = Full(room);
                let mut encoder = Encoder::new(&mut out);
                let done = if values { encoder.value(&big) } else { encoder.words(big.iter().copied()) };
                assert_eq!(done.unwrap_err().kind(), io::ErrorKind::StorageFull);
            }
        }
    }
}
