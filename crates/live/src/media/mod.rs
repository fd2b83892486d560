//! The flash in a file: the payload and spare area of every page, and the erase counts. It survives the process,
//! however that ends.
//!
//! Each change of a page or a block is one record, written after the payload that it describes: a page counts as
//! programmed once its record is complete. An erase rewrites the record of its block, which voids everything
//! programmed there before. So a process that is killed leaves the flash as it was between two operations, never in
//! the middle of one.

mod layout;
mod load;
mod open;
mod read;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ftlab_core::flash::media::{self, Change, Kind, Spare, Tape};
use ftlab_core::ftl::Inspect;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, Power, Prepared};
use rustix::fs::{FallocateFlags, FlockOperation};

use crate::LiveError;
use crate::payload::{Content, Payload};
use layout::{BlockRecord, HEAD, Head, Left, MAGIC, Page, Shape, Slot, VERSION, sum};
pub use load::{is_media, load};
pub(crate) use open::is_data;
pub use open::{Found, Opened};

/// What a slot is programmed with.
#[derive(Clone, Debug)]
pub enum Stuff {
    /// Nothing is stored: the slot reads as zeroes.
    Nothing,
    /// The user's data.
    Data(Content),
    /// The contents of a translation page, or of a page of trims.
    Words(Arc<[u32]>),
}

impl Stuff {
    /// Releases the content, if it is user data.
    pub fn release(self, payload: &mut Payload) {
        if let Stuff::Data(content) = self {
            payload.release(content);
        }
    }
}

/// The media file, which is written as the flash changes.
pub struct Nand {
    file: File,
    path: PathBuf,
    shape: Shape,
    blocks: Vec<BlockRecord>,
    /// Sequence number of the last program or erase.
    number: u64,
    /// The payload of the page being written.
    buffer: Vec<u8>,
}

/// Flash in a file, and what the device needs to continue with it.
pub struct Stored {
    /// The file.
    pub nand: Nand,
    /// The record of what the FTL decides.
    pub tape: Tape,
    /// The contents of the flash's mapping pages.
    pub says: Says,
    /// The payload of the flash's slots.
    pub payload: Payload,
    /// The keys of the device with their values.
    pub identity: Identity,
    /// The state in which the file was found.
    pub opened: Opened,
}

