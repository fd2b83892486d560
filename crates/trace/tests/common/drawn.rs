//! Configurations drawn from the whole schema, so that a new key takes part automatically.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ftlab_config::{Base, Override, Resolved, presets, resolve, schema};
use rand::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus as Draw;
use serde_json::Value as Json;

/// Number of pages of the largest device.
const MOST_PAGES: u64 = 1 << 14;

/// A key's path and its schema.
pub type Key = (String, Json);

pub fn keys() -> Vec<Key> {
    fn walk(path: &str, properties: &Json, into: &mut Vec<Key>) {
        for (name, property) in properties.as_object().unwrap() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match property.get("properties") {
                Some(inner) => walk(&path, inner, into),
                // Keys that name a file are left out, and so is the preset, which is already the base.
                // A tenant has the keys of a load again.
                None if property.get("minLength").is_some() || path == "preset" || path == "tenant" => {}
                None => into.push((path, property.clone())),
            }
        }
    }
    let mut found = Vec::new();
    walk("", &schema()["properties"], &mut found);
    assert!(found.len() > 100, "the schema has the keys");
    found
}

/// Draws a number near the default, or any allowed one.
fn number(draw: &mut Draw, property: &Json) -> u64 {
    let min = property["minimum"].as_u64().unwrap_or(0);
    let max = property["maximum"].as_u64().unwrap_or(u64::MAX);
    let default = property["default"].as_u64().unwrap_or(min);
    let drawn = match draw.random_range(0..8) {
        0 => min,
        1 => min.saturating_add(1),
        2 => default / 2,
        3 => default.saturating_mul(2),
        4 => default.saturating_add(1),
        5 if draw.random_range(0..8) == 0 => max,
        _ => 1 << draw.random_range(0..12),
    };
    drawn.clamp(min, max)
}

/// Draws a string with a unit. The units in the pattern show which quantity it is.
fn quantity(draw: &mut Draw, pattern: &str) -> String {
    let pick = |draw: &mut Draw, from: &[&str]| (*from.choose(draw).unwrap()).to_owned();
    if pattern.contains("KiB/s") {
        pick(draw, &["1MB/s", "4096kB/s", "37.5MiB/s", "300MB/s", "3.2GB/s", "1000GB/s"])
    } else if pattern.contains("KiB") {
        let whole = draw.random_range(1..=9);
        match draw.random_range(0..4) {
            0 => pick(draw, &["0B", "1B", "100B", "512B", "1000B", "4KiB", "6KiB"]),
            1 => format!("{whole}KiB"),
            _ => format!("{}B", 1u64 << draw.random_range(6..24)),
        }
    } else if pattern.contains('%') {
        pick(draw, &["0%", "0.0001%", "1%", "7%", "10%", "25%", "33.3%", "50%", "90%", "99.9999%", "100%"])
    } else if pattern.contains("ps|") {
        pick(draw, &["0ns", "1ps", "1.25ns", "25ns", "1us"])
    } else {
        let most: &[&str] = &["0ns", "1ns", "999ns", "20us", "350us", "1ms", "10ms", "100ms", "1s", "30s"];
        if draw.random_range(0..30) == 0 { "8760h".into() } else { pick(draw, most) }
    }
}

fn value(draw: &mut Draw, property: &Json) -> String {
    let texts = |list: &Json, draw: &mut Draw| {
        list.as_array().unwrap().choose(draw).unwrap().as_str().unwrap().to_owned()
    };
    if let Some([words, other]) = property["anyOf"].as_array().map(Vec::as_slice) {
        let mut other = other.clone();
        other["default"] = property["default"].clone();
        return if draw.random_range(0..3) == 0 { texts(&words["enum"], draw) } else { value(draw, &other) };
    }
    if property.get("enum").is_some() {
        return texts(&property["enum"], draw);
    }
    match property["type"].as_str() {
        Some("boolean") => draw.random::<bool>().to_string(),
        Some("integer") => number(draw, property).to_string(),
        Some("number") => {
            let default = property["default"].as_f64().unwrap_or(1.0);
            [0.0, 0.01, 0.5, 0.99, 1.0, 1.5, 4.0, default].choose(draw).unwrap().to_string()
        }
        _ => match property["pattern"].as_str().unwrap() {
            pattern if pattern.starts_with("^[^/:]") => {
                (*["4KiB", "512B/1:4KiB/2", "4KiB/60:64KiB/40"].choose(draw).unwrap()).into()
            }
            pattern if pattern.starts_with("^random:") => {
                (*["random:1%", "random:25%", "random:62.5%", "random:100%"].choose(draw).unwrap()).into()
            }
            pattern => quantity(draw, pattern),
        },
    }
}

