//! Opens the device of a media file, and takes up what an adversarial cut has left next to it.

use std::path::Path;

use ftlab_core::settings::Settings;
use ftlab_core::sim::{Identity, Prepared};

use crate::LiveError;
use crate::engine::Engine;
use crate::media::{Found, Stored};
use crate::pace::Time;
use crate::remains;

/// Opens the device that a file holds; `None` if the file does not exist or is empty.
///
/// The sectors that were drawn at a cut are written once the FTL has recovered, and made durable; only then is the list
/// of them removed. So a process that is killed meanwhile starts over. What was opened, and what the recovery took, is
/// that of the file as the cut left it.
///
/// # Errors
/// [`LiveError`]: a file is damaged, of another device, or cannot be written.
pub fn reopen(
    path: &Path,
    settings: &Settings,
    identity: &Identity,
) -> Result<Option<(Prepared, Stored)>, LiveError> {
    let beside = remains::beside(path);
    let Some(found) = Found::read(path, settings, identity)? else {
        // It belongs to a device that is gone.
        let _ = std::fs::remove_file(&beside);
        return Ok(None);
    };
    let refused = |why: String| LiveError::User(format!("{}: {why}", beside.display()));
    let Some(sectors) = remains::read(path, found.last()).map_err(refused)? else {
        return found.bring_up(settings).map(Some);
    };
    if let Some((number, _)) =
        sectors.last().filter(|last| last.0.saturating_add(1).saturating_mul(512) > settings.user_bytes())
    {
        return Err(refused(format!("damaged: sector {number} is beyond the end of the device")));
    }
    let (prepared, stored) = found.bring_up(settings)?;
    let opened = stored.opened;
    let mut engine = Engine::new(settings, (prepared, Some(stored)), (Time::Free, false), None);
    let whole = engine.restore(&sectors)?;
    let (report, live) = engine.report();
    let failed = live.media.and_then(|media| media.error);
    if failed.is_none() && !whole && report.health.read_only_ns.is_none() {
        return Err(refused("the device refuses to write what persists".into()));
    }
    // This also unlocks the file: a program that another thread starts right now may have it open too.
    if let Some(error) = failed.or(engine.end_media()?) {
        return Err(LiveError::User(error));
    }
    drop(engine);
    std::fs::remove_file(&beside)
        .map_err(|error| refused(format!("cannot remove: {}", ftlab_trace::atomic::reason(&error))))?;
    let Some(found) = Found::read(path, settings, identity)? else { return Ok(None) };
    let (prepared, stored) = found.bring_up(settings)?;
    Ok(Some((prepared, Stored { opened, ..stored })))
}
