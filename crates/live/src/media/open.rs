//! Opens an existing media file: reads its contents, and restores the device that continues with it.

use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ftlab_core::flash::media::{Change, Kind, Media, Tape};
use ftlab_core::ftl::maps_blocks;
use ftlab_core::ftl::recovery::{Flaw, Recovery};
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, Kept, Operations, Power, Prepared};
use ftlab_core::util::NONE;
use rustix::fs::SeekFrom;

use super::layout::{BLOCK, BlockRecord, HEAD, Left, MAGIC, Page, Shape, VERSION, sum};
use super::{Head, Nand, Says, Stored, Stuff, failed, lock, slots};
use crate::LiveError;
use crate::payload::Payload;

/// Bytes of records read at a time.
const CHUNK: u64 = 1 << 20;
/// Upper bound on the number of differing keys that a message names.
const MOST_NAMED: usize = 8;

/// The state in which a file was found.
#[derive(Clone, Copy, Debug)]
pub enum Opened {
    /// The file did not exist and was made.
    Made,
    /// The media's checkpoint was loaded.
    Checkpoint,
    /// The FTL was rebuilt from flash alone.
    Recovered {
        /// What recovery read and wrote.
        recovery: Recovery,
        /// Simulated time that recovery took, ns.
        elapsed_ns: u64,
    },
}

/// A file that holds the flash of this device.
pub struct Found {
    nand: Nand,
    identity: Identity,
    /// Pages that are not erased, in the order of their programs.
    pages: Vec<(u32, Page)>,
    checkpoint: Option<Vec<u8>>,
}

