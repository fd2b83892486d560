//! Defaults, then the preset, then the file, then the options: later ones win.

use crate::catalog::catalog;
use crate::document::{self, Span};
use crate::error::{ConfigError, Text, clean};
use crate::value::{self, Literal};
use crate::{presets, stated, suggest};
use ftlab_core::config::{Contradiction, Key, Value, Values};
use ftlab_core::settings::shapes_state;
use ftlab_core::workload::tenants;
use ftlab_files::settings::Settings;
use std::collections::BTreeMap;

/// What a configuration starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// A preset, by name.
    Preset(&'a str),
    /// The text of a configuration file.
    Text {
        /// Name of the text in messages, for example its path.
        name: &'a str,
        /// The TOML text.
        text: &'a str,
    },
}

/// A key that is set from outside the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The option as the user gave it, for messages: `--set host.scheduler=noop`,
    /// `--dedup 50ms`, `keyword 'seed'`.
    pub origin: String,
    /// Dotted key, or `preset`.
    pub key: String,
    /// The key's value, without the quotes that a file needs: `16KiB`, `map+`, `128`; quotes are allowed too.
    pub value: String,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Default,
    Preset(Span),
    File(Span),
    Option(String),
}

/// A complete configuration: every key with its value and the place where the value was stated.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The preset from which the configuration started.
    pub preset: Option<String>,
    /// Every key that has a value.
    pub values: Values,
    /// The same values in the form that the stack reads.
    pub settings: Settings,
    layers: Layers,
}

/// The places of the values, and the texts that they refer to.
#[derive(Clone, Debug, Default)]
struct Layers {
    places: BTreeMap<&'static str, Place>,
    preset: Option<Text>,
    file: Option<Text>,
}

/// Resolves a configuration.
///
/// # Errors
/// The first mistake: those in the file come first, in line order, then those in the options, in order, then
/// values that do not fit together.
pub fn resolve(base: Base<'_>, overrides: &[Override]) -> Result<Resolved, ConfigError> {
    let mut layers = Layers::default();
    let mut document = document::Document::default();
    let mut preset = None;
    match base {
        Base::Preset(name) => preset = Some(named(name, name)?),
        Base::Text { name, text } => {
            let source = Text::new(name, text);
            document = document::read(&source)?;
            if let Some((name, span)) = document.preset.take() {
                let found = presets::find(&name).ok_or_else(|| {
                    let (message, note) = presets::unknown(&name);
                    ConfigError::in_text(&source, span, &format!("preset: {message}"), &[note])
                });
                preset = Some(found?);
            }
            layers.file = Some(source);
        }
    }
    let mut options = Vec::new();
    for option in overrides {
        if option.key.trim() == "preset" {
            let name = value::unquoted(&option.value);
            preset = Some(named(&name, &option.origin)?);
        } else {
            options.push(read_option(option)?);
        }
    }

    let mut values = Values::new();
    for key in catalog().keys.iter().filter(|key| !is_for_all(key)) {
        if let Some(value) = key.default_value() {
            set(&mut values, &mut layers, key.path, value, Place::Default);
        }
    }
    if let Some(preset) = preset {
        let source = Text::new(&format!("preset {}", preset.name), preset.text);
        for (path, (value, span)) in document::read(&source)?.values {
            set(&mut values, &mut layers, path, value, Place::Preset(span));
        }
        layers.preset = Some(source);
    }
    for (path, (value, span)) in document.values {
        set(&mut values, &mut layers, path, value, Place::File(span));
    }
    for (path, value, origin) in options {
        set(&mut values, &mut layers, path, value, Place::Option(origin));
    }

    let (settings, replaced) = unnamed(&values)
        .and_then(|()| Settings::from_values(&values))
        .and_then(|settings| match settings.replaced(&values) {
            Some((_, fault)) if layers.is_by_user(fault.key) => Err(fault),
            replaced => Ok((settings, replaced)),
        })
        .map_err(|Contradiction { key, message }| layers.complain(&values, key, &message))?;
    // A file of all values must resolve to the same ones.
    values.extend(replaced.map(|(value, fault)| (fault.key, value)));
    Ok(Resolved { preset: preset.map(|preset| preset.name.to_owned()), values, settings, layers })
}

/// Whether a key is declared for every tenant, and so has no value itself.
fn is_for_all(key: &Key) -> bool {
    key.path.starts_with(&format!("tenant.{}.", tenants::PLACEHOLDER))
}

/// Refuses keys of a tenant whose name is the one that stands for all names, and which has no load.
fn unnamed(values: &Values) -> Result<(), Contradiction> {
    let name = tenants::PLACEHOLDER;
    let prefix = format!("tenant.{name}.");
    match values.keys().find(|path| path.starts_with(&prefix)).filter(|_| !tenants::has_load(values)) {
        Some(&key) => {
            let message = format!("{name} stands for the name of your tenant; write that name");
            Err(Contradiction { key, message })
        }
        None => Ok(()),
    }
}

fn set(values: &mut Values, layers: &mut Layers, path: &'static str, value: Value, place: Place) {
    values.insert(path, value);
    layers.places.insert(path, place);
}

fn named(name: &str, location: &str) -> Result<&'static presets::Preset, ConfigError> {
    presets::find(name).ok_or_else(|| {
        let (message, note) = presets::unknown(name);
        ConfigError::plain(location, &message, &[note])
    })
}

