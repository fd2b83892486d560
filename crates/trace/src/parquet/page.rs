//! The pages of a column, one in memory at a time.

use super::footer::ColumnChunk;
use super::thrift::{ENDS, Thrift};
use crate::lines::reason;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// Bytes of the largest page that the format can have.
const MOST: u64 = i32::MAX as u64;
/// Bytes of a page for which memory is taken before its data shows that it has as many. Most writers make pages of
/// about 1 MiB; fastparquet makes one of a whole row group.
const TRUSTED: usize = 64 << 20;
/// Bytes after a page that may be touched when its data is read in words.
pub(super) const SLACK: usize = 16;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The values to which data pages refer by index.
    Dictionary,
    /// Rows: levels, then values.
    Data {
        /// Bytes of the levels; `None`: their length comes before them (data pages of version 1).
        levels: Option<usize>,
    },
}

/// A page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) content: Content,
    /// Number of values, including missing ones.
    pub(super) values: usize,
    /// Parquet's number for the encoding of the values.
    pub(super) encoding: i64,
    /// Parquet's number for the encoding of the levels, in version 1.
    pub(super) level_encoding: i64,
    /// Bytes of the page when uncompressed.
    pub(super) length: usize,
}

/// Reads the pages of a column's part of a row group.
pub(super) struct Pages {
    file: Arc<File>,
    part: ColumnChunk,
    packed: Vec<u8>,
    /// The page read last, followed by [`SLACK`] bytes.
    pub(super) data: Vec<u8>,
    zstd: zstd::bulk::Decompressor<'static>,
}

impl Pages {
    /// Makes a reader that has no pages yet; [`Pages::start`] must be called first.
    pub(super) fn new(file: Arc<File>) -> Pages {
        Pages {
            file,
            part: ColumnChunk::default(),
            packed: Vec::new(),
            data: Vec::new(),
            zstd: Default::default(),
        }
    }

    /// Goes to the first page of `part`.
    pub(super) fn start(&mut self, part: ColumnChunk) {
        self.part = part;
    }

    /// Reads the next page that holds rows or a dictionary.
    pub(super) fn next(&mut self) -> Result<Option<Page>, String> {
        while self.part.start < self.part.end {
            let (header, length) = self.header()?;
            self.part.start += length as u64;
            if header.packed > self.part.end - self.part.start {
                return Err(ENDS.into());
            }
            let from = self.part.start;
            self.part.start += header.packed;
            let Some(content) = header.content else { continue };
            if header.packed.max(header.length) > MOST {
                return Err("a page of more than 2 GiB".into());
            }
            self.read(from, header.packed as usize)?;
            let length = header.length as usize;
            self.unpack(&header, length)?;
            if self.packed.len() > TRUSTED {
                self.packed = Vec::new();
            }
            let Header { values, encoding, level_encoding, .. } = header;
            return Ok(Some(Page { content, values, encoding, level_encoding, length }));
        }
        Ok(None)
    }

    /// Returns the page header at the current position, and its length.
    fn header(&mut self) -> Result<(Header, usize), String> {
        /// Number of bytes read first, which suffices for most headers, and number of bytes read if it does not, which
        /// suffices for headers with the statistics of any numbers.
        const LENGTHS: [u64; 2] = [256, 64 << 10];
        let rest = self.part.end - self.part.start;
        self.read(self.part.start, LENGTHS[0].min(rest) as usize)?;
        let header = Header::read(&self.packed);
        if header.is_ok() || rest <= LENGTHS[0] {
            return header;
        }
        self.read(self.part.start, LENGTHS[1].min(rest) as usize)?;
        Header::read(&self.packed)
    }

