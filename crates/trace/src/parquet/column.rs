//! A column of numbers, read a few rows at a time.

use super::decode::{Delta, Hybrid};
use super::footer::{ColumnChunk, Numbers};
use super::page::{Content, Page, Pages};
use super::thrift::ENDS;
use super::written::Unit;
use std::fs::File;
use std::sync::Arc;

/// Parquet's numbers for the encodings.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const DELTA_BINARY_PACKED: i64 = 5;
const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;

/// The encoding of a page's next values, and where they are.
#[derive(Clone, Copy)]
enum Values {
    /// Where the first byte of the next value is.
    Plain(usize),
    /// Indices into the dictionary.
    Dictionary(Hybrid),
    Delta(Delta),
    /// The first bytes of all values, then the second ones, and so on.
    Split {
        /// Where the first byte of the first value is, and the number of values.
        from: usize,
        count: usize,
        /// Index of the next value.
        next: usize,
    },
}

/// Reads a column.
pub(super) struct Column {
    /// How its numbers are stored; unsigned ones beyond 2^63 come out negative.
    pub(super) numbers: Numbers,
    /// What a row without a value reads as.
    missing: i64,
    /// Whether a float may have a fraction, which is rounded.
    fractions: bool,
    optional: bool,
    pages: Pages,
    dictionary: Vec<i64>,
    /// Number of rows left in the page, and where the page ends.
    left: usize,
    end: usize,
    /// 1 for each row that has a value, 0 for all others.
    levels: Option<Hybrid>,
    values: Values,
    /// Buffers: the levels of some rows, and the indices of their values in the dictionary.
    present: Vec<u32>,
    indices: Vec<u32>,
}

impl Column {
    /// Opens a column of `file`; [`Column::start`] goes to its rows. What a row without a value reads as is `missing`.
    pub(super) fn new(
        file: Arc<File>,
        numbers: Numbers,
        optional: bool,
        missing: i64,
        fractions: bool,
    ) -> Column {
        Column {
            numbers,
            missing,
            fractions,
            optional,
            pages: Pages::new(file),
            dictionary: Vec::new(),
            left: 0,
            end: 0,
            levels: None,
            values: Values::Plain(0),
            present: Vec::new(),
            indices: Vec::new(),
        }
    }

    /// Goes to the first row of a row group.
    pub(super) fn start(&mut self, part: ColumnChunk) {
        self.pages.start(part);
        self.dictionary.clear();
        self.left = 0;
    }

    /// Reads the next rows, as many as `out` takes; returns the first row without a value, counted from 0.
    pub(super) fn read(&mut self, out: &mut [i64]) -> Result<Option<usize>, String> {
        let (mut done, mut lacking) = (0, None);
        while done < out.len() {
            if self.left == 0 {
                let page = self.pages.next()?.ok_or("it has fewer rows than its row group")?;
                self.begin(page)?;
                continue;
            }
            let now = self.left.min(out.len() - done);
            let found = self.read_page(&mut out[done..done + now])?;
            lacking = lacking.or(found.map(|row| done + row));
            self.left -= now;
            done += now;
        }
        Ok(lacking)
    }

    /// Reads rows of the current page only, as many as `out` takes; otherwise does the same as [`Column::read`].
    fn read_page(&mut self, out: &mut [i64]) -> Result<Option<usize>, String> {
        let Some(levels) = &mut self.levels else {
            self.decode(out)?;
            return Ok(None);
        };
        if levels.pass(&self.pages.data, out.len(), 1)? {
            self.decode(out)?;
            return Ok(None);
        }
        self.present.resize(out.len(), 0);
        levels.fill(&self.pages.data, &mut self.present)?;
        let Some(first) = self.present.iter().position(|&level| level == 0) else {
            self.decode(out)?;
            return Ok(None);
        };
        let mut left = self.present.iter().filter(|&&level| level != 0).count();
        self.decode(&mut out[..left])?;
        // Values move to their rows from the last row to the first, so that none is overwritten before it has moved.
        for (row, &level) in self.present.iter().enumerate().rev() {
            out[row] = if level == 0 {
                self.missing
            } else {
                left -= 1;
                out[left]
            };
        }
        Ok(Some(first))
    }

