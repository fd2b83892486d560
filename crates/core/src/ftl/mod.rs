//! Flash translation layers.
//!
//! [`FlashTranslation`] is what the device asks of one; [`Ftl`] is the enum that
//! dispatches to the registered ones. To add an FTL: one file here with `NAME`,
//! `DOC`, `KEYS` and the type, and one line in the registry below.

pub mod background;
pub mod endurance;
pub mod gc;
mod layout;
pub mod log;
pub mod page_mapped;
pub mod pool;
pub mod recovery;
pub mod translation;
pub mod units;
pub mod wear;

use std::io;

use crate::config::{Choice, Contradiction, GcBackground, Key, Kind, Settings};
use crate::flash::Work;
use crate::flash::media::{Media, Tape};
use crate::flash::variation::Speeds;
use crate::util::codec::{Damage, Decoder, Encoder};
use page_mapped::PageMapped;
use recovery::{Flaw, Recovery};
pub use translation::MapStats;
pub use units::UnitSpace;

/// The logical pages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// First LPN.
    pub first: u32,
    /// Number of pages.
    pub pages: u32,
    /// The first page is covered in part only.
    pub head_partial: bool,
    /// The last page is covered in part only (of a one-page request, at either end).
    pub tail_partial: bool,
}

/// What the device asks of an FTL. Every operation emits its steps into a [`Work`], state changes
/// at once; the device decides when the steps run, in this order on each chip.
pub trait FlashTranslation {
    /// Puts data in place before time 0: each of these LPNs, none of which has any, is written
    /// once, its mapping is on flash and not cached.
    fn lay(&mut self, lpns: &mut dyn Iterator<Item = u32>, work: &mut Work);
    /// The run begins: what was counted before is no part of it.
    fn start(&mut self);
    /// From now on the host's writes choose their block by speed. A run's alone: what lies where at
    /// time 0, and so a saved state, is the same under every scheduler.
    fn choose_by_speed(&mut self);
    /// Writes the whole state but for check mode's.
    ///
    /// # Errors
    /// The output's.
    fn save(&self, out: &mut Encoder) -> io::Result<()>;
    /// Reads; returns the mapping-cache misses.
    fn read(&mut self, request: Request, work: &mut Work) -> u32;
    /// Writes; returns the mapping-cache misses.
    fn write(&mut self, request: Request, work: &mut Work) -> u32;
    /// Trims; returns the mapping-cache misses.
    fn trim(&mut self, request: Request, work: &mut Work) -> u32;
    /// Makes everything written and trimmed before durable: a power cut after it takes nothing back.
    fn flush(&mut self, work: &mut Work);
    /// Brings in the mappings of one translation page that these requests miss.
    fn prefetch(&mut self, page: u32, needs: &mut dyn Iterator<Item = Request>, work: &mut Work);
    /// Writes one translation page back in the background; false if there is nothing to write.
    fn write_back(&mut self, work: &mut Work) -> bool;
    /// From now on [`FlashTranslation::background_step`] collects: a run's alone, as above.
    fn collect_in_background(&mut self, how: GcBackground);
    /// One step of collecting an idle chip in the background; false if it has erased blocks enough, or
    /// nothing to gain.
    fn background_step(&mut self, chip: u32, work: &mut Work) -> bool;
    /// Whether the device has turned read-only: it reads, and refuses writes, trims and flushes.
    fn is_read_only(&self) -> bool;
    /// Writes, trims and flushes refused so far, of which some pages may have been served.
    fn refused(&self) -> u64;
    /// How far the blocks have come.
    fn life(&self) -> endurance::Life;
    /// Whether an LPN has data.
    fn has_data(&self, lpn: u32) -> bool;
    /// Whether an LPN's mapping is cached.
    fn cached(&self, lpn: u32) -> bool;
    /// Calls back with every LPN whose mapping is cached.
    fn each_cached(&self, visit: &mut dyn FnMut(u32));
    /// Mappings the cache can hold; `None`: no bound.
    fn cache_capacity(&self) -> Option<u32>;
    /// Whether the map is in RAM whole.
    fn map_complete(&self) -> bool;
    /// Translation page of an LPN, or where pages hold smaller units, its unit: what one read can bring in.
    fn translation_page(&self, lpn: u32) -> u32;
    /// Whether an entry is updated without being fetched first, so that no write misses.
    fn updates_free(&self) -> bool;
    /// Slot of the user data that an LPN resolves to, `u32::MAX` without data: slots are numbered through
    /// chips, blocks and pages.
    fn slot(&self, lpn: u32) -> u32;
    /// LPNs the user may address.
    fn logical_pages(&self) -> u32;
    /// Chip a read of this LPN goes to.
    fn read_chip(&self, lpn: u32) -> u32;
    /// Chip a write goes to, of the `page`-th page of a request that begins at LPN `first`.
    fn write_chip(&self, first: u32, page: u32) -> u32;
    /// Chip where static allocation puts an LPN.
    fn home_chip(&self, lpn: u32) -> u32;
    /// Counters of the mapping.
    fn map_stats(&self) -> MapStats;
    /// The translation units; all zero where the map is in RAM whole.
    fn units(&self) -> UnitSpace;
    /// Logical pages the host wrote.
    fn host_slots(&self) -> u64;
    /// Logical pages in a NAND page.
    fn slots_per_page(&self) -> u32;
    /// Calls back with every block's erase count.
    fn erases(&self, visit: &mut dyn FnMut(u32));
    /// How fast the blocks are, if they differ.
    fn speeds(&self) -> Option<&Speeds>;
    /// Power cuts: puts what the FTL has programmed so far on media that are empty; the highest
    /// sequence number. In check mode, no page buffer part-full.
    fn engrave(&self, media: &mut Media) -> u64;
    /// Power cuts: from now on notes every program and erase on the tape, in the order in which it
    /// emits their steps, and the content of whatever is no user data. The media hold what it has.
    /// `Ftl::recover` must be able to make the FTL anew from the media at any moment.
    fn record(&mut self, tape: &Tape, media: &Media);
    /// Power cuts: sequence number of the version on the media that an LPN resolves to.
    ///
    /// # Errors
    /// In words, if it resolves to a page that does not hold it.
    fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String>;
    /// Check mode: the version stamp that an LPN resolves to, counted in writes and trims.
    fn version(&self, lpn: u32) -> Option<u32>;
    /// Check mode: the invariants that a request's pages take part in.
    ///
    /// # Errors
    /// The first broken one, in words.
    fn verify_request(&self, request: Request) -> Result<(), String>;
    /// Check mode: all invariants.
    ///
    /// # Errors
    /// The first broken one, in words.
    fn verify(&self) -> Result<(), String>;
}

