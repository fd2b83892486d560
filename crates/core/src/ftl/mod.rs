//! Flash translation layers.
//!
//! [`FlashTranslation`] is what the device asks of one; [`Ftl`] is the enum that
//! dispatches to the registered ones. To add an FTL: one file here with `NAME`,
//! `DOC`, `KEYS` and the type, and one line in the registry below: a page-mapped one
//! in `map/`
//! (its type implements [`map::translation::Translation`]), or one of another kind
//! ([`Standalone`]), as the hybrid FTLs are.

pub mod background;
pub mod endurance;
pub mod gc;
pub mod hybrid;
mod layout;
pub mod log;
pub mod merges;
pub mod page_mapped;
pub mod pool;
pub mod recovery;
pub mod wear;

use std::io;

use crate::config::{Choice, Contradiction, GcBackground, Key, Kind, Settings};
use crate::flash::Work;
use crate::flash::media::{Media, Tape};
use crate::flash::variation::Speeds;
use crate::util::codec::{Damage, Decoder, Encoder};
pub use map::pages::MapStats;
use map::translation::Translation;
pub use map::units::UnitSpace;
use merges::MergeStats;
use page_mapped::PageMapped;
use recovery::{Flaw, Recovery};

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

/// What the host says of a request beside its pages; all but `fua` are false unless its scheduler knows better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Part of a block issue under cooperation: announced by COOP_Query, so nothing need be guessed.
    pub coop: bool,
    /// COOP_Issue of the logical block of its first page goes ahead of it.
    pub begin: bool,
    /// COOP_Complete of that logical block follows it.
    pub end: bool,
    /// Padding: pages read, or written back unchanged, to make a block whole.
    pub pad: bool,
    /// Of a write: it completes when it would survive a power cut (force unit access).
    pub fua: bool,
}

impl Mark {
    /// Whether anything is said.
    #[inline]
    pub fn any(self) -> bool {
        self.coop | self.begin | self.end | self.pad | self.fua
    }
}

/// Sizes of a logical block: the answer to COOP_GetSize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Pages of a block.
    pub pages: u32,
    /// Bytes of a page (FPS).
    pub page_bytes: u32,
}

impl BlockSize {
    /// Bytes of a block (FBS).
    pub fn block_bytes(self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }
}

