//! A saved state: a file that holds a prepared device.
//!
//! The layout: eight bytes of magic, the format's number (32 bits, little-endian), then sections
//! ([`crate::util::codec`]), first a [`Header`], then the essentials of each part of the FTL: the maps, and the
//! sequences from which the part's own functions rebuild it. What is not saved cannot be wrong in a file; a part
//! refuses saved values that are impossible. A change of what is saved requires another [`FORMAT`]; a test compares the
//! bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::{Prepared, RunError};
use crate::flash::errors::Past;
use crate::ftl::{Ftl, Prepare};
use crate::metrics::Preconditioning;
use crate::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder, MOST_COUNTED};

/// First bytes of the file. The last two are not text, so that a transfer in text mode damages them.
const MAGIC: [u8; 8] = *b"ftlab\0\r\n";

/// Whether a saved state begins so.
pub fn is_state(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// Number of the format.
pub const FORMAT: u32 = 14;

/// An entry next to the keys of a header: reads could meet errors where the state was saved, and it ends with what each
/// block has gone through.
const HAS_PAST: &str = "(past)";

/// The largest number of differing keys that a message names.
const MOST_NAMED: usize = 8;

/// The keys that a state depends on ([`crate::settings::shapes_state`]), with their values as text.
pub type Identity = BTreeMap<String, String>;

/// The header, which precedes the state itself.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    identity: Identity,
    done: Preconditioning,
}

/// A saved state that cannot be used. The messages are worded to follow the file's name.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file is of another kind.
    #[error("not a saved state of ftlab")]
    Foreign,
    /// The file has another version of the format.
    #[error(
        "saved in format {0}, this version of ftlab reads format {FORMAT}; precondition anew and save it again"
    )]
    Format(u32),
    /// The state belongs to another device.
    #[error("saved from another device:\n{0}")]
    Differs(String),
    /// The file is not as it was written.
    #[error("damaged: {0}; precondition anew and save it again")]
    Damaged(String),
    /// The system reported an error.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// Check mode found a broken invariant: a bug in ftlab.
    #[error(transparent)]
    Check(RunError),
}

impl From<Damage> for StateError {
    fn from(damage: Damage) -> StateError {
        match damage {
            Damage::Read(error) => StateError::Read(error),
            other => StateError::Damaged(other.to_string()),
        }
    }
}

impl Prepared {
    /// Writes the device's state, which is valid for the settings in `identity`.
    ///
    /// # Errors
    /// The output's error.
    pub fn save(&self, identity: &Identity, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&MAGIC)?;
        out.write_all(&FORMAT.to_le_bytes())?;
        let mut header = Header { identity: identity.clone(), done: self.done.clone() };
        let past = self.work.past(0);
        if past.is_some() {
            header.identity.insert(HAS_PAST.into(), String::new());
        }
        let mut out = Encoder::new(out);
        out.value(&header)?;
        self.ftl.save(&mut out)?;
        past.map_or(Ok(()), |past| out.value(&past))
    }

    /// Reads the state that [`Prepared::save`] wrote for a device with the same identity.
    ///
    /// # Errors
    /// [`StateError`] if the state belongs to another device or is incomplete.
    ///
    /// # Panics
    /// If the settings were not checked.
    pub fn load(
        settings: &Settings,
        identity: &Identity,
        input: &mut dyn Read,
        check: bool,
    ) -> Result<Prepared, StateError> {
        read_format(input)?;
        let mut from = Decoder::new(input);
        let mut header: Header = from.value()?;
        let has_past = header.identity.remove(HAS_PAST).is_some();
        if let Some(text) = difference(&header.identity, identity) {
            return Err(StateError::Differs(text));
        }
        let ftl = Ftl::load(settings, check, &mut from)?;
        let past = if has_past { Some(read_past(settings, &mut from)?) } else { None };
        from.end()?;
        let mut prepared = Prepared::with(settings, ftl, header.done, check);
        if past.is_some() {
            prepared.work.set_past(past, |_| true);
        }
        prepared.verify("in the saved state").map_err(StateError::Check)?;
        Ok(prepared)
    }
}

/// Reads what the blocks have gone through.
fn read_past(settings: &Settings, from: &mut Decoder) -> Result<Vec<Past>, Damage> {
    let past: Vec<Past> = from.value()?;
    let flash = &settings.flash;
    if past.len() as u64 != u64::from(flash.luns()) * flash.blocks_per_lun() {
        return Damage::impossible(format!("it tells the age of {} blocks", past.len()));
    }
    match past.iter().filter_map(|block| block.age_ns).max() {
        Some(age_ns) if age_ns > MOST_COUNTED => Damage::impossible("data in it are older than flash"),
        _ => Ok(past),
    }
}

/// Reads the beginning of the file, up to the first section.
fn read_format(input: &mut dyn Read) -> Result<(), StateError> {
    let mut start = Vec::with_capacity(12);
    input.take(12).read_to_end(&mut start).map_err(StateError::Read)?;
    let Some((magic, format)) = start.split_first_chunk::<8>() else {
        // If this is the beginning of a state, the rest was cut off.
        let cut = !start.is_empty() && MAGIC.starts_with(&start);
        return Err(if cut { Damage::Truncated.into() } else { StateError::Foreign });
    };
    if *magic != MAGIC {
        return Err(StateError::Foreign);
    }
    match format.try_into().map(u32::from_le_bytes) {
        Ok(FORMAT) => Ok(()),
        Ok(other) => Err(StateError::Format(other)),
        Err(_) => Err(Damage::Truncated.into()),
    }
}

/// Returns the keys that differ, one per line; `None` if none do.
fn difference(saved: &Identity, wanted: &Identity) -> Option<String> {
    let keys: BTreeSet<&String> = saved.keys().chain(wanted.keys()).collect();
    let shown = |value: Option<&String>| value.map_or_else(|| "not set".to_owned(), Clone::clone);
    let lines: Vec<String> = keys
        .into_iter()
        .filter(|key| saved.get(*key) != wanted.get(*key))
        .map(|key| format!("  {key}: {} there, {} here", shown(saved.get(key)), shown(wanted.get(key))))
        .collect();
    let named = lines.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join("\n");
    match lines.len() {
        0 => None,
        count if count > MOST_NAMED => Some(format!("{named}\n  and {} more keys", count - MOST_NAMED)),
        _ => Some(named),
    }
}