/// Makes the enum, its dispatch and its lists from one line per FTL:
/// `Variant = module: Type, constructor, whether it keeps translation pages on flash, own check`.
macro_rules! registry {
    ($($variant:ident = $module:ident: $type:ty, $new:expr, $on_flash:literal, $check:expr;)*) => {
        $(pub mod $module;)*

        /// A registered FTL.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum Ftl { $($variant($type)),* }

        /// Evaluates an expression on whichever FTL it is.
        macro_rules! with_ftl {
            ($ftl:expr, $name:ident => $body:expr) => {
                match $ftl { $($crate::ftl::Ftl::$variant($name) => $body),* }
            };
        }

        pub(crate) use with_ftl;

        impl Ftl {
            /// The FTL that `settings` name on empty flash; its preparation is not charged.
            ///
            /// # Panics
            /// If the settings were not checked.
            pub fn new(settings: &Settings, check: bool, work: &mut Work) -> Ftl {
                match served_by(settings) {
                    $($module::NAME => Ftl::$variant(PageMapped::new(settings, check, work, $new)),)*
                    other => panic!("unregistered FTL {other}"),
                }
            }

            /// The FTL that `settings` name in the state that [`FlashTranslation::save`] wrote.
            ///
            /// # Errors
            /// [`Damage`] if what is read is no such state, or not that of these settings.
            ///
            /// # Panics
            /// If the settings were not checked.
            pub fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<Ftl, Damage> {
                match served_by(settings) {
                    $($module::NAME => PageMapped::load(settings, check, from).map(Ftl::$variant),)*
                    other => panic!("unregistered FTL {other}"),
                }
            }
        }

        impl Ftl {
            /// The FTL that `settings` name as a power cut left it on the media, in check mode; what it
            /// took. Its steps go into `work`, the changes of the media on the tape.
            ///
            /// # Errors
            /// In words, if it cannot be recovered: a fault of ftlab.
            ///
            /// # Panics
            /// If the settings were not checked.
            pub fn recover(
                settings: &Settings,
                media: &Media,
                tape: (&Tape, Flaw),
                work: &mut Work,
            ) -> Result<(Ftl, Recovery), String> {
                match served_by(settings) {
                    $($module::NAME => <$type>::recover(settings, media, tape, work, $new)
                        .map(|(ftl, recovery)| (Ftl::$variant(ftl), recovery)),)*
                    other => panic!("unregistered FTL {other}"),
                }
            }
        }

        /// Names for `ftl.kind`.
        pub fn choices() -> Vec<Choice> {
            vec![$(Choice { name: $module::NAME, doc: $module::DOC }),*]
        }

        fn own_keys() -> Vec<Key> {
            [$($module::KEYS),*].concat()
        }

        /// Whether the chosen FTL has room to make trims durable.
        ///
        /// # Panics
        /// If the settings were not checked.
        pub fn keeps_trims(settings: &Settings) -> bool {
            match settings.ftl.kind.as_str() {
                $($module::NAME => layout::keeps_trims(settings, $on_flash),)*
                other => panic!("unregistered FTL {other}"),
            }
        }

        /// Checks that the chosen FTL fits the geometry.
        ///
        /// # Errors
        /// [`Contradiction`] naming the key to change.
        pub fn check(settings: &Settings) -> Result<(), Contradiction> {
            match settings.ftl.kind.as_str() {
                $($module::NAME => {
                    units::check(settings)?;
                    endurance::check(settings)?;
                    layout::check(settings, $on_flash)?;
                    let own: fn(&Settings) -> Result<(), Contradiction> = $check;
                    own(settings)
                })*
                other => panic!("unregistered FTL {other}"),
            }
        }
    };
}