    /// Reads `count` bytes of the file from `from` on into `packed`.
    fn read(&mut self, from: u64, count: usize) -> Result<(), String> {
        self.packed.resize(count, 0);
        let mut file = &*self.file;
        let outcome = file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(&mut self.packed));
        outcome.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => ENDS.into(),
            _ => reason(&error),
        })
    }

    /// Fills `data` with the uncompressed content of the page whose bytes were read, and with [`SLACK`] bytes.
    fn unpack(&mut self, header: &Header, length: usize) -> Result<(), String> {
        let codec = if header.compressed { self.part.codec } else { 0 };
        if codec == 0 {
            std::mem::swap(&mut self.packed, &mut self.data);
            return self.finish(self.data.len() == length, length);
        }
        // Levels of version 2 are never compressed.
        let plain = match header.content {
            Some(Content::Data { levels: Some(levels) }) => levels,
            _ => 0,
        };
        if plain > self.packed.len() || plain > length {
            return Err("levels are longer than their page".into());
        }
        let (levels, from) = self.packed.split_at(plain);
        self.data.clear();
        self.data.extend_from_slice(levels);
        let fits = length == plain || unpack(codec, from, &mut self.data, length, &mut self.zstd)?;
        self.finish(fits && self.data.len() == length, length)
    }

    fn finish(&mut self, fits: bool, length: usize) -> Result<(), String> {
        if !fits {
            return Err("a page does not unpack to its length".into());
        }
        self.data.resize(length + SLACK, 0);
        Ok(())
    }
}

/// Appends the uncompressed content of `from` to `data`, which then has `length` bytes if they fit; returns whether the
/// decoder was satisfied. No more memory is taken than [`TRUSTED`], or than the data asks for.
fn unpack(
    codec: i64,
    from: &[u8],
    data: &mut Vec<u8>,
    length: usize,
    zstd: &mut zstd::bulk::Decompressor,
) -> Result<bool, String> {
    let room = length - data.len();
    // One byte of LZ4 stands for at most 255, one of snappy for fewer.
    let is_bounded = room <= TRUSTED.max(from.len().saturating_mul(255));
    let stream = |decoder: &mut dyn Read, data: &mut Vec<u8>| {
        decoder.take(room as u64).read_to_end(data).is_ok_and(|read| read == room)
    };
    Ok(match codec {
        2 => stream(&mut flate2::bufread::MultiGzDecoder::new(from), data),
        4 => stream(&mut brotli_decompressor::Decompressor::new(from, 64 << 10), data),
        6 if room > TRUSTED => {
            zstd::Decoder::with_buffer(from).is_ok_and(|mut decoder| stream(&mut decoder, data))
        }
        1 | 5 | 6 | 7 if !is_bounded => false,
        1 | 5 | 6 | 7 => {
            let plain = data.len();
            data.resize(length, 0);
            let to = &mut data[plain..];
            let unpacked = match codec {
                1 => snap::raw::Decoder::new().decompress(from, to).ok(),
                6 => zstd.decompress_to_buffer(from, to).ok(),
                5 if hadoop(from, to).is_some() => Some(room),
                // Others wrote the block as it is under this number: fastparquet still does.
                _ => lz4_flex::block::decompress_into(from, to).ok(),
            };
            unpacked == Some(room)
        }
        _ => {
            let name = if codec == 3 { "lzo" } else { "an unknown method" };
            return Err(format!(
                "compressed by {name}; ftlab reads zstd, snappy, gzip, brotli, lz4 and what is not compressed"
            ));
        }
    })
}

/// Unpacks LZ4 as Hadoop frames it: the bytes of a part, then its blocks, each after its own length; `None` if it is
/// not that.
fn hadoop(mut from: &[u8], mut to: &mut [u8]) -> Option<()> {
    fn number(from: &mut &[u8]) -> Option<usize> {
        let (number, rest) = from.split_first_chunk::<4>()?;
        *from = rest;
        Some(u32::from_be_bytes(*number) as usize)
    }
    while !to.is_empty() {
        let mut left = number(&mut from)?;
        while left > 0 {
            let length = number(&mut from)?;
            let (block, rest) = from.split_at_checked(length)?;
            let unpacked = lz4_flex::block::decompress_into(block, to).ok()?;
            left = left.checked_sub(unpacked).filter(|_| unpacked > 0)?;
            (from, to) = (rest, to.split_at_mut(unpacked).1);
        }
    }
    from.is_empty().then_some(())
}

