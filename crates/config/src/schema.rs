//! What can be configured, for editors, the command line and the documentation; all of it comes from the key
//! table and the registries.

use crate::catalog::{catalog, leaf_of};
use crate::presets::presets;
use crate::stated;
use ftlab_core::config::units::{BANDWIDTH, BYTES, NANOS, PICOS_PER_BYTE, PPM, Unit};
use ftlab_core::config::{Choice, Key, Kind, MOST_BITS};
use ftlab_core::workload::tenants;
use serde_json::{Map, Value as Json, json};

/// Returns the JSON Schema (draft 2020-12) of a configuration file.
pub fn schema() -> Json {
    let names: Vec<_> = presets().iter().map(|p| Choice { name: p.name, doc: p.doc }).collect();
    let mut preset = enumeration(&names);
    preset["description"] = "Preset to start from; the keys of the file override it.".into();
    let mut properties = Map::new();
    properties.insert("preset".into(), preset);
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ftlab configuration",
        "description": "One TOML file: a workload, and the stack it runs on.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    let mut tenant = json!({"type": "object", "additionalProperties": false, "properties": {}});
    for key in &catalog().keys {
        if let Some(own) = key.path.strip_prefix(&format!("tenant.{}.", tenants::PLACEHOLDER)) {
            insert(&mut tenant, own, key);
            continue;
        }
        if let Some(of_load) = key.path.strip_prefix("workload.").filter(|_| tenants::may_have(key.path)) {
            insert(&mut tenant, of_load, key);
        }
        insert(&mut root, key.path, key);
    }
    root["properties"]["tenant"] = json!({"type": "object", "additionalProperties": tenant});
    root
}

/// Adds a key at a path below an object's schema.
fn insert(object: &mut Json, path: &str, key: &Key) {
    let mut object = object;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            object["properties"][name] = property(key);
            break;
        }
        let inner = &mut object["properties"][name];
        if inner.is_null() {
            *inner = json!({"type": "object", "additionalProperties": false, "properties": {}});
        }
        object = inner;
    }
}

/// Returns the schema of one key.
fn property(key: &Key) -> Json {
    let value = match key.kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Number { min: 0.0, max } => {
            json!({"type": "number", "exclusiveMinimum": 0, "maximum": max})
        }
        Kind::Number { min, max } => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::FromZero { max } => json!({"type": "number", "minimum": 0, "maximum": max}),
        Kind::Bytes { .. } => quantity(&BYTES),
        Kind::Bandwidth { .. } => quantity(&BANDWIDTH),
        Kind::Duration { .. } => quantity(&NANOS),
        Kind::ByPageType { unit, .. } => quantities(unit),
        Kind::Quantity { unit, .. } => quantity(unit),
        Kind::TimePerByte => quantity(&PICOS_PER_BYTE),
        Kind::Percent { .. } => quantity(&PPM),
        Kind::Form { form, .. } => json!({"type": "string", "pattern": form.pattern}),
        Kind::Path => json!({"type": "string", "minLength": 1}),
        Kind::Choice(list) => enumeration(&list()),
    };
    let mut schema = match key.words {
        [] => value,
        words => json!({"anyOf": [{"enum": words}, value]}),
    };
    schema["description"] = key.doc.into();
    if let Some(default) = key.default_value() {
        schema["default"] = stated::to_json(&default);
    }
    schema
}

/// Returns the schema of a quantity: a text with a unit. A schema cannot express the limits of a quantity, which the
/// reader checks.
fn quantity(unit: &Unit) -> Json {
    quantity_behind("", unit)
}

fn quantity_behind(text: &str, unit: &Unit) -> Json {
    json!({"type": "string", "pattern": format!("^{text}{}$", pattern(unit))})
}

/// Returns the schema of up to [`MOST_BITS`] quantities with strokes between them.
fn quantities(unit: &Unit) -> Json {
    let one = pattern(unit);
    json!({"type": "string", "pattern": format!("^{one}( */ *{one}){{0,{}}}$", MOST_BITS - 1)})
}

fn pattern(unit: &Unit) -> String {
    let names: Vec<_> = unit.names.iter().map(|&(name, _)| name).collect();
    format!("[0-9]+(_[0-9]+)*(\\.[0-9]+(_[0-9]+)*)? *({})", names.join("|"))
}

