//! Flash translation layers.
//!
//! The traits of [`faces`] are what other parts ask of an FTL; an [`Ftl`] is any one of the registered FTLs. To add an
//! FTL, add one file with `NAME`, `DOC`, `Keys` and the type, and one line to the registry below. In `map/` the type is
//! a page-mapped FTL's mapping cache ([`map::translation::Translation`]), in any other folder the FTL
//! ([`FlashTranslation`]).

pub mod background;
pub mod blocks;
pub(crate) mod check;
pub mod faces;
pub mod gc;
mod kinds;
pub mod log;
pub mod page_mapped;
pub mod placement;
pub mod reclaim;
pub mod recovery;
pub mod settings;
pub mod slc_size;
pub(crate) mod slots;
pub(crate) mod spare;
pub mod wear;

use crate::config::parts::registry;
pub use faces::{Cooperate, Follow, Idle, Inspect, Locate, LookUp, Police, Prepare, Running, Serve, Survive};
pub use kinds::{
    FlashTranslation, Typed, check, gathers, hands_out, is_hybrid, keeps_trims, maps_blocks, maps_on_flash,
    typed, unit_bytes,
};
pub(crate) use kinds::{served_by, stripe};
pub use log::Refreshed;
pub use map::pages::MapStats;
pub use map::units::UnitSpace;

registry! {
    /// A registered FTL.
    #[derive(Clone, Debug)]
    pub enum Ftl, for "ftl.kind", in frames crate::config::parts::Itself, page_mapped::PageMapped;

    /// Mapping caches and the translation pages below them.
    pub mod map in PageMapped {
        Page = page::FullMap;
        Dftl = dftl::Dftl;
        Cdftl = cdftl::Cdftl;
        Tpftl = tpftl::Tpftl;
        Minipage = minipage::Minipage;
        Msftl = msftl::Msftl;
        Leaftl = leaftl::LeaFtl;
    } over {
        pub mod context;
        pub mod entries;
        pub mod learned;
        pub mod levels;
        pub mod pages;
        pub mod policy;
        mod recency;
        pub mod segments;
        pub mod translation;
        pub mod units;
    }

    /// Hybrid FTLs: data blocks are mapped as whole blocks, log blocks page by page.
    pub mod hybrid in Itself {
        Bast = bast::Bast;
        Fast = fast::Fast;
    } over {
        mod audit;
        pub mod frame;
        pub mod layout;
        pub mod logs;
        pub mod merges;
        mod recover;
        mod state;
        pub mod store;
        mod inspect;
        mod trims;
    }
}
pub(crate) use {with_kind, with_part as with_ftl};
