//! What a writer says about the type of a column that the format itself leaves open: a span of time is a plain whole
//! number in Parquet, and its unit is only in Arrow's schema, in pandas' metadata, or in Spark's.

use serde_json::Value;
use std::collections::BTreeMap;

const ARROW: &str = "ARROW:schema";
const PANDAS: &str = "pandas";
const SPARK: &str = "org.apache.spark.sql.parquet.row.metadata";
/// Nanoseconds of Arrow's units of time, by their number.
const UNITS_NS: [i64; 4] = [1_000_000_000, 1_000_000, 1000, 1];

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// What the column's name says.
    One,
    /// Steps of this number of nanoseconds: a duration, or a time of the day.
    Span(i64),
    /// Steps of this number of nanoseconds since 1970.
    Clock(i64),
}

/// What the writer noted, by its keys.
pub(super) type Pairs = BTreeMap<String, String>;

/// Returns what the numbers of a column without a logical type count.
///
/// # Errors
/// What the column is, if it is anything else.
pub(super) fn unit(pairs: &Pairs, name: &str) -> Result<Unit, &'static str> {
    if let Some(schema) = pairs.get(ARROW) {
        let bytes = base64(schema).ok_or(UNTOLD)?;
        return Arrow(&bytes).unit(name).ok_or(UNTOLD)?;
    }
    let of = |key: &str, list: &str| {
        let json: Value = serde_json::from_str(pairs.get(key)?).ok()?;
        let is_named = |field: &&Value| {
            field.get("field_name").or(field.get("name")).is_some_and(|found| found.as_str() == Some(name))
        };
        json.get(list)?.as_array()?.iter().find(is_named).cloned()
    };
    let text = |field: Option<Value>, key: &str| Some(field?.get(key)?.as_str()?.to_owned());
    if let Some(kind) = text(of(PANDAS, "columns"), "numpy_type") {
        return numpy(&kind);
    }
    match text(of(SPARK, "fields"), "type").as_deref() {
        Some("interval year" | "interval month" | "interval year to month") => Err("interval of months"),
        Some(kind) if kind.starts_with("interval") => Ok(Unit::Span(1000)),
        _ => Ok(Unit::One),
    }
}

/// Why a column is refused whose type is in a schema that cannot be read.
const UNTOLD: &str = "of a type that its ARROW:schema does not tell";

/// Returns the unit of numpy's `timedelta64[us]` or `datetime64[us]`; other types are numbers.
fn numpy(kind: &str) -> Result<Unit, &'static str> {
    let Some((kind, unit)) = kind.split_once('[') else { return Ok(Unit::One) };
    let unit = ["s]", "ms]", "us]", "ns]"].iter().position(|known| unit == *known);
    match (kind, unit) {
        ("timedelta64", Some(unit)) => Ok(Unit::Span(UNITS_NS[unit])),
        ("datetime64", Some(unit)) => Ok(Unit::Clock(UNITS_NS[unit])),
        ("timedelta64" | "datetime64", None) => Err("time in an unknown unit"),
        _ => Ok(Unit::One),
    }
}

/// Decodes base64; `None` if it is none.
fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Arrow's schema: a FlatBuffer with the tables `Message`, `Schema` and `Field` of its format (Message.fbs,
/// Schema.fbs). A table begins with the distance back to the list of where its fields are; every position is checked.
struct Arrow<'a>(&'a [u8]);

impl Arrow<'_> {
    /// Returns the unit of a field's numbers; `None` if the schema does not say.
    fn unit(&self, name: &str) -> Option<Result<Unit, &'static str>> {
        // Since 2019, four bytes of ones come before the length.
        let start = if self.u32(0)? == u32::MAX { 8 } else { 4 };
        let message = self.follow(start)?;
        let schema = self.follow(self.field(message, 2)?)?;
        let fields = self.follow(self.field(schema, 1)?)?;
        let field = (0..self.u32(fields)? as usize).find_map(|index| {
            let field = self.follow(fields + 4 + 4 * index)?;
            let text = self.follow(self.field(field, 0)?)?;
            let bytes = self.0.get(text + 4..)?.get(..self.u32(text)? as usize)?;
            (bytes == name.as_bytes()).then_some(field)
        })?;
        let kind = self.field(field, 2).map_or(Some(0), |at| self.0.get(at).copied())?;
        let unit = |default: usize| {
            let table = self.follow(self.field(field, 3)?)?;
            let unit =
                self.field(table, 0).map_or(Some(default), |at| Some(usize::from(*self.0.get(at)?)))?;
            UNITS_NS.get(unit).copied()
        };
        Some(match kind {
            // Nothing but missing values; whole numbers.
            1 | 2 => Ok(Unit::One),
            10 => Ok(Unit::Clock(unit(0)?)),
            18 => Ok(Unit::Span(unit(1)?)),
            _ => Err("of a type that ftlab does not know"),
        })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..)?.get(..4)?.try_into().ok()?))
    }

    /// Returns the position to which the offset at `at` leads.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(self.u32(at)? as usize)
    }

    /// Returns where a table has a field; `None` if it has not.
    fn field(&self, table: usize, field: usize) -> Option<usize> {
        let list = usize::try_from(table as i64 - i64::from(self.u32(table)? as i32)).ok()?;
        let u16 =
            |at: usize| Some(usize::from(u16::from_le_bytes(self.0.get(at..)?.get(..2)?.try_into().ok()?)));
        let at = 4 + 2 * field;
        if at + 2 > u16(list)? {
            return None;
        }
        u16(list + at).filter(|&offset| offset > 0).map(|offset| table + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_from_base64() {
        assert_eq!(base64("/////wA="), Some(vec![255, 255, 255, 255, 0]));
        assert_eq!(base64("TWFu"), Some(b"Man".to_vec()));
        assert_eq!(base64("T-Fu"), None);
    }

    /// The unit of numbers that are spans in pandas' metadata alone, or in Spark's.
    #[test]
    fn units_of_writers() {
        let of = |key: &str, text: &str| unit(&Pairs::from([(key.to_owned(), text.to_owned())]), "a");
        let pandas = |kind: &str| {
            of(
                PANDAS,
                &format!(
                    "{{\"columns\": [{{\"name\": \"b\"}}, {{\"field_name\": \"a\", \"numpy_type\": \"{kind}\"}}]}}"
                ),
            )
        };
        assert_eq!(pandas("timedelta64[us]"), Ok(Unit::Span(1000)));
        assert_eq!(pandas("datetime64[s]"), Ok(Unit::Clock(1_000_000_000)));
        assert_eq!(pandas("timedelta64[D]"), Err("time in an unknown unit"));
        assert_eq!(pandas("int64"), Ok(Unit::One));
        let spark =
            |kind: &str| of(SPARK, &format!("{{\"fields\": [{{\"name\": \"a\", \"type\": \"{kind}\"}}]}}"));
        assert_eq!(spark("interval day to second"), Ok(Unit::Span(1000)));
        assert_eq!(spark("interval year to month"), Err("interval of months"));
        assert_eq!(spark("long"), Ok(Unit::One));
        assert_eq!(of(SPARK, "{"), Ok(Unit::One));
        for damaged in ["", "/////w==", "AAAA", "?"] {
            assert_eq!(of(ARROW, damaged), Err(UNTOLD));
        }
    }
}