registry! {
    Page = page: PageMapped<page::FullMap>, |_, _| page::FullMap, false, |_| Ok(());
    Dftl = dftl: PageMapped<dftl::Dftl>, dftl::Dftl::new, true, |_| Ok(());
    Cdftl = cdftl: PageMapped<cdftl::Cdftl>, cdftl::Cdftl::new, true, cdftl::check;
    Minipage = minipage: PageMapped<msftl::Flushed>, msftl::Flushed::new, true, |_| Ok(());
    Msftl = msftl: PageMapped<msftl::Flushed>, msftl::Flushed::new, true, |_| Ok(());
}

/// Whether translation units are gathered into NAND pages ([`units`]); else each is a page, written
/// back alone.
pub fn gathers(settings: &Settings) -> bool {
    match settings.ftl.kind.as_str() {
        minipage::NAME | msftl::NAME => true,
        kind => kind == dftl::NAME && settings.ftl.flush_bytes.is_some(),
    }
}

/// Name of the registered FTL that runs: dftl with mappings flushed by amount (Base-DFTL of Kim and
/// Lee, ICSOFT 2020) is msftl with the NAND page as its unit.
fn served_by(settings: &Settings) -> &str {
    if gathers(settings) { msftl::NAME } else { &settings.ftl.kind }
}

/// Bytes of a translation unit; see [`Settings::unit_bytes`].
pub fn unit_bytes(settings: &Settings) -> u32 {
    match settings.ftl.kind.as_str() {
        minipage::NAME => units::MINI_PAGE,
        msftl::NAME => settings.ftl.segment_bytes,
        _ => settings.flash.page_bytes,
    }
}

/// Keys of the registered FTLs, and of the mapping they share.
pub fn keys() -> Vec<Key> {
    let mut keys = units::KEYS.to_vec();
    keys.push(Key {
        path: "ftl.background_flush",
        kind: Kind::Bool,
        default: "false",
        words: &[],
        doc: "Write dirty mappings back while nothing is pending.",
    });
    keys.extend(gc::keys());
    keys.extend_from_slice(wear::KEYS);
    keys.extend_from_slice(endurance::KEYS);
    keys.extend(own_keys());
    keys
}
