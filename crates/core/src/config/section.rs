//! Sections: typed settings that are declared once, in the part that reads them.
//!
//! [`crate::section!`] makes a struct out of a list of keys. A key's line states the field, its type, the key's
//! path, what the key holds and its default; its documentation is the key's sentence in the reference:
//!
//! ```text
//! section! {
//!     /// `[device]`.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Device {
//!         /// Number of requests that the device can hold, waiting or in service.
//!         queue_depth: u32 = "device.queue_depth", count(1, 1 << 30) or "unlimited", "1";
//!         /// State of the flash at time 0.
//!         precondition: Precondition;
//!     }
//! }
//! ```
//!
//! - A field without `=` is a section of its own; its keys appear in its place.
//! - What a `bool` or a [`crate::choice!`] holds follows from the type. A key without a default may be absent.
//! - `or "page" as "flash.page"`: the word stands for the other key's value.
//! - `not in state` at the end: the state of the flash at time 0 does not depend on the key.

use super::units::NANOS;
use super::{ByPageType, Choice, Key, Kind, Value, Values};

/// A section of a configuration: a struct whose fields have keys.
pub trait Section: Sized {
    /// Appends the section's keys, in the order of the reference.
    fn declare(keys: &mut Vec<Key>);

    /// Makes the section from the values.
    ///
    /// # Panics
    /// If a key with a default is missing from `values` or holds another kind's value.
    fn read(values: &Values) -> Self;
}

/// A section without keys.
impl Section for () {
    fn declare(_keys: &mut Vec<Key>) {}

    fn read(_values: &Values) {}
}

/// A section that a key switches on; `Option<Self>` is then a [`Section`].
pub trait Switched: Sized {
    /// Appends the key that switches the section on, and the section's own keys.
    fn declare_with_switch(keys: &mut Vec<Key>);

    /// Makes the section from the values; `None` if the section is off.
    ///
    /// # Panics
    /// As for [`Section::read`].
    fn read_if_on(values: &Values) -> Option<Self>;
}

impl<T: Switched> Section for Option<T> {
    fn declare(keys: &mut Vec<Key>) {
        T::declare_with_switch(keys);
    }

    fn read(values: &Values) -> Option<T> {
        T::read_if_on(values)
    }
}

/// Returns the keys of a section.
pub fn keys<T: Section>() -> Vec<Key> {
    let mut keys = Vec::new();
    T::declare(&mut keys);
    keys
}

/// Returns those keys of a section that have a default, each with its default.
pub fn defaults<T: Section>() -> Values {
    keys::<T>().iter().filter_map(|key| Some((key.path, key.default_value()?))).collect()
}

/// The type of a field that a key fills.
pub trait Field: Sized {
    /// Returns the value as this type; `None` if the value is of another kind.
    fn of(value: Option<&Value>) -> Option<Self>;
}

/// A type that determines the kind of value that its key holds.
pub trait Natural: Field {
    /// The kind of value that the key holds.
    const KIND: Kind;
}

impl Natural for bool {
    const KIND: Kind = Kind::Bool;
}

impl Field for bool {
    fn of(value: Option<&Value>) -> Option<bool> {
        let Value::Bool(flag) = value? else { return None };
        Some(*flag)
    }
}

/// A word of a `u64` key, such as `unlimited`, is read as the greatest number.
impl Field for u64 {
    fn of(value: Option<&Value>) -> Option<u64> {
        match value? {
            Value::Count(n)
            | Value::Bytes(n)
            | Value::Bandwidth(n)
            | Value::Nanos(n)
            | Value::PicosPerByte(n)
            | Value::Ppm(n)
            | Value::Quantity(n, _) => Some(*n),
            Value::Word(_) => Some(u64::MAX),
            _ => None,
        }
    }
}

/// A word of a `u32` key, such as `unlimited`, is read as the greatest number.
impl Field for u32 {
    fn of(value: Option<&Value>) -> Option<u32> {
        match value? {
            Value::Word(_) => Some(u32::MAX),
            value => u64::of(Some(value))?.try_into().ok(),
        }
    }
}

