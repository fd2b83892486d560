//! The footer of a Parquet file: its columns, and where the data of each row group is.

use super::thrift::{Kind, Thrift};
use super::written::{self, Pairs, Unit};

/// Why a file is not read whose columns, or some of them, are encrypted.
pub(super) const ENCRYPTED: &str = "it is encrypted, which ftlab does not read: write it without encryption";
const UNKNOWN: &str = "of a logical type that ftlab does not know";

/// A column at the top of the schema.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Index of the column among those that hold values.
    pub(super) leaf: usize,
    /// What the column holds.
    pub(super) holds: Holds,
    /// Whether rows may lack a value.
    pub(super) optional: bool,
}

/// What a column holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holds {
    Numbers(Numbers),
    /// Anything else; the name of its type.
    Other(&'static str),
}

/// How numbers are stored, and what they count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Whether they have four bytes each instead of eight.
    pub(super) short: bool,
    /// Whether they are unsigned.
    pub(super) unsigned: bool,
    /// Whether they are floats.
    pub(super) float: bool,
    pub(super) unit: Unit,
}

/// A row group: the data of the chosen columns for some of the rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) rows: u64,
    /// The columns' data, in the order in which the columns were asked for.
    pub(super) parts: Vec<ColumnChunk>,
}

/// A column's data in a row group: pages, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ColumnChunk {
    /// Parquet's number for the compression of the pages.
    pub(super) codec: i64,
    /// Offset of the first byte in the file.
    pub(super) start: u64,
    /// Offset of the byte after the last one.
    pub(super) end: u64,
}

/// Returns the columns at the top of the schema, in order.
pub(super) fn columns(footer: &[u8]) -> Result<Vec<Column>, String> {
    let mut thrift = Thrift::new(footer);
    let (mut last, mut elements, mut pairs) = (0, Vec::new(), Pairs::new());
    while let Some((id, kind)) = thrift.field(&mut last)? {
        match id {
            2 => top(&mut thrift, kind, &mut elements)?,
            5 => {
                for _ in 0..thrift.list(kind)?.0 {
                    pairs.extend(pair(&mut thrift)?);
                }
            }
            8 => return Err(ENCRYPTED.into()),
            _ => thrift.skip(kind)?,
        }
    }
    Ok(elements.iter().map(|(element, leaf)| element.column(*leaf, &pairs)).collect())
}

/// Reads the elements of the schema; keeps those at its top, with the index of the first value of each.
fn top(thrift: &mut Thrift, kind: Kind, elements: &mut Vec<(Element, usize)>) -> Result<(), String> {
    let mut leaves = 0;
    // For each open group, the number of children still to come; the first group is the schema itself.
    let mut open: Vec<u64> = Vec::new();
    for _ in 0..thrift.list(kind)?.0 {
        let element = Element::read(thrift)?;
        while open.last() == Some(&0) {
            open.pop();
        }
        let children = element.children;
        let is_root = open.is_empty();
        if let Some(left) = open.last_mut() {
            *left -= 1;
            if open.len() == 1 {
                elements.push((element, leaves));
            }
            leaves += usize::from(children == 0);
        }
        if children > 0 || is_root {
            open.push(children);
        }
    }
    Ok(())
}

/// Reads a key and its value, if it has one.
fn pair(thrift: &mut Thrift) -> Result<Option<(String, String)>, String> {
    let (mut last, mut found) = (0, [None, None]);
    while let Some((id, kind)) = thrift.field(&mut last)? {
        match id {
            1 | 2 => {
                found[id as usize - 1] = Some(String::from_utf8_lossy(thrift.binary(kind)?).into_owned())
            }
            _ => thrift.skip(kind)?,
        }
    }
    let [key, value] = found;
    Ok(key.zip(value))
}

