//! What is known about an FTL before it is made, and how the FTL that the settings name is made.

use super::recovery::{Flaw, Recovery};
use super::settings::Settings;
// The registry's lines refer to items of the parent module.
use super::*;
use crate::config::Contradiction;
use crate::flash::Work;
use crate::flash::media::{Media, Tape};
use crate::util::codec::{Damage, Decoder};

/// An FTL: how it is made, and what is known about it beforehand. What other parts ask of an FTL is in
/// [`super::faces`].
pub trait FlashTranslation:
    Serve + Idle + Locate + LookUp + Cooperate + Inspect + Prepare + Follow + Survive + Police + Sized
{
    /// Whether there are translation pages on flash, and a mapping cache over them.
    const MAPS_ON_FLASH: bool = false;
    /// Whether the host may hold mapping entries of the FTL.
    const HANDS_OUT: bool = false;
    /// Whether the FTL has log blocks, which are merged with data blocks that are mapped as whole blocks.
    const IS_HYBRID: bool = false;
    /// Whether the FTL maps whole blocks; these go to the LUNs in turn, whatever `ftl.allocation` says.
    const MAPS_BLOCKS: bool = Self::IS_HYBRID;

    /// Makes the FTL that checked settings describe, on empty flash.
    fn new(settings: &Settings, check: bool, work: &mut Work) -> Self;
    /// Reads what [`Prepare::save`] wrote, for the same settings.
    ///
    /// # Errors
    /// [`Damage`] if what is read is incomplete, or is the state of a device of another shape.
    fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<Self, Damage>;
    /// Rebuilds the FTL of `settings` as a power cut left it on the media. The steps go into `work`, and the changes of
    /// the media onto the tape; later requests use both in the same way.
    ///
    /// # Errors
    /// A message if the FTL cannot be recovered, which means a bug in ftlab.
    fn recover(
        settings: &Settings,
        media: &Media,
        tape: (&Tape, Flaw),
        work: &mut Work,
    ) -> Result<(Self, Recovery), String>;
    /// Checks that the FTL fits the geometry.
    ///
    /// # Errors
    /// A [`Contradiction`] that names the key to change.
    fn check(settings: &Settings) -> Result<(), Contradiction>;
    /// Whether the FTL has room to make trims durable.
    fn keeps_trims(_settings: &Settings) -> bool {
        true
    }
    /// Whether the FTL gathers translation units into NAND pages ([`super::map::units`]).
    fn gathers(_settings: &Settings) -> bool {
        false
    }
    /// Returns the name of the FTL that serves in place of this one under these settings, if another does.
    fn served_by(_settings: &Settings) -> Option<&'static str> {
        None
    }
    /// Returns the size of a translation unit in bytes: that of a NAND page, unless the FTL has smaller units.
    fn unit_bytes(settings: &Settings) -> u32 {
        settings.flash.page_bytes
    }
}

/// Returns the name of the registered FTL that runs under these settings.
pub(crate) fn served_by(settings: &Settings) -> &str {
    let chosen = settings.ftl.kind.as_str();
    with_kind!(chosen, Kind, of => Kind::served_by(settings)).unwrap_or(chosen)
}

/// The functions that make an FTL. Each of them panics if the settings name no registered FTL; checked settings
/// do name one.
impl Ftl {
    /// Makes the FTL that `settings` name, on empty flash; the flash operations that this takes are not counted.
    pub fn new(settings: &Settings, check: bool, work: &mut Work) -> Ftl {
        with_kind!(served_by(settings), Kind, of => of(Kind::new(settings, check, work)))
    }

    /// Restores the FTL that `settings` name from the state that [`Prepare::save`] wrote.
    ///
    /// # Errors
    /// [`Damage`] if what is read is not such a state, or not that of a device with these settings.
    pub fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<Ftl, Damage> {
        with_kind!(served_by(settings), Kind, of => Kind::load(settings, check, from).map(of))
    }

    /// Rebuilds the FTL that `settings` name as a power cut left it on the media, in check mode; also returns
    /// the cost of doing so. The steps go into `work`, and the changes of the media onto the tape.
    ///
    /// # Errors
    /// A message if the FTL cannot be recovered, which means a bug in ftlab.
    pub fn recover(
        settings: &Settings,
        media: &Media,
        tape: (&Tape, Flaw),
        work: &mut Work,
    ) -> Result<(Ftl, Recovery), String> {
        with_kind!(served_by(settings), Kind, of => {
            Kind::recover(settings, media, tape, work).map(|(ftl, recovery)| (of(ftl), recovery))
        })
    }
}

/// A visitor that [`typed`] calls with the type of a registered FTL, for example in tests that go through all
/// FTLs.
pub trait Typed {
    /// Called with the type of the FTL.
    fn ftl<F: FlashTranslation>(self);
}

/// Calls the visitor with the type of the FTL that is registered under this name.
///
/// # Panics
/// If the name is not registered.
pub fn typed(name: &str, visitor: impl Typed) {
    with_kind!(name, Kind, of => visitor.ftl::<Kind>());
}

/// Whether the chosen FTL has a mapping cache over translation pages on flash.
pub fn maps_on_flash(settings: &Settings) -> bool {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::MAPS_ON_FLASH)
}

/// Whether the host may hold mapping entries of the chosen FTL.
pub fn hands_out(settings: &Settings) -> bool {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::HANDS_OUT)
}

/// Whether the chosen FTL maps whole blocks, with or without log blocks.
pub fn maps_blocks(settings: &Settings) -> bool {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::MAPS_BLOCKS)
}

/// Whether the chosen FTL has log blocks.
pub fn is_hybrid(settings: &Settings) -> bool {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::IS_HYBRID)
}

/// Whether the chosen FTL gathers translation units into NAND pages.
pub fn gathers(settings: &Settings) -> bool {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::gathers(settings))
}

/// Returns the size in bytes of a translation unit of the chosen FTL, which the mapping reads and writes as a
/// whole.
pub fn unit_bytes(settings: &Settings) -> u32 {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::unit_bytes(settings))
}

/// Whether the chosen FTL has room to make trims durable.
pub fn keeps_trims(settings: &Settings) -> bool {
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::keeps_trims(settings))
}

/// Checks that the chosen FTL fits the geometry.
///
/// # Errors
/// A [`Contradiction`] that names the key to change.
pub fn check(settings: &Settings) -> Result<(), Contradiction> {
    check::superblocks(settings)?;
    blocks::endurance::check(settings)?;
    with_kind!(settings.ftl.kind.as_str(), Kind, of => Kind::check(settings))
}

/// Returns how many neighbouring logical pages static allocation puts on one LUN before it turns to the next
/// one.
pub(crate) fn stripe(settings: &Settings) -> u32 {
    match maps_blocks(settings) {
        true => settings.flash.pages_per_block,
        false => settings.flash.unit_bytes() / settings.ftl.logical_page_bytes,
    }
}