/// Implements [`Field`] for types whose values are written in a form of their own.
#[macro_export]
macro_rules! formed {
    ($($type:ty),*) => {
        $(impl $crate::config::section::Field for $type {
            fn of(value: Option<&$crate::config::Value>) -> Option<$type> {
                match value? {
                    $crate::config::Value::Form(text) => $crate::config::form::Formed::of_text(text),
                    $crate::config::Value::Bytes(size) => $crate::config::form::Formed::of_size(*size),
                    _ => None,
                }
            }
        })*
    };
}

/// Implements [`Field`] for types whose values a variant of [`Value`] holds as they are.
macro_rules! held {
    ($($variant:ident as $type:ty),*) => {
        $(impl Field for $type {
            fn of(value: Option<&Value>) -> Option<$type> {
                let Value::$variant(held) = value? else { return None };
                Some(held.clone())
            }
        })*
    };
}

held!(Number as f64, Text as String, ByPageType as ByPageType);

/// An optional field is `None` if the key is absent or holds one of its words.
impl<T: Field> Field for Option<T> {
    fn of(value: Option<&Value>) -> Option<Option<T>> {
        match value {
            None | Some(Value::Word(_)) => Some(None),
            value => T::of(value).map(Some),
        }
    }
}

/// Returns the value of a key as the type of its field; `other` is the key whose value a word stands for, if any.
pub fn field<T: Field>(values: &Values, path: &str, other: &[&str]) -> T {
    let value = match (values.get(path), other) {
        (Some(Value::Word(_)), [other]) => values.get(other),
        (value, _) => value,
    };
    T::of(value).unwrap_or_else(|| panic!("{path}: its field cannot hold {value:?}"))
}

/// The longest time that a key may state: one year.
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// The kind of a key that holds a time of any length up to a year.
pub const ANY_TIME: Kind = Kind::Duration { max_ns: YEAR_NS };
/// The kind of a key that holds the time of a flash operation: at most a second, so that the sum of 2^34 such times
/// fits into 64 bits.
pub const OPERATION: Kind = Kind::Duration { max_ns: LONGEST_NS };
/// The kind of a key that holds the time of a flash operation for each page type, each at most a second.
pub const BY_PAGE_TYPE: Kind = Kind::ByPageType { unit: &NANOS, max: LONGEST_NS, example: "56us/77us/106us" };
const LONGEST_NS: u64 = 1_000_000_000;

/// Returns the kind of a key that holds a whole number.
pub const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// Returns the kind of a key that holds a number.
pub const fn number(min: f64, max: f64) -> Kind {
    Kind::Number { min, max }
}

/// Returns the kind of a key that holds a number, which may be 0.
pub const fn from_zero(max: f64) -> Kind {
    Kind::FromZero { max }
}

/// Returns the kind of a key that holds a size.
pub const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}

/// Returns the kind of a key that holds a bandwidth.
pub const fn bandwidth(min: u64, max: u64) -> Kind {
    Kind::Bandwidth { min, max }
}

/// Returns the kind of a key that holds a share in percent.
pub const fn share(min_ppm: u64, max_ppm: u64) -> Kind {
    Kind::Percent { min_ppm, max_ppm }
}

/// Returns the kind of a key that holds one of a registry's names.
pub const fn one_of(list: fn() -> Vec<Choice>) -> Kind {
    Kind::Choice(list)
}