impl Nand {
    /// Makes a file for a prepared device; everything that preparation put on flash is written to it first.
    ///
    /// # Errors
    /// [`LiveError::User`]: the file's error, or a message that the FTL cannot lose power.
    pub fn create(
        path: &Path,
        settings: &Settings,
        identity: &Identity,
        prepared: &mut Prepared,
    ) -> Result<Stored, LiveError> {
        if settings.device.buffer.protects() {
            let why = "device.power_loss_protection does not go with flash in a file, which would have to hold the \
                       RAM of the write buffer too; set it to false, or keep the flash in memory";
            return Err(LiveError::User(why.into()));
        }
        let power = prepared.allow_cuts(settings).map_err(LiveError::User)?;
        let shape = Shape::new(settings, prepared.ftl().units().per_page);
        let beside = beside(path);
        let mut says = Says::default();
        let written = write_anew(&beside, shape, identity, (&power, &mut says))
            .and_then(|file| std::fs::rename(&beside, path).map(|()| file));
        let (file, blocks, number) = written.map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            failed(path, "cannot write", &error)
        })?;
        let nand = Nand { file, path: path.into(), shape, blocks, number, buffer: Vec::new() };
        let payload = Payload::new(slots(settings), settings.ftl.logical_page_bytes);
        Ok(Stored { nand, tape: power.tape, says, payload, identity: identity.clone(), opened: Opened::Made })
    }

    /// Returns the number of the last program or erase.
    pub fn last(&self) -> u64 {
        self.number
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a finished program or erase to the file.
    ///
    /// # Errors
    /// The system's error; the flash is then as it was before.
    pub fn apply(&mut self, change: &Change, stuff: &[Stuff], payload: &Payload) -> io::Result<()> {
        match change {
            Change::Program { page, kind, spares } => {
                self.program(u64::from(*page), *kind, spares, stuff, payload)
            }
            Change::Erase { block } => {
                let erases = self.blocks[*block as usize].erases + 1;
                self.erase(*block, BlockRecord { number: self.number + 1, erases, torn: false })
            }
        }
    }

    /// Records in the file that a power cut interrupted a program or an erase.
    ///
    /// # Errors
    /// The system's error; the flash is then as it was before.
    pub fn tear(&mut self, change: &Change) -> io::Result<()> {
        let number = self.number + 1;
        match change {
            Change::Program { page, .. } => {
                let torn = Page { number, kind: None, sum: 0, slots: Vec::new() };
                self.put(u64::from(*page), &torn)
            }
            Change::Erase { block } => {
                let erases = self.blocks[*block as usize].erases;
                self.erase(*block, BlockRecord { number, erases, torn: true })
            }
        }
    }

    fn program(
        &mut self,
        page: u64,
        kind: Kind,
        spares: &[Spare],
        stuff: &[Stuff],
        payload: &Payload,
    ) -> io::Result<()> {
        let bytes = self.shape.page_bytes as usize;
        self.buffer.clear();
        self.buffer.resize(bytes, 0);
        let mut slots = Vec::with_capacity(spares.len());
        let parts = self.buffer.chunks_exact_mut(bytes / spares.len());
        for ((&spare, stuff), part) in spares.iter().zip(stuff).zip(parts) {
            slots.push(Slot { spare, bytes: fill(part, stuff, payload)? });
        }
        let any = slots.iter().any(|slot| slot.bytes > 0);
        if any {
            self.file.write_all_at(&self.buffer, self.shape.payload(page))?;
        }
        let sum = if any { sum(&self.buffer) } else { 0 };
        self.put(page, &Page { number: self.number + 1, kind: Some(kind), sum, slots })
    }

    /// Writes a page's record: from here on the page counts as programmed.
    fn put(&mut self, page: u64, record: &Page) -> io::Result<()> {
        self.file.write_all_at(&record.encode(), self.shape.spare(page))?;
        self.number = record.number;
        Ok(())
    }

    fn erase(&mut self, block: u32, record: BlockRecord) -> io::Result<()> {
        self.file.write_all_at(&record.encode(), self.shape.block(block))?;
        self.blocks[block as usize] = record;
        self.number = record.number;
        let pages = u64::from(self.shape.pages_per_block);
        let first = u64::from(block) * pages;
        let from = self.shape.payload(first);
        // The space of void data is released, if the file system supports that.
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(&self.file, how, from, self.shape.payload(first + pages) - from);
        Ok(())
    }

    /// Adds to the erase count of every block.
    ///
    /// # Errors
    /// The system's error; the blocks before the failed one then have their new count.
    pub fn wear(&mut self, cycles: u32) -> io::Result<()> {
        for (block, known) in (0..).zip(&mut self.blocks) {
            let worn = BlockRecord { erases: known.erases.saturating_add(cycles), ..*known };
            self.file.write_all_at(&worn.encode(), self.shape.block(block))?;
            *known = worn;
        }
        Ok(())
    }

    /// Records how the file is left.
    fn leave(&self, left: Left) -> io::Result<()> {
        self.file.write_all_at(&left.encode(), self.shape.left())
    }

    /// Declares the checkpoint void: from here on only the flash counts.
    ///
    /// # Errors
    /// The system's error.
    pub fn forget_checkpoint(&self) -> io::Result<()> {
        self.leave(Left::default())?;
        self.file.set_len(self.shape.checkpoint())
    }

    /// Appends the FTL's state, if it is known, makes the file durable and unlocks it. Other processes can then use the
    /// file, even if it is still open in this one.
    ///
    /// # Errors
    /// The system's error; the flash is complete all the same.
    pub fn end(&self, checkpoint: Option<&[u8]>) -> io::Result<()> {
        if let Some(bytes) = checkpoint {
            self.file.write_all_at(bytes, self.shape.checkpoint())?;
            self.file.sync_all()?;
            self.leave(Left { bytes: bytes.len() as u64, sum: sum(bytes) })?;
        }
        self.file.sync_all()?;
        Ok(rustix::fs::flock(&self.file, FlockOperation::Unlock)?)
    }
}

