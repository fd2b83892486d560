//! Opens an existing media file: reads its contents, and restores the device that continues with it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ftlab_core::flash::media::{Change, Kind, Media, Tape};
use ftlab_core::ftl::recovery::{Flaw, Recovery};
use ftlab_core::ftl::{Ftl, maps_blocks};
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, Kept, Operations, Power, Prepared};
use ftlab_core::util::NONE;

use super::layout::{Page, Shape, sum};
use super::read::{damaged, read_flash, read_head};
use super::{Nand, Says, Stored, Stuff, failed, lock, slots};
use crate::LiveError;
use crate::payload::Payload;

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
    pub(super) checkpoint: Option<Vec<u8>>,
}

impl Found {
    /// Reads the file; returns `None` if it does not exist or is empty. Nothing is written.
    ///
    /// # Errors
    /// [`LiveError::User`] if it belongs to another device, has another version, is damaged, or is in use.
    pub fn read(path: &Path, settings: &Settings, identity: &Identity) -> Result<Option<Found>, LiveError> {
        Found::open(path, settings, identity, true)
    }

    /// Returns the number of the last program or erase.
    pub fn last(&self) -> u64 {
        self.nand.number
    }

    /// Reads the file as [`Found::read`] does; `written` says whether it is going to be written, by this process alone.
    pub(super) fn open(
        path: &Path,
        settings: &Settings,
        identity: &Identity,
        written: bool,
    ) -> Result<Option<Found>, LiveError> {
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
        let file = OpenOptions::new().read(true).write(written).open(path);
        let file = file.map_err(|error| failed(path, "cannot open", &error))?;
        lock(&file, path, written)?;
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
        let mut payload = Payload::new(slots(settings), settings.ftl.logical_page_bytes);
        let (media, tape, words) = self.flash(settings, Some(&mut payload))?;
        let hold = |tape: &Tape| {
            words.iter().for_each(|(&(kind, owner, seq), says)| tape.hold(kind, owner, seq, says.clone()));
        };
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
            let (power, (ftl, recovery, elapsed_ns)) = recover(settings, (media, tape))?;
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

    /// Returns the flash in the form that the simulation uses, a tape that goes on behind it and has the contents of
    /// the pages that hold no user data, and these contents. User data goes into `payload`, if there is one.
    pub(super) fn flash(
        &self,
        settings: &Settings,
        payload: Option<&mut Payload>,
    ) -> Result<(Media, Tape, Words), LiveError> {
        let path = &self.nand.path;
        let refused = |why: String| LiveError::User(format!("{}: {why}", path.display()));
        let media = self.media(settings);
        if let Some(fault) = media.fault() {
            return Err(refused(format!("damaged: {fault}")));
        }
        let last = self.pages.iter().flat_map(|(_, page)| &page.slots).map(|slot| slot.spare.seq).max();
        let tape = Tape::new(last.unwrap_or(0));
        let words = self.contents(settings, payload).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => refused(format!("damaged: {error}")),
            _ => failed(path, "cannot read", &error),
        })?;
        words.iter().for_each(|(&(kind, owner, seq), says)| tape.hold(kind, owner, seq, says.clone()));
        Ok((media, tape, words))
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

    /// Reads the contents of all pages: puts user data into `payload`, if there is one, and returns the contents of the
    /// other pages.
    fn contents(&self, settings: &Settings, mut payload: Option<&mut Payload>) -> io::Result<Words> {
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
                    let Some(payload) = &mut payload else { continue };
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

/// Returns the FTL that recovers from this flash, what that costs, and how long it takes, ns.
///
/// # Errors
/// [`LiveError::Run`]: a bug in ftlab.
pub(super) fn recover(
    settings: &Settings,
    (media, tape): (Media, Tape),
) -> Result<(Power, (Ftl, Recovery, u64)), LiveError> {
    let (operations, kept) = (Operations::default(), Kept::default());
    let mut power = Power { media, tape, operations, kept, reliability: None };
    let found = power.recover(settings, Flaw::default());
    let fault = |what| ftlab_core::sim::RunError::Check(format!("recovery: {what}"));
    let found = found.map_err(fault)?;
    Ok((power, found))
}

/// The contents of pages that are not user data, by kind, owner and sequence number.
pub(super) type Words = HashMap<(Kind, u32, u64), std::sync::Arc<[u32]>>;

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
