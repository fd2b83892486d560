//! Parts' own figures.

use std::borrow::Cow;

type Text = Cow<'static, str>;

/// A figure that a part reports besides what every result holds: `own.PART.NAME` of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// Its name: small letters, digits and underscores.
    pub name: Text,
    /// Its value.
    pub value: f64,
    /// Its unit in the plural (`requests`, `ns`); empty for a ratio.
    pub unit: Text,
    /// What it is, one line.
    pub doc: Text,
}

impl Stat {
    /// Makes the figure of this name.
    pub fn new(name: impl Into<Text>, value: f64, unit: impl Into<Text>, doc: impl Into<Text>) -> Stat {
        Stat { name: name.into(), value, unit: unit.into(), doc: doc.into() }
    }

    /// Whether its name is one that a column of a table and a metric of Prometheus may have.
    pub fn is_named_well(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        self.name.starts_with(|first: char| first.is_ascii_lowercase()) && self.name.bytes().all(plain)
    }
}
