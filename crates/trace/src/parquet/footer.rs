//! The footer of a Parquet file: its columns, and where the data of each row group is.

use super::thrift::Thrift;

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
    /// Whole numbers.
    Whole {
        /// Whether the numbers have four bytes each instead of eight.
        short: bool,
        /// Whether the numbers are unsigned.
        unsigned: bool,
    },
    /// Anything else; the name of its type.
    Other(&'static str),
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
    let (mut last, mut columns, mut leaves) = (0, Vec::new(), 0);
    while let Some((id, kind)) = thrift.field(&mut last)? {
        if id != 2 {
            thrift.skip(kind)?;
            continue;
        }
        // For each open group, the number of children still to come; the first group is the schema itself.
        let mut open: Vec<u64> = Vec::new();
        for _ in 0..thrift.list(kind)?.0 {
            let element = Element::read(&mut thrift)?;
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
                if open.len() == 1 {
                    columns.push(element.column(leaves));
                }
                leaves += usize::from(element.children == 0);
            }
            if element.children > 0 || open.is_empty() {
                open.push(element.children);
            }
        }
    }
    Ok(columns)
}

/// Returns the row groups, each with the data of these columns.
pub(super) fn groups(footer: &[u8], columns: &[Column]) -> Result<Vec<Group>, String> {
    let mut thrift = Thrift::new(footer);
    let (mut last, mut groups) = (0, Vec::new());
    while let Some((id, kind)) = thrift.field(&mut last)? {
        if id == 4 {
            for _ in 0..thrift.list(kind)?.0 {
                groups.push(group(&mut thrift, columns)?);
            }
        } else {
            thrift.skip(kind)?;
        }
    }
    Ok(groups)
}

fn group(thrift: &mut Thrift, columns: &[Column]) -> Result<Group, String> {
    let mut group = Group { rows: 0, parts: vec![ColumnChunk::default(); columns.len()] };
    let mut last = 0;
    while let Some((id, kind)) = thrift.field(&mut last)? {
        match id {
            1 => {
                for leaf in 0..thrift.list(kind)?.0 {
                    let part = part(thrift)?;
                    for (column, place) in columns.iter().zip(&mut group.parts) {
                        if column.leaf as u64 == leaf {
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
    /// Number of the logical type, and whether that type has a sign.
    logical: Option<(i64, bool)>,
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

    fn column(&self, leaf: usize) -> Column {
        Column { name: self.name.clone(), leaf, holds: self.holds(), optional: self.repetition == 1 }
    }

    fn holds(&self) -> Holds {
        if self.children > 0 || self.repetition == 2 {
            return Holds::Other("nested");
        }
        let whole = |short| match (self.logical, self.converted) {
            (Some((10, signed)), _) => Holds::Whole { short, unsigned: !signed },
            (Some((5, _)), _) | (None, Some(5)) => Holds::Other("Decimal"),
            (Some((6, _)), _) | (None, Some(6)) => Holds::Other("Date"),
            (Some((7, _)), _) | (None, Some(7 | 8)) => Holds::Other("Time"),
            (Some((8, _)), _) | (None, Some(9 | 10)) => Holds::Other("Datetime"),
            (Some(_), _) => Holds::Other("Null"),
            (None, converted) => {
                Holds::Whole { short, unsigned: converted.is_some_and(|kind| (11..=14).contains(&kind)) }
            }
        };
        match self.physical {
            Some(0) => Holds::Other("Boolean"),
            Some(1) => whole(true),
            Some(2) => whole(false),
            Some(3) => Holds::Other("Datetime"),
            Some(4) => Holds::Other("Float32"),
            Some(5) => Holds::Other("Float64"),
            _ if self.converted == Some(0) || self.logical.is_some_and(|(id, _)| id == 1) => {
                Holds::Other("String")
            }
            _ => Holds::Other("Binary"),
        }
    }
}

/// Returns the number of the logical type, and whether that type has a sign.
fn logical(thrift: &mut Thrift) -> Result<Option<(i64, bool)>, String> {
    let (mut last, mut found) = (0, None);
    while let Some((id, kind)) = thrift.field(&mut last)? {
        let mut signed = true;
        if id == 10 && kind == 12 {
            let mut last = 0;
            while let Some((id, kind)) = thrift.field(&mut last)? {
                // A boolean is encoded in the kind of its field.
                signed &= (id, kind) != (2, 2);
                thrift.skip(kind)?;
            }
        } else {
            thrift.skip(kind)?;
        }
        found = Some((id, signed));
    }
    Ok(found)
}
