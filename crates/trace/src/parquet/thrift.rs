//! Thrift's compact protocol, in which Parquet's footer and page headers are encoded.

/// How deeply a value that is skipped may be nested.
const DEEPEST: u32 = 16;

/// The kind of a value, from its first bits: see [`Thrift::skip`].
pub(super) type Kind = u8;

/// Reads one value after another; the data must be of the kind that is asked for.
pub(super) struct Thrift<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    /// Begins at the first byte of `data`.
    pub(super) fn new(data: &'a [u8]) -> Thrift<'a> {
        Thrift { data, at: 0 }
    }

    /// Returns the number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn bytes(&mut self, count: u64) -> Result<&'a [u8], String> {
        let rest = &self.data[self.at..];
        let count = usize::try_from(count).ok().filter(|&count| count <= rest.len());
        let count = count.ok_or(ENDS)?;
        self.at += count;
        Ok(&rest[..count])
    }

    /// Returns the number and the kind of the next field of a struct, or `None` at the end of the struct; `last` must
    /// be 0 before the first field.
    pub(super) fn field(&mut self, last: &mut i64) -> Result<Option<(i64, Kind)>, String> {
        let head = self.bytes(1)?[0];
        if head == 0 {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => self.signed()?,
            step => last.saturating_add(i64::from(step)),
        };
        Ok(Some((*last, head & 15)))
    }

    /// Returns the length of a list, and the kind of its elements.
    pub(super) fn list(&mut self, kind: Kind) -> Result<(u64, Kind), String> {
        expect(kind == 9 || kind == 10)?;
        let head = self.bytes(1)?[0];
        let length = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
        Ok((length, head & 15))
    }

    /// Reads a whole number.
    pub(super) fn int(&mut self, kind: Kind) -> Result<i64, String> {
        match kind {
            3 => Ok(i64::from(self.bytes(1)?[0] as i8)),
            4..=6 => self.signed(),
            _ => Err(WRONG.into()),
        }
    }

    /// Reads a size or a position.
    pub(super) fn size(&mut self, kind: Kind) -> Result<u64, String> {
        u64::try_from(self.int(kind)?).map_err(|_| "a size is negative".into())
    }

    /// Reads a string, or bytes.
    pub(super) fn binary(&mut self, kind: Kind) -> Result<&'a [u8], String> {
        expect(kind == 8)?;
        let length = self.unsigned()?;
        self.bytes(length)
    }

    /// Skips a value.
    pub(super) fn skip(&mut self, kind: Kind) -> Result<(), String> {
        self.skip_at(kind, 0)
    }

    fn skip_at(&mut self, kind: Kind, depth: u32) -> Result<(), String> {
        expect(depth < DEEPEST)?;
        match kind {
            // The kind itself is the value.
            1 | 2 => {}
            3 => drop(self.bytes(1)?),
            4..=6 => drop(self.unsigned()?),
            7 => drop(self.bytes(8)?),
            8 => drop(self.binary(kind)?),
            9 | 10 => {
                let (length, element) = self.list(kind)?;
                for _ in 0..length {
                    self.skip_element(element, depth)?;
                }
            }
            11 => {
                let length = self.unsigned()?;
                let kinds = if length > 0 { self.bytes(1)?[0] } else { 0 };
                for _ in 0..length {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 15, depth)?;
                }
            }
            12 => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip_at(kind, depth + 1)?;
                }
            }
            _ => return Err(WRONG.into()),
        }
        Ok(())
    }

    /// Skips an element of a list, in which even a boolean takes a byte, so that each element takes at least one byte.
    fn skip_element(&mut self, kind: Kind, depth: u32) -> Result<(), String> {
        self.skip_at(if kind <= 2 { 3 } else { kind }, depth + 1)
    }

    fn signed(&mut self) -> Result<i64, String> {
        self.unsigned().map(zigzag)
    }

    fn unsigned(&mut self) -> Result<u64, String> {
        varint(self.data, &mut self.at)
    }
}

/// The message for data that ends within a value.
pub(super) const ENDS: &str = "it ends too early";
const WRONG: &str = "a value is of another kind than it should be";

fn expect(holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(WRONG.into()) }
}

/// Decodes a zigzag number: 0, -1, 1, -2, ...
pub(super) fn zigzag(code: u64) -> i64 {
    (code >> 1) as i64 ^ -((code & 1) as i64)
}

/// Decodes a number that is stored in groups of seven bits, lowest first; bits beyond 64 are lost.
pub(super) fn varint(data: &[u8], at: &mut usize) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.get(*at).ok_or(ENDS)?;
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    Err("a number has more than 64 bits".into())
}