/// How an FTL that is not page-mapped is made.
pub trait Standalone: Sized {
    /// The FTL of checked settings, its flash empty.
    fn new(settings: &Settings, check: bool, work: &mut Work) -> Self;
    /// Reads what [`FlashTranslation::save`] wrote, for the same settings.
    ///
    /// # Errors
    /// [`Damage`] if it is not whole, or is of another shape.
    fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<Self, Damage>;
    /// Checks that it fits the geometry.
    ///
    /// # Errors
    /// [`Contradiction`] naming the key to change.
    fn check(settings: &Settings) -> Result<(), Contradiction>;
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
    /// Reads as marked.
    fn read_marked(&mut self, request: Request, _mark: Mark, work: &mut Work) -> u32 {
        self.read(request, work)
    }
    /// Writes as marked.
    fn write_marked(&mut self, request: Request, _mark: Mark, work: &mut Work) -> u32 {
        self.write(request, work)
    }
    /// COOP_Query (Shim et al., TC 2014, Table 1): the logical blocks that a block issue of so many
    /// pages from an LPN on has merged, fully or partially; `set` holds them afterwards, ascending.
    fn coop_query(&self, _first: u32, _pages: u32, set: &mut Vec<u32>) {
        set.clear();
    }
    /// COOP_Issue: a preferential block issue of this logical block begins.
    fn coop_issue(&mut self, _block: u32, _work: &mut Work) {}
    /// COOP_Complete: it ends.
    fn coop_complete(&mut self, _block: u32, _work: &mut Work) {}
    /// COOP_GetSize; `None` if data is not mapped by blocks.
    fn block_size(&self) -> Option<BlockSize> {
        None
    }
    /// Merges so far.
    fn merges(&self) -> MergeStats {
        MergeStats::default()
    }
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
    /// A request with this LPN is on its way: begins to load its mapping, and what a write of `earlier`,
    /// which was announced so before, will invalidate.
    fn expect(&self, _lpn: u32, _earlier: u32) {}
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
/// `Variant = module::MappingCache` of the page-mapped ones; behind a semicolon, of those that are
/// [`Standalone`], `Variant = module: Type`.
macro_rules! registry {
    (
        $($variant:ident = $module:ident::$cache:ident;)*
        ;
        $($other:ident = $place:ident: $kind:ty;)*
    ) => {
        /// Mapping caches and the translation pages below them.
        pub mod map {
            pub mod context;
            pub mod entries;
            pub mod pages;
            pub mod policy;
            mod recency;
            pub mod translation;
            pub mod units;
            $(pub mod $module;)*
        }
        $(pub mod $place;)*
        $(use map::$module;)*
        use map::units;

        /// A registered FTL.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum Ftl { $($variant(PageMapped<$module::$cache>),)* $($other($kind)),* }

        /// Evaluates an expression on whichever FTL it is.
        macro_rules! with_ftl {
            ($ftl:expr, $name:ident => $body:expr) => {
                match $ftl {
                    $($crate::ftl::Ftl::$variant($name) => $body,)*
                    $($crate::ftl::Ftl::$other($name) => $body),*
                }
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
                    $($module::NAME => Ftl::$variant(PageMapped::new(settings, check, work)),)*
                    $($place::NAME => Ftl::$other(Standalone::new(settings, check, work)),)*
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
                    $($place::NAME => <$kind as Standalone>::load(settings, check, from).map(Ftl::$other),)*
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
                    $($module::NAME => <PageMapped<$module::$cache>>::recover(settings, media, tape, work)
                        .map(|(ftl, recovery)| (Ftl::$variant(ftl), recovery)),)*
                    $($place::NAME => <$kind>::recover(settings, media, tape, work)
                        .map(|(ftl, recovery)| (Ftl::$other(ftl), recovery)),)*
                    other => panic!("unregistered FTL {other}"),
                }
            }
        }

        /// Names for `ftl.kind`.
        pub fn choices() -> Vec<Choice> {
            vec![
                $(Choice { name: $module::NAME, doc: $module::DOC },)*
                $(Choice { name: $place::NAME, doc: $place::DOC }),*
            ]
        }

        /// Whether the FTL of this name has a mapping cache over translation pages on flash.
        pub fn maps_on_flash(kind: &str) -> bool {
            match kind {
                $($module::NAME => <$module::$cache as Translation>::ON_FLASH,)*
                _ => false,
            }
        }

        /// Whether the chosen FTL gathers translation units into NAND pages ([`units`]).
        pub(crate) fn gathers(settings: &Settings) -> bool {
            match settings.ftl.kind.as_str() {
                $($module::NAME => <$module::$cache as Translation>::gathers(settings),)*
                _ => false,
            }
        }

        /// Bytes of a translation unit; see [`Settings::unit_bytes`].
        pub(crate) fn unit_bytes(settings: &Settings) -> u32 {
            match settings.ftl.kind.as_str() {
                $($module::NAME => <$module::$cache as Translation>::unit_bytes(settings),)*
                _ => settings.flash.page_bytes,
            }
        }

        fn own_keys() -> Vec<Key> {
            [$($module::KEYS,)* $($place::KEYS),*].concat()
        }

        /// Whether the chosen FTL has room to make trims durable.
        ///
        /// # Panics
        /// If the settings were not checked.
        pub fn keeps_trims(settings: &Settings) -> bool {
            match settings.ftl.kind.as_str() {
                $($module::NAME => layout::keeps_trims(settings, <$module::$cache as Translation>::ON_FLASH),)*
                // A hybrid FTL writes a trim as it writes data.
                $($place::NAME => true,)*
                other => panic!("unregistered FTL {other}"),
            }
        }

        /// Checks that the chosen FTL fits the geometry.
        ///
        /// # Errors
        /// [`Contradiction`] naming the key to change.
        pub fn check(settings: &Settings) -> Result<(), Contradiction> {
            endurance::check(settings)?;
            match settings.ftl.kind.as_str() {
                $($module::NAME => {
                    <$module::$cache as Translation>::check(settings)?;
                    units::check(settings, <$module::$cache as Translation>::UNIT_KEY)?;
                    layout::check(settings, <$module::$cache as Translation>::ON_FLASH)
                })*
                $($place::NAME => <$kind as Standalone>::check(settings),)*
                other => panic!("unregistered FTL {other}"),
            }
        }
    };
}

registry! {
    Page = page::FullMap;
    Dftl = dftl::Dftl;
    Cdftl = cdftl::Cdftl;
    Tpftl = tpftl::Tpftl;
    Minipage = minipage::Minipage;
    Msftl = msftl::Msftl;
    ;
    Bast = bast: bast::Bast;
    Fast = fast: fast::Fast;
}

/// Whether the FTL of this name maps blocks, which lie on the units in turn whatever `ftl.allocation` says.
pub fn is_hybrid(kind: &str) -> bool {
    matches!(kind, bast::NAME | fast::NAME)
}

/// Neighbouring logical pages that static allocation puts on one unit before it goes on to the next.
pub fn stripe(settings: &Settings) -> u32 {
    match is_hybrid(&settings.ftl.kind) {
        true => settings.flash.pages_per_block,
        false => settings.flash.page_bytes / settings.ftl.logical_page_bytes,
    }
}

/// Name of the registered FTL that runs: dftl with mappings flushed by amount (Base-DFTL of Kim and
/// Lee, ICSOFT 2020) is msftl with the NAND page as its unit.
fn served_by(settings: &Settings) -> &str {
    if gathers(settings) { msftl::NAME } else { &settings.ftl.kind }
}

/// Keys of the registered FTLs, and of the mapping they share.
pub fn keys() -> Vec<Key> {
    let mut keys = units::KEYS.to_vec();
    keys.extend_from_slice(hybrid::KEYS);
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
