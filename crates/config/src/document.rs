//! A TOML text as a list of known keys with their values and places.

use crate::catalog::{Catalog, catalog, leaf_of, table_of};
use crate::error::{ConfigError, Text, clean};
use crate::suggest::{self, nearest};
use crate::table::check_nesting;
use crate::value::{self, Literal};
use ftlab_core::config::Value;
use ftlab_core::workload::tenants;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A range of bytes in a text.
pub(crate) type Span = Range<usize>;

/// The content of a text.
#[derive(Default)]
pub(crate) struct Document {
    /// Name of the preset from which the text starts.
    pub preset: Option<(String, Span)>,
    /// Checked values of known keys.
    pub values: BTreeMap<&'static str, (Value, Span)>,
}

/// Reads a text strictly: every key must be known and every value must suit its key.
///
/// # Errors
/// The first mistake, in the order of the text.
pub(crate) fn read(source: &Text) -> Result<Document, ConfigError> {
    check_nesting(source)?;
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if let Some(error) = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start)) {
        return Err(syntax(source, error.message(), error.span().unwrap_or(0..0)));
    }
    let mut reader = Reader { source, catalog: catalog(), document: Document::default() };
    let mut entries = Vec::new();
    reader.entries("", table.get_ref(), &mut entries);
    // Messages cost more than keys, so only the first mistake gets a message.
    entries.sort_by_key(|entry| entry.name.span().start);
    entries.iter().try_for_each(|entry| reader.entry(entry))?;
    Ok(reader.document)
}

/// A key with its value, or the name of an unknown table.
struct Entry<'a> {
    /// The enclosing tables, dotted; empty at the top.
    prefix: String,
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
}

/// Joins a prefix and a name to a dotted path.
fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

struct Reader<'a> {
    source: &'a Text,
    catalog: &'static Catalog,
    document: Document,
}

impl Reader<'_> {
    fn fail<T>(&self, span: Span, message: &str, notes: &[String]) -> Result<T, ConfigError> {
        Err(ConfigError::in_text(self.source, span, message, notes))
    }

    fn entries<'t>(&self, prefix: &str, table: &'t DeTable<'t>, found: &mut Vec<Entry<'t>>) {
        for (name, value) in table.iter() {
            let path = joined(prefix, name.get_ref());
            match value.get_ref() {
                DeValue::Table(inner)
                    if !name.get_ref().contains('.')
                        && self.catalog.is_table(&path)
                        && !(inner.is_empty() && path.starts_with("tenant.")) =>
                {
                    self.entries(&path, inner, found);
                }
                _ => found.push(Entry { prefix: prefix.to_owned(), name, value }),
            }
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), ConfigError> {
        let Entry { prefix, name, value } = entry;
        if name.get_ref().contains('.') {
            return self.quoted_path(prefix, name.get_ref(), name.span());
        }
        let path = joined(prefix, name.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) if inner.is_empty() && self.catalog.is_table(&path) => {
                let message =
                    format!("[{path}]: empty; a tenant needs a load: one of {}", tenants::LOADS.join(", "));
                self.fail(name.span(), &message, &[])
            }
            DeValue::Table(_) => self.not_a_table(&path, name.span()),
            leaf => self.leaf(&path, &Literal::of_toml(leaf), name.span(), value.span()),
        }
    }

    fn leaf(&mut self, path: &str, literal: &Literal, name: Span, place: Span) -> Result<(), ConfigError> {
        if path == "preset" {
            let Literal::Text(preset) = literal else {
                return self.fail(place, "preset: expected the name of a preset in quotes", &[]);
            };
            self.document.preset = Some((preset.clone(), place));
        } else if let Some(key) = self.catalog.key(path) {
            match value::read(key, literal) {
                Ok(value) => self.document.values.insert(ftlab_core::config::path(path), (value, place)),
                Err(fault) => {
                    let message = format!("{path}: {}", fault.message);
                    return self.fail(place, &message, fault.note.as_slice());
                }
            };
        } else if self.catalog.is_table(path) {
            let note = suggest::keys_of(self.catalog, path);
            let message = format!("{path}: a table; write [{path}] and its keys below it");
            return self.fail(place, &message, &[note]);
        } else {
            let (message, notes) = unknown_key(self.catalog, path);
            return self.fail(name, &message, &notes);
        }
        Ok(())
    }

    /// Makes the error for a table with an unknown name.
    fn not_a_table(&self, path: &str, name: Span) -> Result<(), ConfigError> {
        if let Some(key) = self.catalog.key(path) {
            return self.fail(
                name,
                &format!("{path}: a table, where {} is expected", value::expected(key)),
                &[],
            );
        }
        if path == "preset" {
            return self.fail(name, "preset: a table, where the name of a preset is expected", &[]);
        }
        let tables = || self.catalog.tables.iter().map(String::as_str);
        let meant = nearest(path, tables().filter(|table| !path.starts_with(table)))
            .or_else(|| tables().find(|table| leaf_of(table) == leaf_of(path)));
        let advice = meant.map_or(String::new(), |table| format!("; did you mean [{table}]?"));
        let note = format!("tables: {}", suggest::tables(self.catalog));
        self.fail(name, &format!("[{}]: unknown table{advice}", clean(path, 60)), &[note])
    }

    /// Makes the error for `"host.scheduler" = ...`: TOML takes a quoted key as one name, dots included.
    fn quoted_path(&self, prefix: &str, name: &str, span: Span) -> Result<(), ConfigError> {
        let path = joined(prefix, name);
        if self.catalog.key(&path).is_some() || self.catalog.key(name).is_some() {
            let message =
                format!("\"{name}\": a quoted name with a dot is not a path; write {name} without quotes");
            return self.fail(span, &message, &[]);
        }
        let (message, notes) = unknown_key(self.catalog, &path);
        self.fail(span, &message, &notes)
    }
}