impl Found {
    /// Reads the file; returns `None` if it does not exist or is empty. Nothing is written.
    ///
    /// # Errors
    /// [`LiveError::User`] if it belongs to another device, has another version, is damaged, or is in use.
    pub fn read(path: &Path, settings: &Settings, identity: &Identity) -> Result<Option<Found>, LiveError> {
        let refused = |why: String| LiveError::User(format!("{}: {why}", path.display()));
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, "cannot read", &error)),
        };
        if !meta.is_file() {
            return Err(refused("a media file is a regular file, and this is not one".into()));
        }
        if meta.len() == 0 {
            return Ok(None);
        }
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| failed(path, "cannot open", &error))?;
        lock(&file, path)?;
        let head = read_head(&file, identity).map_err(refused)?;
        let slots = settings.flash.unit_bytes() / settings.ftl.logical_page_bytes;
        if Shape::new(settings, 1).page_bytes != head.shape.page_bytes || slots == 0 {
            return Err(refused("damaged: its pages are not those of the device".into()));
        }
        let read = read_flash(&file, &head.shape, meta.len());
        let (blocks, pages, checkpoint) = read.map_err(|error| match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof => refused(format!("damaged: {error}")),
            _ => failed(path, "cannot read", &error),
        })?;
        let last = pages.iter().map(|(_, page)| page.number);
        let number = blocks.iter().map(|block| block.number).chain(last).max().unwrap_or(0);
        let nand = Nand { file, path: path.into(), shape: head.shape, blocks, number, buffer: Vec::new() };
        Ok(Some(Found { nand, identity: identity.clone(), pages, checkpoint }))
    }

    /// Restores the device from the checkpoint if there is one, else by recovery from flash alone. From here
    /// on the file is written.
    ///
    /// # Errors
    /// [`LiveError`]: the file is damaged or cannot be written, or the FTL cannot be recovered.
    pub fn bring_up(mut self, settings: &Settings) -> Result<(Prepared, Stored), LiveError> {
        let path = self.nand.path.clone();
        let refused = |why: String| LiveError::User(format!("{}: {why}", path.display()));
        let media = self.media(settings);
        if let Some(fault) = media.fault() {
            return Err(refused(format!("damaged: {fault}")));
        }
        let mut payload = Payload::new(slots(settings), settings.ftl.logical_page_bytes);
        let last = self.pages.iter().flat_map(|(_, page)| &page.slots).map(|slot| slot.spare.seq).max();
        let tape = Tape::new(last.unwrap_or(0));
        let words = self.contents(settings, &mut payload).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => refused(format!("damaged: {error}")),
            _ => failed(&path, "cannot read", &error),
        })?;
        let hold = |tape: &Tape| {
            words.iter().for_each(|(&(kind, owner, seq), says)| tape.hold(kind, owner, seq, says.clone()));
        };
        hold(&tape);
        let loaded = self
            .checkpoint
            .take()
            .and_then(|bytes| Prepared::load(settings, &self.identity, &mut bytes.as_slice(), true).ok());
        let unwritten = |error: io::Error| failed(&path, "cannot write", &error);
        let mut says = Says::default();
        let Found { mut nand, identity, pages, .. } = self;
        let (prepared, opened, tape) = if let Some(mut prepared) = loaded {
            prepared.resume(&tape, &media);
            hold(&tape);
            nand.forget_checkpoint().map_err(unwritten)?;
            (prepared, Opened::Checkpoint, tape)
        } else {
            let kept = Kept::default();
            let operations = Operations::default();
            let mut power = Power { media, tape, operations, kept, reliability: None };
            let found = power.recover(settings, Flaw::default());
            let fault = |what| ftlab_core::sim::RunError::Check(format!("recovery: {what}"));
            let (ftl, recovery, elapsed_ns) = found.map_err(fault)?;
            nand.forget_checkpoint().map_err(unwritten)?;
            let slots_per_block = payload.slots() / nand.shape.blocks;
            let mut copies = Copies { pages: &pages, lpns: settings.user_pages(), found: None };
            for change in power.tape.take_changes() {
                let sources = (&power.tape, &mut says);
                let stuff = copies.follow(&change, sources, (&mut payload, slots_per_block));
                nand.apply(&change, &stuff, &payload).map_err(unwritten)?;
                stuff.into_iter().for_each(|stuff| stuff.release(&mut payload));
            }
            power.tape.take_events();
            let prepared = Prepared::recovered(settings, ftl, &power.tape);
            (prepared, Opened::Recovered { recovery, elapsed_ns }, power.tape)
        };
        Ok((prepared, Stored { nand, tape, says, payload, identity, opened }))
    }

    /// Returns the flash in the form that the simulation uses.
    fn media(&self, settings: &Settings) -> Media {
        enum What<'a> {
            Erase(u32, bool),
            Page(u32, &'a Page),
        }
        let flash = &settings.flash;
        let mut media = Media::new(flash.luns(), flash.blocks_per_lun() as u32, flash.units_per_block(), 0);
        if maps_blocks(settings) {
            media.allow_gaps();
        }
        let mut order: Vec<(u64, What)> =
            self.pages.iter().map(|(page, record)| (record.number, What::Page(*page, record))).collect();
        for (number, block) in (0..).zip(&self.nand.blocks) {
            // The replay counts the last erase of the block again.
            let replayed = u32::from(block.number > 0 && !block.torn);
            media.set_erases(number, block.erases - replayed);
            if block.number > 0 {
                order.push((block.number, What::Erase(number, block.torn)));
            }
        }
        order.sort_by_key(|(number, _)| *number);
        for (_, what) in order {
            let (change, torn) = match what {
                What::Erase(block, torn) => (Change::Erase { block }, torn),
                What::Page(page, record) => {
                    let spares = record.slots.iter().map(|slot| slot.spare).collect();
                    let kind = record.kind.unwrap_or(Kind::Data);
                    (Change::Program { page, kind, spares }, record.kind.is_none())
                }
            };
            if torn { media.tear(change) } else { media.apply(change) }
        }
        media
    }

    /// Reads the contents of all pages: puts user data into `payload`, and returns the contents of the other pages.
    fn contents(&self, settings: &Settings, payload: &mut Payload) -> io::Result<Words> {
        let shape = &self.nand.shape;
        let mut words = Words::default();
        let mut bytes = vec![0; shape.page_bytes as usize];
        for (page, record) in &self.pages {
            let Some(kind) = record.kind.filter(|_| record.slots.iter().any(|slot| slot.bytes > 0)) else {
                continue;
            };
            self.nand.file.read_exact_at(&mut bytes, shape.payload(u64::from(*page)))?;
            if sum(&bytes) != record.sum {
                return damaged(format!("page {page} has another payload than was written"));
            }
            let count = record.slots.len() as u32;
            for (at, (slot, part)) in
                (0..).zip(record.slots.iter().zip(bytes.chunks_exact(bytes.len() / count as usize)))
            {
                let Some(part) = part.get(..slot.bytes as usize).filter(|part| !part.is_empty()) else {
                    continue;
                };
                if is_data(kind, slot.spare.owner, settings.user_pages()) {
                    if part.len() != payload.page_bytes() {
                        return damaged(format!("page {page} has slots of another size"));
                    }
                    payload.program(NONE, page * count + at, |into| into.copy_from_slice(part));
                } else {
                    let four = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four bytes"));
                    let says: Vec<u32> = part.chunks_exact(4).map(four).collect();
                    words.insert((kind, slot.spare.owner, slot.spare.seq), says.into());
                }
            }
        }
        Ok(words)
    }
}