/// Reads one option.
fn read_option(option: &Override) -> Result<(&'static str, Value, String), ConfigError> {
    let catalog = catalog();
    let path = option.key.trim();
    let fail = |message: &str, notes: &[String]| Err(ConfigError::plain(&option.origin, message, notes));
    let Some(key) = catalog.key(path) else {
        let shown = clean(path, 80);
        if path.is_empty() {
            return fail("no key; write KEY=VALUE, for example host.scheduler=noop", &[]);
        }
        if catalog.is_table(path) {
            let note = suggest::keys_of(catalog, path);
            return fail(&format!("{shown} is a table; name one of its keys"), &[note]);
        }
        let advice = suggest::key(catalog, path);
        let hint = match advice.keys.as_slice() {
            [] => String::new(),
            keys => format!("; did you mean {}?", keys.join(" or ")),
        };
        return fail(&format!("unknown key {shown}{hint}"), advice.note.as_slice());
    };
    match value::read(key, &Literal::of_option(&key.kind, &option.value)) {
        Ok(value) => Ok((ftlab_core::config::path(path), value, option.origin.clone())),
        Err(fault) => {
            // The origin has just shown the key and the value, so neither is repeated.
            let value = format!("{}: ", clean(option.value.trim(), 60));
            let shown = option.origin.ends_with(option.value.trim());
            let message = fault.message.strip_prefix(&value).filter(|_| shown).unwrap_or(&fault.message);
            fail(&format!("{}{message}", named_once(&option.origin, path)), fault.note.as_slice())
        }
    }
}

/// Returns `key: `, or nothing if the origin shows the key already.
fn named_once(origin: &str, key: &str) -> String {
    if origin.contains(key) { String::new() } else { format!("{key}: ") }
}

impl Layers {
    /// Makes a message about a key at the place that the user can change: where the user wrote the key, else where
    /// the user wrote another key that the message names, else the preset's line or the default.
    fn complain(&self, values: &Values, key: &str, message: &str) -> ConfigError {
        let by_user = |path: &&str| self.is_by_user(path);
        let mut involved = involved(key, message);
        for table in catalog().tables.iter().filter(|table| message.contains(&format!("[{table}]"))) {
            involved.extend(catalog().in_table(table).map(|key| key.path).filter(by_user));
        }
        let mut seen = Vec::new();
        involved.retain(|path| {
            !seen.contains(path) && {
                seen.push(*path);
                true
            }
        });
        let spot = involved.iter().copied().find(by_user).unwrap_or(key);
        let notes: Vec<String> = involved
            .iter()
            .filter_map(|path| {
                Some(format!("{path} = {} ({})", stated::to_toml(values.get(path)?), self.place(path)?))
            })
            .collect();
        let full = format!("{key}: {message}");
        match (self.places.get(spot), &self.preset, &self.file) {
            (Some(Place::File(span)), _, Some(file)) => {
                ConfigError::in_text(file, span.clone(), &full, &notes)
            }
            (Some(Place::Preset(span)), Some(preset), _) => {
                ConfigError::in_text(preset, span.clone(), &full, &notes)
            }
            (Some(Place::Option(origin)), ..) => {
                ConfigError::plain(origin, &format!("{}{message}", named_once(origin, key)), &notes)
            }
            (Some(_), ..) => ConfigError::plain(&format!("default of {key}"), message, &notes),
            (None, ..) => ConfigError::plain(key, message, &notes),
        }
    }

    fn is_by_user(&self, path: &str) -> bool {
        matches!(self.places.get(path), Some(Place::File(_) | Place::Option(_)))
    }

    fn place(&self, path: &str) -> Option<String> {
        Some(match (self.places.get(path)?, &self.preset, &self.file) {
            (Place::File(span), _, Some(text)) | (Place::Preset(span), Some(text), _) => {
                text.place(span.start)
            }
            (Place::Option(origin), ..) => clean(origin, 120),
            _ => "default".into(),
        })
    }
}

/// Returns `key` and the other keys that `message` names in full.
fn involved(key: &str, message: &str) -> Vec<&'static str> {
    let in_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let words = message.split(|c| !in_key(c)).map(|word| word.trim_matches('.'));
    let mut found = Vec::new();
    for word in std::iter::once(key).chain(words) {
        if catalog().key(word).is_some() && !found.contains(&word) {
            found.push(ftlab_core::config::path(word));
        }
    }
    found
}

impl Resolved {
    /// Returns where a key's value was stated: `default`, `preset map-plus:12`, `device.toml:3` or the
    /// option; `None` if the key has no value.
    pub fn origin(&self, key: &str) -> Option<String> {
        self.layers.place(key)
    }

    /// Returns a sentence for each key that the user set and the chosen parts ignore.
    pub fn notes(&self) -> Vec<String> {
        let ignored = self.settings.ignored().into_iter();
        let set = ignored.filter(|ignored| self.layers.is_by_user(ignored.key));
        set.map(|Contradiction { key, message }| format!("{key}: {message}")).collect()
    }

    /// Whether the user has set a key.
    pub fn is_stated(&self, key: &str) -> bool {
        self.layers.is_by_user(key)
    }

    /// Returns the keys that a saved state of the device depends on, with their values as in a file.
    pub fn state_identity(&self) -> BTreeMap<String, String> {
        let keys = self.values.iter().filter(|(path, _)| shapes_state(path));
        keys.map(|(path, value)| ((*path).to_owned(), stated::to_toml(value))).collect()
    }

    /// Makes the error for a fault in a key's value that was found later (for example a trace that cannot be opened),
    /// located as [`resolve`] locates its own errors.
    pub fn complain(&self, key: &str, message: &str) -> ConfigError {
        self.layers.complain(&self.values, key, message)
    }
}
