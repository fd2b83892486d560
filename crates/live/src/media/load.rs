//! The device of a media file at time 0, for runs that read the file and leave it as it is.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, Prepared};

use super::layout::MAGIC;
use super::open::{Found, recover};
use crate::LiveError;

/// Whether a path names a media file.
pub fn is_media(path: &Path) -> bool {
    // Reading from a pipe would take its bytes.
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let mut start = [0; MAGIC.len()];
    let read = file.and_then(|_| File::open(path).ok()?.read_exact(&mut start).ok());
    read.is_some() && start == MAGIC
}

/// Returns the device that a media file holds, as `ftlab serve` would find it: from its checkpoint or, without one, by
/// recovery from flash alone. With `check`, the device is in check mode.
///
/// # Errors
/// [`LiveError::User`] if the file belongs to another device, has another version, is damaged or in use, or holds a
/// device that is worn out; [`LiveError::Run`] if the FTL cannot be recovered.
pub fn load(
    path: &Path,
    settings: &Settings,
    identity: &Identity,
    check: bool,
) -> Result<Prepared, LiveError> {
    let refused = |why: String| LiveError::User(format!("{}: {why}", path.display()));
    let beside = crate::remains::beside(path);
    if beside.exists() {
        let why =
            "it says which unflushed writes persist; `ftlab serve --media` takes it up: start that once";
        return Err(LiveError::User(format!("{}: {why}", beside.display())));
    }
    let Some(found) = Found::open(path, settings, identity, false)? else {
        return Err(refused("there is no device in it".into()));
    };
    let read = |mut bytes: &[u8]| Prepared::load(settings, identity, &mut bytes, check);
    if let Some(prepared) = found.checkpoint.as_deref().and_then(|bytes| read(bytes).ok()) {
        return Ok(prepared);
    }
    let (media, tape, _) = found.flash(settings, None)?;
    let (power, (ftl, ..)) = recover(settings, (media, tape))?;
    // What was recovered notes all it does on a tape, which nobody reads in a run; what was saved does not.
    let mut bytes = Vec::new();
    let recovered = Prepared::recovered(settings, ftl, &power.tape);
    recovered.save(identity, &mut bytes).map_err(|error| refused(error.to_string()))?;
    read(&bytes).map_err(|error| refused(format!("a run cannot begin with the device in it: {error}")))
}
