//! The reclaim unit: what is filled and collected together, a block or a superblock (`ftl.reclaim_unit`).
//!
//! Source: a superblock is what the controllers of drives fill and erase as one, the blocks of one number on all LUNs;
//! NVM Express calls it the reclaim unit (Flexible Data Placement, TP4146). What was read into it is in
//! `docs/readings/superblocks.md`.
//!
//! A page-mapped FTL works on the settings of a device in which a superblock *is* a block
//! ([`super::settings::Settings::in_reclaim_units`]): a group of LUNs counts as one LUN whose blocks have the pages of
//! a superblock. So what holds for blocks (fronts, victims, the room that collections need) holds for superblocks as it
//! stands.

use crate::config::section::{Field, one_of};
use crate::config::{Choice, Kind, Value};

/// What is filled and collected together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimUnit {
    /// An erase block.
    Block,
    /// The blocks of one number on this many LUNs; `None`: on all of them.
    Superblock(Option<u32>),
}

impl Field for ReclaimUnit {
    fn of(value: Option<&Value>) -> Option<ReclaimUnit> {
        match value? {
            Value::Text(text) if text == "block" => Some(ReclaimUnit::Block),
            Value::Text(text) if text == "superblock" => Some(ReclaimUnit::Superblock(None)),
            Value::Text(text) => {
                text.strip_prefix("superblock:")?.parse().ok().map(|luns| ReclaimUnit::Superblock(Some(luns)))
            }
            _ => None,
        }
    }
}

/// The kind of value that `ftl.reclaim_unit` takes.
pub(super) const RECLAIM_UNIT: Kind = one_of(|| {
    let choice = |name, doc| Choice { name, doc };
    vec![
        choice("block", "an erase block"),
        choice("superblock", "the blocks of one number on all chips (dies, planes)"),
        choice(
            "superblock:NUMBER",
            "the blocks of one number on this many chips (dies, planes), which divides the number of all",
        ),
    ]
});
