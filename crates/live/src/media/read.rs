//! Reads the head and the records of a media file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use ftlab_core::sim::Identity;
use rustix::fs::SeekFrom;

use super::layout::{BLOCK, BlockRecord, HEAD, Head, Left, MAGIC, Page, Shape, VERSION, sum};

/// Bytes of records read at a time.
const CHUNK: u64 = 1 << 20;
/// Upper bound on the number of differing keys that a message names.
const MOST_NAMED: usize = 8;

/// Returns the error of a damaged file.
pub(super) fn damaged<T>(why: String) -> io::Result<T> {
    Err(io::Error::new(ErrorKind::InvalidData, why))
}

/// Reads the head of a file, and checks that the file belongs to this device.
pub(super) fn read_head(file: &File, identity: &Identity) -> Result<Head, String> {
    let mut bytes = vec![0; HEAD as usize];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) => return Err(format!("cannot read: {error}")),
        }
    }
    let bytes = &bytes[..length];
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Err("not a media file of ftlab".into()) };
    let short = "damaged: it ends early";
    let (version, rest) = rest.split_first_chunk().ok_or(short)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(format!(
            "a media file of version {version}, this version of ftlab reads version {VERSION}"
        ));
    }
    let (length, rest) = rest.split_first_chunk().ok_or(short)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (text, rest) = rest.split_at_checked(length).ok_or(short)?;
    let (found, _) = rest.split_first_chunk().ok_or(short)?;
    if sum(&bytes[..MAGIC.len() + 8 + length]) != u64::from_le_bytes(*found) {
        return Err("damaged: its head is not as it was written".into());
    }
    let head: Head = serde_json::from_slice(text).map_err(|error| format!("damaged: {error}"))?;
    let shown = |value: Option<&String>| value.map_or_else(|| "not set".to_owned(), Clone::clone);
    let keys: BTreeSet<&String> = head.device.keys().chain(identity.keys()).collect();
    let differing: Vec<String> = keys
        .into_iter()
        .filter(|key| head.device.get(*key) != identity.get(*key))
        .map(|key| {
            format!("  {key}: {} there, {} here", shown(head.device.get(key)), shown(identity.get(key)))
        })
        .collect();
    match differing.len() {
        0 => Ok(head),
        more if more > MOST_NAMED => Err(format!(
            "of another device:\n{}\n  and {} more keys",
            differing[..MOST_NAMED].join("\n"),
            more - MOST_NAMED
        )),
        _ => Err(format!("of another device:\n{}", differing.join("\n"))),
    }
}

/// The records of all blocks, those of the pages that are not erased, and the checkpoint.
pub(super) type Flash = (Vec<BlockRecord>, Vec<(u32, Page)>, Option<Vec<u8>>);

/// Reads all records, and the checkpoint.
pub(super) fn read_flash(file: &File, shape: &Shape, length: u64) -> io::Result<Flash> {
    let mut left = [0; Left::BYTES];
    file.read_exact_at(&mut left, shape.left())?;
    let Some(left) = Left::decode(&left) else { return damaged("how it was left is incomplete".into()) };
    // Without a checkpoint, what follows the flash is one that a killed process was writing or removing.
    let end = shape.checkpoint() + left.bytes;
    if length < end || (left.bytes > 0 && length > end) {
        return damaged(format!("it has {length} bytes, not {end}"));
    }
    let mut checkpoint = vec![0; left.bytes as usize];
    file.read_exact_at(&mut checkpoint, shape.checkpoint())?;
    if left.bytes > 0 && sum(&checkpoint) != left.sum {
        return damaged("its checkpoint is not as it was written".into());
    }
    let mut records = vec![0; shape.blocks as usize * BLOCK];
    file.read_exact_at(&mut records, shape.block(0))?;
    let blocks: Option<Vec<BlockRecord>> = records.chunks_exact(BLOCK).map(BlockRecord::decode).collect();
    let Some(blocks) = blocks else { return damaged("the record of a block is incomplete".into()) };
    let mut pages = Vec::new();
    let each = u64::from(shape.spare_bytes);
    let (mut at, end) = (shape.spare(0), shape.spare(shape.pages()));
    let mut bytes = Vec::new();
    while let Some(from) = next_data(file, at).filter(|&from| from < end) {
        // Records do not cross the boundaries of chunks: both sizes are powers of two, and the parts begin at page
        // boundaries.
        at = from / each * each;
        bytes.resize((end - at).min(CHUNK) as usize, 0);
        file.read_exact_at(&mut bytes, at)?;
        for (page, record) in ((at - shape.spare(0)) / each..).zip(bytes.chunks_exact(each as usize)) {
            if record.iter().all(|&byte| byte == 0) {
                continue;
            }
            let Some(found) = Page::decode(record) else {
                return damaged(format!("the record of page {page} is incomplete"));
            };
            // What was programmed before the last erase of its block is void.
            if found.number > blocks[(page / u64::from(shape.pages_per_block)) as usize].number {
                pages.push((page as u32, found));
            }
        }
        at += bytes.len() as u64;
    }
    pages.sort_by_key(|(_, page)| page.number);
    Ok((blocks, pages, (left.bytes > 0).then_some(checkpoint)))
}

/// Returns the offset, at or after `from`, of the next bytes of the file that were ever written; `None` if there are
/// none.
fn next_data(file: &File, from: u64) -> Option<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(at) => Some(at),
        Err(rustix::io::Errno::NXIO) => None,
        // If the file system cannot say, everything is read.
        Err(_) => Some(from),
    }
}