/// Makes a struct that is a [`Section`] from a list of keys; see the documentation of the module.
#[macro_export]
macro_rules! section {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty
                $(= $path:literal
                    $(, $kind:ident $(($($limit:expr),+))? $(or $word:literal $(as $other:literal)?)*)?
                    $(, $default:literal)?
                    $(not in $state:ident)?
                )?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[allow(rustdoc::broken_intra_doc_links)]
        $vis struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $crate::config::Section for $name {
            #[allow(unused_variables)]
            fn declare(keys: &mut Vec<$crate::config::Key>) {
                $($crate::section!(
                    @declare keys, $type, concat!($($doc),+)
                    $(, $path, [$type $(, $kind $(($($limit),+))?)?],
                        &[$($($word),*)?], concat!($($default)?), concat!($(stringify!($state))?))?
                );)*
            }

            #[allow(unused_variables)]
            fn read(values: &$crate::config::Values) -> $name {
                $name {
                    $($field: $crate::section!(
                        @read values, $type $(, $path, &[$($($($other,)?)*)?])?
                    ),)*
                }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                <$name as $crate::config::Section>::read(&$crate::config::section::defaults::<$name>())
            }
        }
    };
    (@declare $keys:ident, $type:ty, $doc:expr) => {
        <$type as $crate::config::Section>::declare($keys)
    };
    (@declare $keys:ident, $type:ty, $doc:expr, $path:literal, $kind:tt, $words:expr, $default:expr, $out:expr) => {
        $keys.push($crate::config::Key {
            path: $path,
            kind: $crate::section!(@kind $kind),
            default: $default,
            words: $words,
            doc: $doc.trim_start(),
            in_state: $out.is_empty(),
        })
    };
    (@kind [$type:ty]) => { <$type as $crate::config::section::Natural>::KIND };
    (@kind [$type:ty, $kind:expr]) => { $kind };
    (@read $values:ident, $type:ty) => { <$type as $crate::config::Section>::read($values) };
    (@read $values:ident, $type:ty, $path:literal, $other:expr) => {
        $crate::config::section::field($values, $path, $other)
    };
}

/// Lets a key switch a section on (`section::Switched`): the section is on if the key holds the value after `is`. The
/// key comes before the section's own keys.
#[macro_export]
macro_rules! switch {
    (
        $(#[doc = $doc:literal])+
        $name:ident if $type:ty = $path:literal, $default:literal $(not in $state:ident)? is $on:expr
    ) => {
        impl $crate::config::section::Switched for $name {
            fn declare_with_switch(keys: &mut Vec<$crate::config::Key>) {
                $crate::section!(
                    @declare keys, $type, concat!($($doc),+), $path, [$type], &[], $default,
                    concat!($(stringify!($state))?)
                );
                <$name as $crate::config::Section>::declare(keys);
            }

            fn read_if_on(values: &$crate::config::Values) -> Option<$name> {
                let switch: $type = $crate::config::section::field(values, $path, &[]);
                (switch == $on).then(|| <$name as $crate::config::Section>::read(values))
            }
        }
    };
}

/// Makes an enum from a closed list of names.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// Returns the name that configurations and results use.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }
    };
}

/// Makes a [`named!`] enum that a key holds: each variant's documentation is its line in the reference.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)+
        }
    ) => {
        $crate::named! {
            $(#[$meta])*
            $vis enum $name {
                $($(#[doc = $doc])+ $variant = $text,)+
            }
        }

        impl $crate::config::section::Natural for $name {
            const KIND: $crate::config::Kind = $crate::config::Kind::Choice(|| {
                vec![$($crate::config::Choice { name: $text, doc: concat!($($doc),+).trim_start() }),+]
            });
        }

        impl $crate::config::section::Field for $name {
            fn of(value: Option<&$crate::config::Value>) -> Option<$name> {
                match value? {
                    $($crate::config::Value::Text(text) if text == $text => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

/// Lets the settings of a layer include those of the layer below: the fields of the lower layer are reached as if
/// they were the upper layer's own, and a reference to the upper settings can be used as a reference to the lower
/// ones.
#[macro_export]
macro_rules! over {
    ($name:ty, $field:ident: $below:ty) => {
        impl std::ops::Deref for $name {
            type Target = $below;

            fn deref(&self) -> &$below {
                &self.$field
            }
        }

        impl std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $below {
                &mut self.$field
            }
        }
    };
}
