//! Figures that individual parts report.

use std::borrow::Cow;

type Text = Cow<'static, str>;

/// A figure that a part reports besides what every result holds: `own.PART.NAME` of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// The figure's name: small letters, digits and underscores.
    pub name: Text,
    /// The figure's value.
    pub value: f64,
    /// The figure's unit in the plural (`requests`, `ns`); empty for a ratio.
    pub unit: Text,
    /// What the figure means, in one line.
    pub doc: Text,
}

impl Stat {
    /// Makes a figure.
    pub fn new(name: impl Into<Text>, value: f64, unit: impl Into<Text>, doc: impl Into<Text>) -> Stat {
        Stat { name: name.into(), value, unit: unit.into(), doc: doc.into() }
    }

    /// Whether the name is one that a column of a table, or a Prometheus metric, may have.
    pub fn is_named_well(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        self.name.starts_with(|first: char| first.is_ascii_lowercase()) && self.name.bytes().all(plain)
    }
}
