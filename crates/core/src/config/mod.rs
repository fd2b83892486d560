//! Settings: the table of keys, their values, and the typed form the stack uses.
//!
//! A key is declared once, in the module of the part that reads it, as a [`Key`].
//! From these declarations come strict checking, units, `ftlab schema`, the
//! configuration reference and the resolved configuration in every result.

mod byte_range;
pub mod form;
mod ignored;
pub mod outside;
mod page_times;
pub(crate) mod parts;
pub mod section;
mod size_mix;
pub mod units;

pub use crate::{choice, over, section, switch};
pub use byte_range::ByteRange;
pub use ignored::Ignored;
pub use page_times::{ByPageType, MOST_BITS, PageTimes, times};
pub use section::Section;
pub use size_mix::SizeMix;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// The largest value of a [`Kind::TimePerByte`], picoseconds: 1 us per byte, which makes a bus of 1 MB/s.
pub const MAX_TIME_PER_BYTE_PS: u64 = 1_000_000;

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted name, e.g. `host.queue_depth`.
    pub path: &'static str,
    /// What the key holds.
    pub kind: Kind,
    /// Default, written as in a file but without quotes: `16KiB`, `128`, `none`, `7%`. An empty text means the key has
    /// no default and may be absent.
    pub default: &'static str,
    /// Words accepted instead of a value (`unlimited`, `none`, `eviction`).
    pub words: &'static [&'static str],
    /// One sentence for help, schema and reference.
    pub doc: &'static str,
    /// Whether the state of the flash at time 0 depends on the key; used only for keys of the FTL and the flash.
    pub in_state: bool,
}

impl Key {
    /// Returns the default as a value, if there is one.
    ///
    /// # Panics
    /// If the default cannot be read, which is a bug in ftlab.
    pub fn default_value(&self) -> Option<Value> {
        use units::{BANDWIDTH, BYTES, NANOS, PICOS_PER_BYTE, PPM};
        let text = self.default;
        let fault = || format!("default of {}", self.path);
        let quantity = |unit: &units::Unit| unit.parse(text).unwrap_or_else(|_| panic!("{}", fault()));
        if text.is_empty() {
            return None;
        }
        if let Some(word) = self.words.iter().find(|word| **word == text) {
            return Some(Value::Word(word));
        }
        Some(match self.kind {
            Kind::Bool => Value::Bool(text == "true"),
            Kind::Count { .. } => Value::Count(text.parse().unwrap_or_else(|_| panic!("{}", fault()))),
            Kind::Number { .. } | Kind::FromZero { .. } => {
                Value::Number(text.parse().unwrap_or_else(|_| panic!("{}", fault())))
            }
            Kind::Bytes { .. } => Value::Bytes(quantity(&BYTES)),
            Kind::Bandwidth { .. } => Value::Bandwidth(quantity(&BANDWIDTH)),
            Kind::Duration { .. } => Value::Nanos(quantity(&NANOS)),
            Kind::ByPageType { unit, .. } => Value::ByPageType(ByPageType::of_unit(unit, &[quantity(unit)])),
            Kind::Quantity { unit, .. } => Value::Quantity(quantity(unit), unit),
            Kind::TimePerByte => Value::PicosPerByte(quantity(&PICOS_PER_BYTE)),
            Kind::Percent { .. } => Value::Ppm(quantity(&PPM)),
            Kind::Form { form, .. } => {
                let read = (form.canonical)(text, &mut |size| BYTES.parse(size).ok());
                Value::Form(read.unwrap_or_else(|_| panic!("{}", fault())))
            }
            Kind::Path | Kind::Choice(_) => Value::Text(text.to_owned()),
        })
    }
}

