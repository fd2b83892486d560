//! `python/ftlab/fields.py` and `docs/fields.md` agree with the structs of a result; `make docs` writes both files.

mod declared;

use std::fmt::Write;
use std::path::Path;

use declared::{Declared, Field, Kind, Struct};

const PYTHON: &str = r#""""The fields of a result, with their types: a checker finds a misspelt one, an editor completes it.

`make docs` writes this file from the structs of `crates/core/src/metrics` and `crates/embed/src/result.rs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ftlab.results.section import Section, Settings
"#;

const PAGE: &str = "# The fields of a result

<!-- `make docs` writes this page from the structs of crates/core/src/metrics and crates/embed/src/result.rs. -->

Every field of the JSON with its formula, in the order of the JSON. [What a result says](results.md) explains them; the
letters in formulas are those of the [glossary](glossary.md#symbols). In Python each table is a class of `ftlab.fields`.
A quotient without a denominator is `null`.
";

/// Upper bound on the characters in a line of the Python file.
const WIDTH: usize = 110;

/// Upper bound on the number of types that are listed for the values of a dictionary.
const MOST_TYPES: usize = 8;

fn python_type(kind: &Kind, declared: &Declared) -> String {
    match kind {
        Kind::Int => "int".into(),
        Kind::Float => "float".into(),
        Kind::Text => "str".into(),
        Kind::Settings => "Settings".into(),
        Kind::Struct(name) => name.clone(),
        Kind::Choice(words) => format!("Literal[{}]", quoted(words, "\"").join(", ")),
        Kind::Optional(inner) => format!("{} | None", python_type(inner, declared)),
        // Objects in a list stay plain dictionaries.
        Kind::List(inner) => match &**inner {
            Kind::Struct(name) => {
                let fields = &declared.structs[name].fields;
                let mut types: Vec<_> =
                    fields.iter().map(|field| python_type(&field.kind, declared)).collect();
                types.dedup();
                // As many types as fill a line would say little.
                let any = if types.len() > MOST_TYPES { "Any".into() } else { types.join(" | ") };
                format!("list[dict[str, {any}]]")
            }
            inner => format!("list[{}]", python_type(inner, declared)),
        },
        Kind::Map(inner) => match &**inner {
            Kind::Struct(_) => "Mapping[str, Mapping[str, Any]]".into(),
            inner => format!("Mapping[str, {}]", python_type(inner, declared)),
        },
    }
}

fn quoted(words: &[String], quote: &str) -> Vec<String> {
    words.iter().map(|word| format!("{quote}{word}{quote}")).collect()
}

/// Returns the type as the page names it.
fn page_type(kind: &Kind) -> String {
    match kind {
        Kind::Int => "integer".into(),
        Kind::Float => "number".into(),
        Kind::Text => "text".into(),
        Kind::Settings => "[keys](configuration.md)".into(),
        Kind::Struct(name) => format!("[{name}](#{})", name.to_lowercase()),
        Kind::Choice(words) => quoted(words, "`").join(" or "),
        Kind::Optional(inner) => format!("{} or null", page_type(inner)),
        Kind::List(inner) => format!("list of {}", page_type(inner)),
        Kind::Map(inner) => format!("by name: {}", page_type(inner)),
    }
}

/// Returns the unit that a name ends in.
fn unit(name: &str) -> &'static str {
    match name {
        _ if name.contains("bytes_per_s") => ", B/s",
        _ if name.contains("bytes") => ", B",
        _ if name.ends_with("_per_s") => ", 1/s",
        _ if name.ends_with("_ns") => ", ns",
        _ if name.ends_with("_s") => ", s",
        _ => "",
    }
}

/// Returns a docstring in lines of at most [`WIDTH`] characters.
fn docstring(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), "    \"\"\"".to_owned());
    for word in text.split(' ') {
        if line.len() + word.len() + 3 > WIDTH {
            lines += &(line.trim_end().to_owned() + "\n");
            line = "    ".into();
        }
        line += &format!("{word} ");
    }
    format!("{lines}{}\"\"\"\n", line.trim_end())
}

fn python_class(Struct { name, doc, fields }: &Struct, declared: &Declared) -> String {
    let mut text = format!("\n\nclass {name}(Section):\n{}\n", docstring(doc));
    // Every mapping has a method `items`; a field with this name is read with brackets.
    for Field { name, doc, kind, sometimes } in fields.iter().filter(|field| field.name != "items") {
        let none = if *sometimes { " | None" } else { "" };
        writeln!(text, "    {name}: {}{none}", python_type(kind, declared)).unwrap();
        text += &docstring(doc);
    }
    text
}

fn page_section(Struct { name, doc, fields }: &Struct) -> String {
    let mut text = format!("\n## {name}\n\n{doc}\n\n| field | type | is |\n|---|---|---|\n");
    for Field { name, doc, kind, sometimes } in fields {
        let sometimes = if *sometimes { ", not in every result" } else { "" };
        writeln!(text, "| `{name}` | {}{}{sometimes} | {doc} |", page_type(kind), unit(name)).unwrap();
    }
    text
}

#[test]
fn the_python_types_and_the_page_are_those_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut declared = Declared::read(&[root.join("crates/core/src/metrics"), root.join("crates/embed/src")]);
    let used = declared.below("Fields");
    let fields = || used.iter().flat_map(|section| &section.fields);
    let holds = |kind: &Kind, name: &str| match kind {
        Kind::Struct(of) => of == name,
        Kind::Optional(of) => matches!(&**of, Kind::Struct(of) if of == name),
        _ => false,
    };
    let is_section = |name: &str| name == "Fields" || fields().any(|field| holds(&field.kind, name));
    let classes = used.iter().rev().filter(|section| is_section(&section.name));
    let python =
        PYTHON.to_owned() + &classes.map(|section| python_class(section, &declared)).collect::<String>();
    let page = PAGE.to_owned() + &used.iter().map(page_section).collect::<String>();
    for (file, text) in [("python/ftlab/fields.py", python), ("docs/fields.md", page)] {
        if std::env::var_os("FTLAB_FIELDS").is_some_and(|how| how == "write") {
            std::fs::write(root.join(file), &text).unwrap();
        }
        assert!(std::fs::read_to_string(root.join(file)).unwrap() == text, "{file}: run `make docs`");
    }
}
