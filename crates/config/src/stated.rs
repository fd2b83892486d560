//! Values as a file would state them.

use ftlab_core::config::Value;
use ftlab_core::config::units::{BANDWIDTH, BYTES, NANOS, PICOS_PER_BYTE, PPM};

/// Converts a value to JSON: quantities become strings with units, counts become numbers.
pub(crate) fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Count(n) => (*n).into(),
        Value::Number(n) => (*n).into(),
        Value::Bytes(n) => BYTES.format(*n).into(),
        Value::Bandwidth(n) => BANDWIDTH.format(*n).into(),
        Value::Nanos(n) => NANOS.format(*n).into(),
        Value::ByPageType(by_type) => by_type.to_string().into(),
        Value::Quantity(n, unit) => unit.format(*n).into(),
        Value::PicosPerByte(n) => PICOS_PER_BYTE.format(*n).into(),
        Value::Ppm(n) => PPM.format(*n).into(),
        Value::Text(text) | Value::Form(text) => text.as_str().into(),
        Value::Word(word) => (*word).into(),
    }
}

/// Formats a value as a TOML file would state it.
pub(crate) fn to_toml(value: &Value) -> String {
    match value {
        // Rust prints the shortest text that parses to the same float, always with a point or exponent.
        Value::Number(n) => format!("{n:?}"),
        _ => match to_json(value) {
            serde_json::Value::String(text) => quoted(&text),
            other => other.to_string(),
        },
    }
}

/// Returns a text as a basic TOML string.
pub(crate) fn quoted(text: &str) -> String {
    use toml_writer::ToTomlValue;
    toml_writer::TomlStringBuilder::new(text).as_basic().to_toml_value()
}