/// Returns the schema of a name from a registry, possibly followed by a share or a number; editors built on taplo show
/// the descriptions.
fn enumeration(list: &[Choice]) -> Json {
    let open = |choice: &Choice| choice.before_share().or(choice.before_number()).is_some();
    let fixed = || list.iter().filter(|choice| !open(choice));
    let names: Vec<_> = fixed().map(|choice| choice.name).collect();
    let docs: Vec<_> = fixed().map(|choice| choice.doc).collect();
    let one = json!({"enum": names, "x-taplo": {"docs": {"enumValues": docs}}});
    let mut shares: Vec<_> =
        list.iter().filter_map(Choice::before_share).map(|name| quantity_behind(name, &PPM)).collect();
    shares.extend(
        list.iter()
            .filter_map(Choice::before_number)
            .map(|name| json!({"type": "string", "pattern": format!("^{name}[0-9]+$")})),
    );
    if shares.is_empty() {
        return one;
    }
    shares.insert(0, one);
    json!({"anyOf": shares})
}

/// Returns every exchangeable part: `{"host.scheduler": [{"name", "doc"}, ...], ...}`, from the registries.
pub fn components() -> Json {
    let mut parts = Map::new();
    for key in &catalog().keys {
        if let Kind::Choice(list) = key.kind {
            let entries: Vec<_> =
                list().iter().map(|choice| json!({"name": choice.name, "doc": choice.doc})).collect();
            parts.insert(key.path.into(), entries.into());
        }
    }
    Json::Object(parts)
}

/// Returns the configuration reference in Markdown: a table of keys for each table of the file, and the names
/// that each choice offers.
pub fn reference_markdown() -> String {
    let mut text = String::from(
        "<!-- Made from the key table by ftlab_config::reference_markdown; not edited by hand. -->\n\n# All configuration keys\n\n\
         Which of them answer a question: [which keys](which-keys.md).\n",
    );
    for table in std::iter::once("").chain(catalog().tables.iter().map(String::as_str)) {
        let heading = if table.is_empty() { "Outside tables".into() } else { format!("`[{table}]`") };
        text.push_str(&format!("\n## {heading}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"));
        if table.is_empty() {
            text.push_str("| `preset` | name | | Preset to start from. |\n");
        }
        for key in catalog().in_table(table) {
            let default = match key.default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            let row =
                format!("| `{}` | {} | {default} | {} |\n", leaf_of(key.path), takes(key), cell(key.doc));
            text.push_str(&row);
        }
        for key in catalog().in_table(table) {
            if let Kind::Choice(list) = key.kind {
                text.push_str(&format!("\n`{}`:\n\n", key.path));
                for choice in list() {
                    text.push_str(&format!("- `{}`: {}\n", choice.name, choice.doc));
                }
            }
        }
    }
    text
}

/// Describes the values of a key in a few words.
fn takes(key: &Key) -> String {
    let limits = |unit: &Unit, min: u64, max: u64| format!("{} to {}", unit.format(min), unit.format(max));
    let value = match key.kind {
        Kind::Bool => "`true`, `false`".into(),
        Kind::Count { min, max } => format!("{min} to {max}"),
        Kind::Number { min: 0.0, max } => format!("above 0, to {max:?}"),
        Kind::Number { min, max } => format!("{min:?} to {max:?}"),
        Kind::FromZero { max } => format!("0 to {max:?}"),
        Kind::Bytes { min, max } if min == max => BYTES.format(min),
        Kind::Bytes { min, max } => limits(&BYTES, min, max),
        Kind::Bandwidth { min, max } => limits(&BANDWIDTH, min, max),
        Kind::Duration { max_ns } => limits(&NANOS, 0, max_ns),
        Kind::ByPageType { unit, max, example } => {
            format!("{}, or one for each page type: `{example}`", limits(unit, 0, max))
        }
        Kind::Quantity { unit, max } => limits(unit, 0, max),
        Kind::TimePerByte => limits(&PICOS_PER_BYTE, 0, ftlab_core::config::MAX_TIME_PER_BYTE_PS),
        Kind::Percent { min_ppm, max_ppm } => limits(&PPM, min_ppm, max_ppm),
        Kind::Form { form, min, max } => format!("{} {}", form.parts, limits(&BYTES, min, max)),
        Kind::Path => "path".into(),
        Kind::Choice(_) => "name, see below".into(),
    };
    key.words.iter().fold(value, |value, word| format!("{value}, `{word}`"))
}

/// Escapes text for a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