/// Writes what a slot holds into `part`; returns the number of bytes.
fn fill(part: &mut [u8], stuff: &Stuff, payload: &Payload) -> io::Result<u32> {
    let too_long = || io::Error::new(ErrorKind::InvalidInput, "a page says more than fits into it");
    match stuff {
        Stuff::Nothing => Ok(0),
        Stuff::Data(content) => match payload.content(*content) {
            None => Ok(0),
            Some(bytes) => {
                part.get_mut(..bytes.len()).ok_or_else(too_long)?.copy_from_slice(bytes);
                Ok(bytes.len() as u32)
            }
        },
        Stuff::Words(words) => {
            let into = part.get_mut(..4 * words.len()).ok_or_else(too_long)?;
            into.chunks_exact_mut(4).zip(&words[..]).for_each(|(four, word)| {
                four.copy_from_slice(&word.to_le_bytes());
            });
            Ok(4 * words.len() as u32)
        }
    }
}

/// Returns the number of slots for user data.
fn slots(settings: &Settings) -> usize {
    (settings.flash.raw_bytes() / u64::from(settings.ftl.logical_page_bytes)) as usize
}

/// Returns the name that a file has while it is being written.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    name.into()
}

fn failed(path: &Path, what: &str, error: &io::Error) -> LiveError {
    LiveError::User(format!("{}: {what}: {}", path.display(), ftlab_trace::atomic::reason(error)))
}

/// Locks the file, so that no other process can write it while this one has it open, nor read it if it is `written`.
fn lock(file: &File, path: &Path, written: bool) -> Result<(), LiveError> {
    let how = match written {
        true => FlockOperation::NonBlockingLockExclusive,
        false => FlockOperation::NonBlockingLockShared,
    };
    rustix::fs::flock(file, how)
        .map_err(|_| LiveError::User(format!("{}: another process has it open", path.display())))
}

/// Writes the contents of the media to a new file; returns the file, its block records and the sequence number of the
/// last program.
fn write_anew(
    path: &Path,
    shape: Shape,
    identity: &Identity,
    (power, says): (&Power, &mut Says),
) -> io::Result<(File, Vec<BlockRecord>, u64)> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.set_len(shape.checkpoint())?;
    let text = serde_json::to_vec(&Head { shape, device: identity.clone() })?;
    let mut head = [&MAGIC[..], &VERSION.to_le_bytes(), &(text.len() as u32).to_le_bytes(), &text].concat();
    head.extend(sum(&head).to_le_bytes());
    if head.len() as u64 > HEAD {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the device has too many keys"));
    }
    let mut blocks = vec![BlockRecord::default(); shape.blocks as usize];
    let mut nand = Nand { file, path: path.into(), shape, blocks: Vec::new(), number: 0, buffer: Vec::new() };
    let empty = Payload::new(0, 1);
    let mut last = 0;
    for (block, known) in (0..).zip(&mut blocks) {
        known.erases = power.media.erases(block);
        if known.erases > 0 {
            nand.file.write_all_at(&known.encode(), shape.block(block))?;
        }
        for page in block * shape.pages_per_block..(block + 1) * shape.pages_per_block {
            let media::Page::Programmed { kind, spares, number } = power.media.page(page) else { continue };
            let stuff: Vec<Stuff> = spares.iter().map(|spare| says.of(&power.tape, *kind, *spare)).collect();
            nand.number = number - 1;
            nand.program(u64::from(page), *kind, spares, &stuff, &empty)?;
            last = last.max(*number);
        }
    }
    nand.leave(Left::default())?;
    nand.file.write_all_at(&head, 0)?;
    Ok((nand.file, blocks, last))
}

/// The contents of translation pages and pages of trims: for each page, the newest version that was put on flash.
/// A copy of a version has the same content.
#[derive(Default)]
pub struct Says(HashMap<(Kind, u32), Version>);

/// The sequence number of a version, and its content.
type Version = (u64, Arc<[u32]>);

impl Says {
    /// Returns what a slot is programmed with if it is not user data.
    pub fn of(&mut self, tape: &Tape, kind: Kind, Spare { owner, seq }: Spare) -> Stuff {
        if let Some(words) = tape.give(kind, owner, seq) {
            self.0.insert((kind, owner), (seq, words));
        }
        match self.0.get(&(kind, owner)) {
            Some((newest, words)) if *newest == seq => Stuff::Words(words.clone()),
            _ => Stuff::Nothing,
        }
    }
}