/// Returns the row groups, each with the data of the columns with these indices among those that hold values.
pub(super) fn groups(footer: &[u8], leaves: &[usize]) -> Result<Vec<Group>, String> {
    let mut thrift = Thrift::new(footer);
    let (mut last, mut groups) = (0, Vec::new());
    while let Some((id, kind)) = thrift.field(&mut last)? {
        if id == 4 {
            for _ in 0..thrift.list(kind)?.0 {
                groups.push(group(&mut thrift, leaves)?);
            }
        } else {
            thrift.skip(kind)?;
        }
    }
    Ok(groups)
}

fn group(thrift: &mut Thrift, leaves: &[usize]) -> Result<Group, String> {
    let mut group = Group { rows: 0, parts: vec![ColumnChunk::default(); leaves.len()] };
    let mut last = 0;
    while let Some((id, kind)) = thrift.field(&mut last)? {
        match id {
            1 => {
                for leaf in 0..thrift.list(kind)?.0 {
                    let part = part(thrift)?;
                    for (&wanted, place) in leaves.iter().zip(&mut group.parts) {
                        if wanted as u64 == leaf {
                            *place = part.ok_or("it does not say where a column's data are")?;
                        }
                    }
                }
            }
            3 => group.rows = thrift.size(kind)?,
            _ => thrift.skip(kind)?,
        }
    }
    Ok(group)
}

/// Returns where a column's data is; `None` if the footer does not state that.
fn part(thrift: &mut Thrift) -> Result<Option<ColumnChunk>, String> {
    let (mut last, mut part) = (0, None);
    while let Some((id, kind)) = thrift.field(&mut last)? {
        match id {
            1 => return Err("its columns are in other files".into()),
            3 if kind == 12 => part = Some(metadata(thrift)?),
            8 => return Err(ENCRYPTED.into()),
            _ => thrift.skip(kind)?,
        }
    }
    Ok(part)
}

fn metadata(thrift: &mut Thrift) -> Result<ColumnChunk, String> {
    let (mut last, mut codec, mut bytes, mut data, mut dictionary) = (0, 0, 0, 0, 0);
    while let Some((id, kind)) = thrift.field(&mut last)? {
        match id {
            4 => codec = thrift.int(kind)?,
            7 => bytes = thrift.size(kind)?,
            9 => data = thrift.size(kind)?,
            11 => dictionary = thrift.size(kind)?,
            _ => thrift.skip(kind)?,
        }
    }
    // Some writers store 0 if there is no dictionary.
    let start = if dictionary > 0 { data.min(dictionary) } else { data };
    Ok(ColumnChunk { codec, start, end: start.saturating_add(bytes) })
}

/// An element of the schema.
#[derive(Default)]
struct Element {
    physical: Option<i64>,
    /// 0: required, 1: optional, 2: repeated.
    repetition: i64,
    name: String,
    children: u64,
    converted: Option<i64>,
    logical: Option<Logical>,
}

/// A logical type, by its number.
#[derive(Clone, Copy, Default)]
struct Logical {
    number: i64,
    /// Whether whole numbers have no sign.
    unsigned: bool,
    /// Nanoseconds of the unit of a time.
    unit_ns: Option<i64>,
}

impl Element {
    fn read(thrift: &mut Thrift) -> Result<Element, String> {
        let (mut last, mut element) = (0, Element::default());
        while let Some((id, kind)) = thrift.field(&mut last)? {
            match id {
                1 => element.physical = Some(thrift.int(kind)?),
                3 => element.repetition = thrift.int(kind)?,
                4 => element.name = String::from_utf8_lossy(thrift.binary(kind)?).into_owned(),
                5 => element.children = thrift.size(kind)?,
                6 => element.converted = Some(thrift.int(kind)?),
                10 if kind == 12 => element.logical = logical(thrift)?,
                _ => thrift.skip(kind)?,
            }
        }
        Ok(element)
    }

    fn column(&self, leaf: usize, pairs: &Pairs) -> Column {
        let optional = self.repetition == 1;
        Column { name: self.name.clone(), leaf, holds: self.holds(pairs), optional }
    }