/// Makes the message `host.schduler: unknown key; did you mean host.scheduler?`, with its notes.
fn unknown_key(catalog: &Catalog, path: &str) -> (String, Vec<String>) {
    let advice = suggest::key(catalog, path);
    let shown = clean(path, 80);
    let hint = match advice.keys.as_slice() {
        [] => String::new(),
        [key] if advice.misplaced => format!("; it belongs in [{}]: {key}", table_of(key)),
        keys => format!("; did you mean {}?", keys.join(" or ")),
    };
    (format!("{shown}: unknown key{hint}"), advice.note.into_iter().collect())
}

/// Makes the error for a text that is not TOML. The parser's message is kept, unless a common slip has a
/// clearer one.
fn syntax(source: &Text, message: &str, span: Span) -> ConfigError {
    let before = &source.text[..span.start.min(source.text.len())];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = source.text[start..].lines().next().unwrap_or_default();
    let header = line.trim_start().starts_with('[');
    if message == "duplicate key" {
        let name = source.text.get(span.clone()).unwrap_or_default();
        let name = if header { line.trim().to_owned() } else { inside(&source.text[..start], name) };
        return ConfigError::in_text(source, span, &format!("{name}: given twice"), &[]);
    }
    if let Some((name, bare)) = unquoted(line) {
        let from = start + line.find('=').map_or(0, |equals| equals + 1);
        let from = from + source.text[from..].find(bare).unwrap_or(0);
        let path = inside(&source.text[..start], name);
        let (message, notes) = without_quotes(&path, name, bare);
        return ConfigError::in_text(source, from..from + bare.len(), &message, &notes);
    }
    if let Some(name) = line.trim_end().strip_suffix('=').map(str::trim).filter(|name| !name.is_empty()) {
        let name = inside(&source.text[..start], name);
        return ConfigError::in_text(source, span, &format!("{name}: no value after \"=\""), &[]);
    }
    let note = "A configuration is a TOML file; a trace is given with --trace FILE.".to_owned();
    let notes = if start == 0 { vec![note] } else { Vec::new() };
    let message = message.replace('\n', ", ");
    ConfigError::in_text(source, span, &format!("not valid TOML: {message}"), &notes)
}

/// Returns the path of a key that follows `before`: it belongs to the last table header in that text.
fn inside(before: &str, name: &str) -> String {
    let header = before.lines().rev().map(str::trim_start).find(|line| line.starts_with('['));
    match header.and_then(|line| line.trim_start_matches('[').split_once(']')) {
        Some((table, _)) => format!("{}.{name}", table.trim()),
        None => name.to_owned(),
    }
}

/// Returns the message about a bare word: the advice to put it into quotes, or the reason why its key would refuse it
/// even in quotes.
fn without_quotes(path: &str, name: &str, bare: &str) -> (String, Vec<String>) {
    let catalog = catalog();
    match catalog.key(path).map(|key| value::read(key, &Literal::Text(bare.to_owned()))) {
        Some(Err(fault)) => (format!("{path}: {}", fault.message), fault.note.into_iter().collect()),
        None if path != "preset" => unknown_key(catalog, path),
        _ => (format!("{path}: {bare} needs quotes: {name} = {}", crate::stated::quoted(bare)), Vec::new()),
    }
}

/// Returns the key and the value of a line `key = value` whose value only lacks its quotes.
fn unquoted(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once('=')?;
    let name = name.trim();
    let bare = rest.split('#').next().unwrap_or_default().trim();
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || more.contains(c))
    };
    let lacks_quotes = plain(name, "._-") && plain(bare, "._-+%/ ") && DeValue::parse(bare).is_err();
    lacks_quotes.then_some((name, bare))
}