/// Builds a case's configuration one key at a time; a key that does not fit the others is left out.
pub struct Grown {
    pub base: Base<'static>,
    pub set: Vec<Override>,
    pub resolved: Resolved,
}

impl Grown {
    fn of_preset(name: &'static str) -> Grown {
        let base = Base::Preset(name);
        let small = [("flash.blocks_per_plane", "24"), ("flash.pages_per_block", "16")];
        let small = small.map(|(key, value)| of_text(key, value)).to_vec();
        let resolved = resolve(Base::Preset(name), &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut grown = Grown { base, set: Vec::new(), resolved };
        // msftl and vios set translation blocks and free blocks to suit the size of their own devices.
        let rest = [("ftl.translation_blocks", "auto"), ("device.precondition", "none")];
        let chips =
            [("flash.channels", "2"), ("flash.chips_per_channel", "2"), ("flash.planes_per_die", "1")];
        for (key, value) in rest.into_iter().chain(chips) {
            grown.try_set(vec![of_text(key, value)]);
        }
        grown.try_set(small);
        grown
    }

    pub fn try_set(&mut self, more: Vec<Override>) -> bool {
        let set: Vec<_> = self.set.iter().cloned().chain(more).collect();
        let Ok(resolved) = resolve(self.base, &set) else { return false };
        (self.set, self.resolved) = (set, resolved);
        true
    }

    /// Returns what is wrong with the device, if anything: what `judge` says, or its panic. The configuration is then
    /// kept in a file.
    pub fn judged(&self, kept: &Path, judge: impl FnOnce() -> Result<(), String>) -> Option<String> {
        let fault = match catch_unwind(AssertUnwindSafe(judge)) {
            Ok(Ok(())) => return None,
            Ok(Err(fault)) => fault,
            Err(payload) => {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                format!("panic: {}", text.or(payload.downcast_ref::<&str>().copied()).unwrap_or(""))
            }
        };
        std::fs::write(kept, self.resolved.to_toml()).unwrap();
        let set: Vec<_> = self.set.iter().map(|set| set.origin.clone()).collect();
        Some(format!("{fault}\n  {:?} {}\n  kept in {}", self.base, set.join(" "), kept.display()))
    }

    fn fits(&self) -> bool {
        let settings = &self.resolved.settings;
        settings.flash.pages() <= MOST_PAGES && settings.user_bytes() >= 16 << 10
    }
}

pub fn of_text(key: &str, value: &str) -> Override {
    Override { origin: format!("--set {key}={value}"), key: key.to_owned(), value: value.to_owned() }
}

pub fn grown(draw: &mut Draw, keys: &[Key]) -> Grown {
    loop {
        let names: Vec<_> = presets().iter().map(|preset| preset.name).collect();
        let mut grown = Grown::of_preset(names.choose(draw).unwrap());
        let parts: Vec<_> = keys.iter().filter(|(_, property)| property.get("enum").is_some()).collect();
        for _ in 0..draw.random_range(3..16) {
            // Half of the changes replace a part, that is, set a key that has a list of choices.
            let (path, property) =
                if draw.random() { *parts.choose(draw).unwrap() } else { keys.choose(draw).unwrap() };
            let before = grown.set.len();
            if grown.try_set(vec![of_text(path, &value(draw, property))]) && !grown.fits() && before > 3 {
                let shorter = grown.set[..before].to_vec();
                grown.set.clear();
                grown.try_set(shorter);
            }
        }
        if draw.random_range(0..4) == 0 {
            let kind = ["postmark", "sysbench", "filebench", "dbench"].choose(draw).unwrap();
            let small = [("files", "9"), ("file_size", "64KiB"), ("clients", "3"), ("transactions", "100")]
                .into_iter()
                .chain([("duration", "300ms"), ("ageing", "100ms"), ("requests", "400"), ("kind", kind)]);
            grown.try_set(
                small.map(|(key, value)| of_text(&format!("workload.benchmark.{key}"), value)).collect(),
            );
        }
        if grown.fits() {
            return grown;
        }
    }
}