    fn holds(&self, pairs: &Pairs) -> Holds {
        if self.children > 0 || self.repetition == 2 {
            return Holds::Other("nested");
        }
        let text = self.converted == Some(0) || self.logical.is_some_and(|logical| logical.number == 1);
        let float = |short| Holds::Numbers(Numbers { short, unsigned: false, float: true, unit: Unit::One });
        match self.physical {
            Some(0) => Holds::Other("Boolean"),
            Some(1) => self.whole(true, pairs),
            Some(2) => self.whole(false, pairs),
            Some(3) => Holds::Other("Int96, a time of old writers"),
            Some(4) => float(true),
            Some(5) => float(false),
            _ if text => Holds::Other("String"),
            _ => Holds::Other("Binary"),
        }
    }

    /// Returns what whole numbers are.
    fn whole(&self, short: bool, pairs: &Pairs) -> Holds {
        let numbers = |unsigned, unit| Holds::Numbers(Numbers { short, unsigned, float: false, unit });
        let time = |unit: fn(i64) -> Unit, unit_ns: Option<i64>| match unit_ns {
            Some(unit_ns) => numbers(false, unit(unit_ns)),
            None => Holds::Other("time in an unknown unit"),
        };
        let Some(Logical { number, unsigned, unit_ns }) = self.logical else {
            return match self.converted {
                None => match written::unit(pairs, &self.name) {
                    Ok(unit) => numbers(false, unit),
                    Err(what) => Holds::Other(what),
                },
                Some(11..=14) => numbers(true, Unit::One),
                Some(15..=18) => numbers(false, Unit::One),
                Some(5) => Holds::Other("Decimal"),
                Some(6) => Holds::Other("Date"),
                Some(7) => numbers(false, Unit::Span(1_000_000)),
                Some(8) => numbers(false, Unit::Span(1000)),
                Some(9) => numbers(false, Unit::Clock(1_000_000)),
                Some(10) => numbers(false, Unit::Clock(1000)),
                Some(_) => Holds::Other(UNKNOWN),
            };
        };
        match number {
            5 => Holds::Other("Decimal"),
            6 => Holds::Other("Date"),
            7 => time(Unit::Span, unit_ns),
            8 => time(Unit::Clock, unit_ns),
            10 => numbers(unsigned, Unit::One),
            // No value at all.
            11 => numbers(false, Unit::One),
            _ => Holds::Other(UNKNOWN),
        }
    }
}

/// Reads a logical type: a union, whose one field has the number of the type.
fn logical(thrift: &mut Thrift) -> Result<Option<Logical>, String> {
    let (mut last, mut found) = (0, None);
    while let Some((number, kind)) = thrift.field(&mut last)? {
        let mut logical = Logical { number, ..Logical::default() };
        if [7, 8, 10].contains(&number) && kind == 12 {
            let mut last = 0;
            while let Some((id, kind)) = thrift.field(&mut last)? {
                // A boolean is encoded in the kind of its field.
                logical.unsigned |= number == 10 && (id, kind) == (2, 2);
                if number != 10 && (id, kind) == (2, 12) {
                    logical.unit_ns = unit_ns(thrift)?;
                } else {
                    thrift.skip(kind)?;
                }
            }
        } else {
            thrift.skip(kind)?;
        }
        found = Some(logical);
    }
    Ok(found)
}

/// Reads a unit of time, a union too: 1 ms, 2 us, 3 ns.
fn unit_ns(thrift: &mut Thrift) -> Result<Option<i64>, String> {
    let (mut last, mut unit_ns) = (0, None);
    while let Some((unit, kind)) = thrift.field(&mut last)? {
        thrift.skip(kind)?;
        unit_ns = [1_000_000, 1000, 1].get((unit - 1) as usize).copied();
    }
    Ok(unit_ns)
}
