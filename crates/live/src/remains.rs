//! What an adversarial cut leaves next to a media file: the unflushed writes with their data, which of them persist,
//! and the requests of the last second.
//!
//! The file `MEDIA.cut` is a line of JSON, followed by the bytes that it describes: `docs/cut-the-power.md`, "The file
//! of a cut", has the format. `persists` may be edited: the device takes up the file when it is opened next, and
//! removes it.

use std::io;
use std::path::{Path, PathBuf};

use ftlab_core::workload::Op;
use ftlab_trace::atomic::{OutputError, OutputFile, reason};
use serde::{Deserialize, Serialize};

use crate::unflushed::{self, Bytes, SECTOR, Sector, Unflushed, Write};

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    /// Number of the media file's last program or erase.
    number: u64,
    seed: u64,
    time_ns: u64,
    sectors: Vec<(u64, u64)>,
    writes: Vec<Described>,
    #[serde(default)]
    recent: Vec<Event>,
}

#[derive(Serialize, Deserialize)]
struct Described {
    number: u64,
    op: String,
    offset: u64,
    length: u64,
    end_ns: Option<u64>,
    /// Older files do not have it.
    #[serde(default)]
    failed: bool,
    zero: bool,
    persists: String,
}

#[derive(Serialize, Deserialize)]
struct Event {
    number: u64,
    op: String,
    offset: u64,
    length: u64,
    fua: bool,
    begin_ns: u64,
    end_ns: Option<u64>,
    /// Older files do not have it.
    #[serde(default)]
    failed: bool,
}

/// Returns where the file of a media file is.
pub fn beside(media: &Path) -> PathBuf {
    let mut name = media.as_os_str().to_owned();
    name.push(".cut");
    name.into()
}

/// Writes the file of a cut at `time_ns` with this seed; `number` is that of the media file's last program or erase.
///
/// # Errors
/// The system's error; then there is no file, so that nothing persists but what the flash holds.
pub fn leave(
    (media, number): (&Path, u64),
    unflushed: &Unflushed,
    (time_ns, seed): (u64, u64),
) -> Result<(), OutputError> {
    let mut sectors: Vec<(&u64, &Sector)> = unflushed.sectors.iter().collect();
    sectors.sort_unstable_by_key(|(number, _)| **number);
    let described = |write: &Write| Described {
        number: write.number,
        op: write.op.name().into(),
        offset: write.range.0,
        length: write.range.1 - write.range.0,
        end_ns: write.end_ns,
        failed: write.failed,
        zero: write.data.is_empty(),
        persists: write.persists.iter().map(|&persists| if persists { '1' } else { '0' }).collect(),
    };
    let event = |event: &unflushed::Event| Event {
        number: event.number,
        op: event.op.name().into(),
        offset: event.range.0,
        length: event.range.1 - event.range.0,
        fua: event.fua,
        begin_ns: event.times_ns.0,
        end_ns: event.times_ns.1,
        failed: event.failed,
    };
    let head = Head {
        version: VERSION,
        number,
        seed,
        time_ns,
        sectors: sectors.iter().map(|(number, sector)| (**number, sector.since)).collect(),
        writes: unflushed.writes.iter().map(described).collect(),
        recent: unflushed.recent.iter().map(event).collect(),
    };
    let mut bytes = serde_json::to_vec(&head).expect("plain data are JSON");
    bytes.push(b'\n');
    sectors.iter().for_each(|(_, sector)| bytes.extend_from_slice(&sector.bytes[..]));
    unflushed.writes.iter().for_each(|write| bytes.extend_from_slice(&write.data));
    // Only the owner may read the media file, and this has the same data.
    OutputFile::replace(&beside(media), 0o600)?.complete_with(&bytes)
}

/// Reads the file of a media file whose last program or erase has this number; returns what each sector holds, in
/// ascending order, or `None` if there is no file.
///
/// # Errors
/// A message: it cannot be read, is damaged, or is of a later cut.
pub fn read(media: &Path, last: u64) -> Result<Option<Vec<(u64, Sector)>>, String> {
    let bytes = match std::fs::read(beside(media)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read: {}", reason(&error))),
    };
    parse(&bytes, last).map(Some)
}

fn parse(bytes: &[u8], last: u64) -> Result<Vec<(u64, Sector)>, String> {
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or("damaged: it ends early")?;
    let head: Head = serde_json::from_slice(&bytes[..end]).map_err(|error| format!("damaged: {error}"))?;
    if head.version != VERSION {
        return Err(format!("of version {}, this version of ftlab reads version {VERSION}", head.version));
    }
    // It may be earlier: a process may have been killed while it wrote what persists.
    if head.number > last {
        return Err("of a later cut than the media file, which may be a copy put back: remove it, or put the file of \
                    that cut back"
            .into());
    }
    let mut rest = &bytes[end + 1..];
    let mut take = |count: u64| {
        let found = usize::try_from(count).ok().and_then(|count| rest.split_at_checked(count));
        let (taken, left) = found.ok_or("damaged: it ends early")?;
        rest = left;
        Ok::<&[u8], String>(taken)
    };
    let mut sectors = Vec::with_capacity(head.sectors.len());
    for (number, since) in head.sectors {
        let bytes: Bytes = take(SECTOR)?.try_into().expect("a sector's bytes");
        sectors.push((number, Sector::known(bytes, since)));
    }
    let mut writes = Vec::with_capacity(head.writes.len());
    for Described { number, op, offset, length, end_ns, failed, zero, persists } in head.writes {
        let end = offset.checked_add(length).ok_or("damaged: a write ends nowhere")?;
        let data = if zero { Vec::new() } else { take(length)?.to_vec() };
        let persists: Vec<bool> = persists.bytes().map(|byte| byte == b'1').collect();
        let op = if op == Op::Trim.name() { Op::Trim } else { Op::Write };
        let (range, data) = ((offset, end), data.into());
        let write = Write { number, op, range, data, end_ns, failed, fua: false, persists };
        if write.persists.len() as u64 != write.sectors().end - write.sectors().start {
            return Err(format!("damaged: persists of write {number} is not a digit for each sector"));
        }
        writes.push(write);
    }
    Ok(unflushed::contents(sectors.into_iter(), writes.iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a copy of the media file that had been put back took what a later cut had left.
    #[test]
    fn what_a_later_cut_has_left_is_refused() {
        let head = b"{\"version\":1,\"number\":5,\"seed\":0,\"time_ns\":0,\"sectors\":[],\"writes\":[]}\n";
        assert!(parse(head, 4).is_err_and(|why| why.starts_with("of a later cut")));
        assert!([5, 6].iter().all(|&last| parse(head, last).is_ok_and(|sectors| sectors.is_empty())));
    }

    /// Regression: a link planted under the name that the file has until it is complete was followed, and the file of a
    /// stranger overwritten.
    #[test]
    fn what_a_cut_leaves_goes_through_no_link() {
        let folder = std::env::temp_dir().join(format!("ftlab-remains-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (media, victim) = (folder.join("m"), folder.join("victim"));
        std::fs::write(&victim, "theirs").unwrap();
        for name in ["m.cut", "m.cut.part"] {
            std::os::unix::fs::symlink(&victim, folder.join(name)).unwrap();
        }
        leave((&media, 5), &Unflushed::new(512), (0, 0)).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"theirs");
        let meta = std::fs::symlink_metadata(beside(&media)).unwrap();
        assert!(
            meta.is_file() && std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777 == 0o600
        );
        assert!(read(&media, 5).unwrap().is_some_and(|sectors| sectors.is_empty()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