/// The contents of pages that are not user data, by kind, owner and sequence number.
type Words = HashMap<(Kind, u32, u64), std::sync::Arc<[u32]>>;

/// Whether a slot holds a logical page.
pub(crate) fn is_data(kind: Kind, owner: u32, lpns: u64) -> bool {
    kind != Kind::Map && u64::from(owner) < lpns
}

/// Where recovery finds the bytes that it copies: a version has the same content wherever it is.
struct Copies<'a> {
    pages: &'a [(u32, Page)],
    lpns: u64,
    found: Option<HashMap<(u32, u64), u32>>,
}

impl Copies<'_> {
    /// Follows a program or an erase that recovery performs; returns what is programmed.
    fn follow(
        &mut self,
        change: &Change,
        (tape, says): (&Tape, &mut Says),
        (payload, slots_per_block): (&mut Payload, u32),
    ) -> Vec<Stuff> {
        let (page, kind, spares) = match change {
            Change::Program { page, kind, spares } => (*page, *kind, spares),
            Change::Erase { block } => {
                payload.erase(block * slots_per_block, slots_per_block);
                return Vec::new();
            }
        };
        let mut stuff = Vec::with_capacity(spares.len());
        for (slot, spare) in (page * spares.len() as u32..).zip(spares) {
            stuff.push(if is_data(kind, spare.owner, self.lpns) {
                payload.share(self.slot(spare.owner, spare.seq), slot);
                Stuff::Data(payload.hold(slot))
            } else {
                says.of(tape, kind, *spare)
            });
        }
        stuff
    }

    /// Returns a slot that holds this version of the owner's data.
    fn slot(&mut self, owner: u32, seq: u64) -> u32 {
        let found = self.found.get_or_insert_with(|| {
            let kept = self.pages.iter().filter(|(_, page)| page.kind.is_some_and(|kind| kind != Kind::Map));
            kept.flat_map(|(page, record)| {
                let slots = page * record.slots.len() as u32..;
                slots.zip(&record.slots).map(|(slot, at)| ((at.spare.owner, at.spare.seq), slot))
            })
            .collect()
        });
        found.get(&(owner, seq)).copied().unwrap_or(NONE)
    }
}

fn damaged<T>(why: String) -> io::Result<T> {
    Err(io::Error::new(ErrorKind::InvalidData, why))
}

/// Reads the head of a file, and checks that the file belongs to this device.
fn read_head(file: &File, identity: &Identity) -> Result<Head, String> {
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

type Flash = (Vec<BlockRecord>, Vec<(u32, Page)>, Option<Vec<u8>>);

/// Reads all records, and the checkpoint.
fn read_flash(file: &File, shape: &Shape, length: u64) -> io::Result<Flash> {
    let mut left = [0; Left::BYTES];
    file.read_exact_at(&mut left, shape.left())?;
    let Some(left) = Left::decode(&left) else { return damaged("how it was left is incomplete".into()) };
    if length != shape.checkpoint() + left.bytes {
        return damaged(format!("it has {length} bytes, not {}", shape.checkpoint() + left.bytes));
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