/// The header of a page.
struct Header {
    /// What the page holds; `None`: neither rows nor a dictionary.
    content: Option<Content>,
    /// Bytes of the page in the file.
    packed: u64,
    /// Bytes of the page when uncompressed.
    length: u64,
    compressed: bool,
    values: usize,
    encoding: i64,
    level_encoding: i64,
}

impl Header {
    fn read(data: &[u8]) -> Result<(Header, usize), String> {
        let mut header = Header {
            content: None,
            packed: 0,
            length: 0,
            compressed: true,
            values: 0,
            encoding: 0,
            level_encoding: 3,
        };
        let mut thrift = Thrift::new(data);
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (id, kind) {
                (2, _) => header.length = thrift.size(kind)?,
                (3, _) => header.packed = thrift.size(kind)?,
                (5 | 7 | 8, 12) => header.read_content(&mut thrift, id)?,
                _ => thrift.skip(kind)?,
            }
        }
        Ok((header, thrift.position()))
    }

    /// Reads the struct of a page's kind: 5 is a data page of version 1, 8 of version 2, 7 a dictionary.
    fn read_content(&mut self, thrift: &mut Thrift, page: i64) -> Result<(), String> {
        let (mut last, mut levels) = (0, 0u64);
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match (page, id) {
                (_, 1) => self.values = thrift.size(kind)? as usize,
                (5 | 7, 2) | (8, 4) => self.encoding = thrift.int(kind)?,
                (5, 3) => self.level_encoding = thrift.int(kind)?,
                (8, 5 | 6) => levels = levels.saturating_add(thrift.size(kind)?),
                (8, 7) => self.compressed = kind != 2,
                _ => thrift.skip(kind)?,
            }
        }
        self.content = Some(match page {
            7 => Content::Dictionary,
            5 => Content::Data { levels: None },
            _ => Content::Data { levels: Some(usize::try_from(levels).unwrap_or(usize::MAX)) },
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the content that a codec unpacks to, if it has this length.
    fn unpacked(codec: i64, from: &[u8], length: usize) -> Option<Vec<u8>> {
        let mut data = b"levels".to_vec();
        let fits = unpack(codec, from, &mut data, 6 + length, &mut Default::default()).expect("it is known");
        (fits && data.len() == 6 + length).then(|| data.split_off(6))
    }

    /// Spark frames LZ4 as Hadoop does: the length of a part, then blocks with a length each. fastparquet writes the
    /// block alone under the same number.
    #[test]
    fn both_kinds_of_codec_5() {
        let halves = [vec![7; 5000], (0..200).collect::<Vec<u8>>()];
        let whole = halves.concat();
        let block = |data: &[u8]| lz4_flex::block::compress(data);
        let framed = |data: &[u8]| [&(block(data).len() as u32).to_be_bytes()[..], &block(data)].concat();
        let long = |data: &[u8]| (data.len() as u32).to_be_bytes();
        let one_part = [&long(&whole)[..], &framed(&halves[0]), &framed(&halves[1])].concat();
        let two_parts =
            [&long(&halves[0])[..], &framed(&halves[0]), &long(&halves[1]), &framed(&halves[1])].concat();
        for packed in [&one_part, &two_parts, &block(&whole)] {
            assert_eq!(unpacked(5, packed, whole.len()).as_ref(), Some(&whole));
            assert_eq!(unpacked(5, packed, whole.len() - 1), None);
            assert_eq!(unpacked(5, &packed[..packed.len() - 1], whole.len()), None);
        }
        assert_eq!(unpacked(7, &block(&whole), whole.len()), Some(whole));
    }

    /// A header that asks for more than the data can have gets no memory for it.
    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for codec in [1, 2, 4, 5, 6, 7] {
            assert_eq!(unpacked(codec, &[0; 40], i32::MAX as usize), None, "{codec}");
        }
        assert!(unpack(3, &[0], &mut Vec::new(), 1, &mut Default::default()).unwrap_err().contains("lzo"));
    }
}