    /// Decodes the next values, as many as `out` takes.
    fn decode(&mut self, out: &mut [i64]) -> Result<(), String> {
        let data = &self.pages.data;
        let (short, unsigned) = (self.numbers.short, self.numbers.unsigned);
        match &mut self.values {
            Values::Plain(at) => {
                let bytes = out.len() * width(short);
                let part = data[..self.end].get(*at..*at + bytes).ok_or(ENDS)?;
                *at += bytes;
                numbers(part, short, unsigned).zip(&mut *out).for_each(|(number, place)| *place = number);
            }
            Values::Dictionary(indices) => {
                self.indices.resize(out.len(), 0);
                indices.fill(data, &mut self.indices)?;
                for (place, &index) in out.iter_mut().zip(&self.indices) {
                    let value = self.dictionary.get(index as usize);
                    *place = *value.ok_or("a value is not in the dictionary")?;
                }
            }
            Values::Delta(delta) => {
                delta.fill(data, out)?;
                if short {
                    out.iter_mut().for_each(|number| *number = widened(*number as i32, unsigned));
                }
            }
            Values::Split { from, count, next } => {
                if *count - *next < out.len() {
                    return Err(ENDS.into());
                }
                out.fill(0);
                for byte in 0..width(short) {
                    let part = &data[*from + byte * *count + *next..][..out.len()];
                    for (place, &value) in out.iter_mut().zip(part) {
                        *place |= i64::from(value) << (8 * byte);
                    }
                }
                *next += out.len();
                if short {
                    out.iter_mut().for_each(|number| *number = widened(*number as i32, unsigned));
                }
            }
        }
        self.convert(out)
    }

    /// Turns stored numbers into what they mean: floats into whole numbers, units of time into nanoseconds.
    fn convert(&self, out: &mut [i64]) -> Result<(), String> {
        if self.numbers.float {
            for place in out {
                *place = self.whole(*place)?;
            }
            return Ok(());
        }
        let (Unit::Span(unit_ns) | Unit::Clock(unit_ns)) = self.numbers.unit else { return Ok(()) };
        for place in out.iter_mut().filter(|_| unit_ns != 1) {
            // The least number stands for no time at all (NaT) in what numpy writes.
            *place = match *place {
                i64::MIN => self.missing,
                number => number
                    .checked_mul(unit_ns)
                    .ok_or_else(|| format!("{number} times {unit_ns} ns is too long a time"))?,
            };
        }
        Ok(())
    }

    /// Returns the whole number that a stored float is; NaN is a missing value.
    fn whole(&self, bits: i64) -> Result<i64, String> {
        let short = self.numbers.short;
        let number = if short { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits as u64) };
        if number.is_nan() {
            return Ok(self.missing);
        }
        let rounded = (number + 0.5).floor();
        if number.abs() >= i64::MAX as f64 || !self.fractions && number.fract() != 0.0 {
            return Err(format!("{number} is not a whole number"));
        }
        Ok(if number.fract() == 0.0 { number as i64 } else { rounded as i64 })
    }

    /// Prepares to read the rows of `page` or, if it is a dictionary page, stores its values.
    fn begin(&mut self, page: Page) -> Result<(), String> {
        let data = &self.pages.data[..page.length];
        let levels = match page.content {
            Content::Dictionary => {
                if ![PLAIN, PLAIN_DICTIONARY].contains(&page.encoding) {
                    return Err(unknown(page.encoding));
                }
                self.dictionary.clear();
                self.dictionary.extend(numbers(data, self.numbers.short, self.numbers.unsigned));
                return Ok(());
            }
            Content::Data { levels: _ } if !self.optional => 0..0,
            Content::Data { levels: Some(length) } => 0..length,
            Content::Data { levels: None } => {
                if page.level_encoding != RLE {
                    return Err(unknown(page.level_encoding));
                }
                let length = data.get(..4).ok_or(ENDS)?.try_into().expect("four bytes");
                4..4usize.saturating_add(u32::from_le_bytes(length) as usize)
            }
        };
        if levels.end > data.len() {
            return Err(ENDS.into());
        }
        self.levels = self.optional.then(|| Hybrid::new(1, levels.start, levels.end)).transpose()?;
        let at = match page.content {
            Content::Data { levels: Some(length) } => length,
            _ => levels.end,
        };
        self.values = match page.encoding {
            PLAIN => Values::Plain(at),
            // A page without any values may lack the width of its indices.
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                let bits = data.get(at).map_or(0, |&bits| u32::from(bits));
                Values::Dictionary(Hybrid::new(bits, (at + 1).min(data.len()), data.len())?)
            }
            DELTA_BINARY_PACKED if !self.numbers.float => Values::Delta(Delta::new(data, at, data.len())?),
            BYTE_STREAM_SPLIT => {
                let count = (data.len() - at.min(data.len())) / width(self.numbers.short);
                Values::Split { from: at, count, next: 0 }
            }
            other => return Err(unknown(other)),
        };
        self.end = data.len();
        self.left = page.values;
        Ok(())
    }
}

fn width(short: bool) -> usize {
    if short { 4 } else { 8 }
}

/// Reads the numbers that are stored as plain bytes.
fn numbers(bytes: &[u8], short: bool, unsigned: bool) -> impl Iterator<Item = i64> {
    bytes.chunks_exact(width(short)).map(move |bytes| {
        if short {
            widened(i32::from_le_bytes(bytes.try_into().expect("four bytes")), unsigned)
        } else {
            i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        }
    })
}

fn widened(number: i32, unsigned: bool) -> i64 {
    if unsigned { i64::from(number as u32) } else { i64::from(number) }
}

fn unknown(encoding: i64) -> String {
    format!("encoding {encoding}, which ftlab does not read")
}
