//! The pages of a column, one in memory at a time.

use super::footer::ColumnChunk;
use super::thrift::{ENDS, Thrift};
use crate::lines::reason;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// Bytes of the largest page that is accepted: a bound on what a damaged header can ask for. Writers make
/// pages of about 1 MiB.
const MOST: u64 = 64 << 20;
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
                return Err(format!(
                    "a page of {} MiB; the most is {}: write the file in smaller pages or row groups",
                    header.packed.max(header.length) >> 20,
                    MOST >> 20
                ));
            }
            self.read(from, header.packed as usize)?;
            let length = header.length as usize;
            if self.data.len() < length + SLACK {
                self.data.resize(length + SLACK, 0);
            }
            self.unpack(&header, length)?;
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

    /// Fills `data` with the uncompressed content of the page whose bytes were read.
    fn unpack(&mut self, header: &Header, length: usize) -> Result<(), String> {
        // Levels of version 2 are never compressed.
        let plain = match header.content {
            Some(Content::Data { levels: Some(levels) }) => levels,
            _ => 0,
        };
        let codec = if header.compressed { self.part.codec } else { 0 };
        if plain > self.packed.len() || plain > length {
            return Err("levels are longer than their page".into());
        }
        let (levels, from) = self.packed.split_at(plain);
        let (to_levels, to) = self.data[..length].split_at_mut(plain);
        to_levels.copy_from_slice(levels);
        if to.is_empty() {
            return Ok(());
        }
        let unpacked = match codec {
            0 if from.len() == to.len() => {
                to.copy_from_slice(from);
                Some(to.len())
            }
            0 => None,
            1 => snap::raw::Decoder::new().decompress(from, to).ok(),
            2 => {
                let mut decoder = flate2::bufread::MultiGzDecoder::new(from);
                decoder.read_exact(to).ok().map(|()| to.len())
            }
            6 => self.zstd.decompress_to_buffer(from, to).ok(),
            7 => lz4_flex::block::decompress_into(from, to).ok(),
            _ => {
                let name = match codec {
                    3 => "lzo",
                    4 => "brotli",
                    5 => "Hadoop's lz4",
                    _ => "an unknown method",
                };
                return Err(format!(
                    "compressed by {name}; ftlab reads zstd, snappy, gzip and lz4_raw, and what is not compressed"
                ));
            }
        };
        if unpacked == Some(to.len()) { Ok(()) } else { Err("a page does not unpack to its length".into()) }
    }
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