/// What a key holds, with its inclusive limits.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A truth value: true or false.
    Bool,
    /// A whole number.
    Count {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number, e.g. a speed factor.
    Number {
        /// Smallest value; if this is 0, values must be above it.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A number that may be 0.
    FromZero {
        /// Largest value.
        max: f64,
    },
    /// A size in bytes: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB.
    Bytes {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A bandwidth in bytes per second: B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s, GiB/s.
    Bandwidth {
        /// Smallest bandwidth, bytes per second.
        min: u64,
        /// Largest bandwidth, bytes per second.
        max: u64,
    },
    /// A time in whole nanoseconds: ns, us, ms, s, min, h, d.
    Duration {
        /// Longest time, nanoseconds.
        max_ns: u64,
    },
    /// A quantity for each page type of a word line, "56us/77us/106us", or one for all; see [`ByPageType`].
    ByPageType {
        /// Unit of the quantities.
        unit: &'static units::Unit,
        /// Largest quantity, in steps of the unit.
        max: u64,
        /// An example, for messages and for the reference.
        example: &'static str,
    },
    /// A quantity of this unit, e.g. an energy: "58uJ".
    Quantity {
        /// The unit.
        unit: &'static units::Unit,
        /// Largest quantity, in steps of the unit.
        max: u64,
    },
    /// A time per byte, kept in picoseconds, at most [`MAX_TIME_PER_BYTE_PS`]: "1.25ns".
    TimePerByte,
    /// A share, kept in parts per million: "7%".
    Percent {
        /// Smallest share, ppm.
        min_ppm: u64,
        /// Largest share, ppm.
        max_ppm: u64,
    },
    /// A value in a form that the key's part declares, made of sizes: "4KiB/60:64KiB/40", "0B..4GiB", "6GiB+dynamic".
    Form {
        /// The form.
        form: &'static form::Form,
        /// Smallest size, bytes.
        min: u64,
        /// Largest size, bytes.
        max: u64,
    },
    /// A file's path.
    Path,
    /// One of the names a registry lists.
    Choice(fn() -> Vec<Choice>),
}

/// A name in a registry, with its one-line description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name as configured.
    pub name: &'static str,
    /// What the name stands for, and its source, in one line.
    pub doc: &'static str,
}

impl Choice {
    /// Returns the part before `SHARE`, if the name ends in that word: such a name represents every name with a share
    /// of at most 100% in its place (`random:25%`).
    pub fn before_share(&self) -> Option<&'static str> {
        self.name.strip_suffix("SHARE")
    }

    /// Returns the part before `NUMBER`, if the name ends in that word: such a name represents every name with a whole
    /// number from 1 in its place (`superblock:4`).
    pub fn before_number(&self) -> Option<&'static str> {
        self.name.strip_suffix("NUMBER")
    }
}

/// A checked value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A value of [`Kind::Bool`].
    Bool(bool),
    /// A value of [`Kind::Count`].
    Count(u64),
    /// A value of [`Kind::Number`] or [`Kind::FromZero`].
    Number(f64),
    /// A value of [`Kind::Bytes`], in bytes.
    Bytes(u64),
    /// A value of [`Kind::Bandwidth`], in bytes per second.
    Bandwidth(u64),
    /// A value of [`Kind::Duration`], in nanoseconds.
    Nanos(u64),
    /// A value of [`Kind::ByPageType`].
    ByPageType(ByPageType),
    /// A value of [`Kind::Quantity`], in steps of the unit.
    Quantity(u64, &'static units::Unit),
    /// A value of [`Kind::TimePerByte`], in picoseconds per byte.
    PicosPerByte(u64),
    /// A value of [`Kind::Percent`], in parts per million.
    Ppm(u64),
    /// A value of [`Kind::Form`], as results state it.
    Form(String),
    /// A value of [`Kind::Path`] or [`Kind::Choice`].
    Text(String),
    /// One of the words that the key accepts.
    Word(&'static str),
}

/// The values of all keys that have one, by path; in a resolved configuration, defaults are filled in.
pub type Values = BTreeMap<&'static str, Value>;

/// Returns a key's path that lives as long as the process. Paths of tables that users name are kept once each.
pub fn path(text: &str) -> &'static str {
    static PATHS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut paths = PATHS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = paths.get(text) {
        return known;
    }
    let kept = Box::leak(text.to_owned().into_boxed_str());
    paths.insert(kept);
    kept
}

/// A value that contradicts another one; the configuration front end adds the file and the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Contradiction {
    /// The key at which the error points.
    pub key: &'static str,
    /// What is wrong and what to do. It mentions other keys by their full paths (`flash.page`), or all keys of a
    /// table by the table's name (`[flash]`): the configuration front end lists those that the user wrote, with their
    /// values and places.
    pub message: String,
}
