//! Properties that hold for random configurations and for random bytes.

use ftlab_config::{Base, ConfigError, Override, resolve};
use ftlab_core::config::form::Formed;
use ftlab_core::config::units::{BANDWIDTH, BYTES, NANOS, PICOS_PER_BYTE, PPM, Unit};
use ftlab_core::config::{ByPageType, ByteRange, Key, Kind, SizeMix, Value};
use ftlab_core::ftl::slc_size::SlcSize;
use ftlab_files::settings::all;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Writes `steps` in some way that a person might: in any unit that divides it, or in decimals of a larger
/// one.
fn spelled(unit: Unit, steps: u64, pick: usize) -> String {
    let exact: Vec<String> = unit
        .names
        .iter()
        .filter_map(|&(name, size)| {
            let digits = u128::from(steps) * 1_000_000;
            let (whole, rest) = (digits / u128::from(size), digits % u128::from(size));
            (rest == 0).then(|| {
                let text = format!("{}.{:06}", whole / 1_000_000, whole % 1_000_000);
                format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
            })
        })
        .chain([unit.format(steps)])
        .collect();
    exact[pick % exact.len()].clone()
}

/// Returns a legal value of a key and a text for it. `roll` is spread over the key's limits.
fn legal(key: &Key, roll: u64, pick: usize) -> (String, Value) {
    if !key.words.is_empty() && pick.is_multiple_of(4) {
        let word = key.words[pick % key.words.len()];
        return (word.into(), Value::Word(word));
    }
    let within = |min: u64, max: u64| {
        // Values are often small: a geometry made of the largest counts is always refused.
        let span = (max - min).min(1 << (roll % 64));
        min + if span == u64::MAX { roll } else { roll % (span + 1) }
    };
    match key.kind {
        Kind::Bool => (roll.is_multiple_of(2).to_string(), Value::Bool(roll.is_multiple_of(2))),
        Kind::Count { min, max } => (within(min, max).to_string(), Value::Count(within(min, max))),
        Kind::Number { min, max } => {
            let n = (min + (roll % 1_000_003 + 1) as f64 / 7.0).min(max);
            (format!("{n:?}"), Value::Number(n))
        }
        Kind::FromZero { max } => {
            let n = ((roll % 1_000_003) as f64 / 1e6).min(max);
            (format!("{n:?}"), Value::Number(n))
        }
        Kind::Bytes { min, max } => (spelled(BYTES, within(min, max), pick), Value::Bytes(within(min, max))),
        Kind::Bandwidth { min, max } => {
            (spelled(BANDWIDTH, within(min, max), pick), Value::Bandwidth(within(min, max)))
        }
        Kind::Duration { max_ns } => {
            (spelled(NANOS, within(0, max_ns), pick), Value::Nanos(within(0, max_ns)))
        }
        Kind::ByPageType { unit, max, .. } => {
            let stated = vec![within(0, max); pick % 4 + 1];
            let text: Vec<_> = stated.iter().map(|&steps| spelled(*unit, steps, pick)).collect();
            (text.join("/"), Value::ByPageType(ByPageType::of_unit(unit, &stated)))
        }
        Kind::Quantity { unit, max } => {
            (spelled(*unit, within(0, max), pick), Value::Quantity(within(0, max), unit))
        }
        Kind::TimePerByte => {
            let ps = within(0, ftlab_core::config::MAX_TIME_PER_BYTE_PS);
            (spelled(PICOS_PER_BYTE, ps, pick), Value::PicosPerByte(ps))
        }
        Kind::Percent { min_ppm, max_ppm } => {
            (spelled(PPM, within(min_ppm, max_ppm), pick), Value::Ppm(within(min_ppm, max_ppm)))
        }
        Kind::Form { form, min, max } if form.takes == SizeMix::FORM.takes => {
            let (one, other) = (within(min, max), within(min, max / 2));
            let text = format!("{}/3: {}/{}", spelled(BYTES, one, pick), BYTES.format(other), pick + 1);
            (text, Value::Form(SizeMix::new(vec![(one, 3), (other, pick as u32 + 1)]).to_string()))
        }
        Kind::Form { form, min, max } if form.takes == SlcSize::FORM.takes => {
            let (fixed, most) = (within(min, max), within(min, max));
            let (one, other) = (spelled(BYTES, fixed, pick), spelled(BYTES, most, pick));
            let (text, fixed, dynamic) = match pick % 5 {
                0 => (one, fixed, None),
                1 => ("dynamic".into(), 0, Some(u64::MAX)),
                2 => (format!("dynamic: {other}"), 0, Some(most)),
                3 => (format!("{one} + dynamic"), fixed, Some(u64::MAX)),
                _ => (format!("{one}+dynamic:{other}"), fixed, Some(most)),
            };
            (text, Value::Form(SlcSize { fixed, dynamic }.to_string()))
        }
        Kind::Form { form, max, .. } => {
            assert_eq!(form.takes, ByteRange::FORM.takes, "a form without values to try");
            let (from, to) = (within(0, max / 2), within(max / 2 + 1, max));
            let text = format!("{} .. {}", spelled(BYTES, from, pick), BYTES.format(to));
            (text, Value::Form(ByteRange { from, to }.to_string()))
        }
        Kind::Path => {
            const PATHS: [&str; 5] = ["a.csv", "/x/é \"q\" 'r'\\n.gz", "\u{1b}[31m", "日本\n語", " # "];
            (PATHS[pick % PATHS.len()].into(), Value::Text(PATHS[pick % PATHS.len()].into()))
        }
        Kind::Choice(list) => {
            let choice = list()[pick % list().len()];
            let name = match (choice.before_share(), choice.before_number()) {
                (Some(name), _) => format!("{name}{}", PPM.format(within(1, 1_000_000))),
                (_, Some(name)) => format!("{name}{}", within(1, 1_000_000)),
                _ => choice.name.into(),
            };
            (name.clone(), Value::Text(name))
        }
    }
}

fn bounded(error: &ConfigError) {
    let text = error.to_string();
    assert!(text.lines().count() <= 12, "{text}");
    assert!(!error.headline().trim().is_empty());
    assert!(text.lines().all(|line| line.chars().count() < 800), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Legal values resolve to themselves, can be written to a file, and read back from it.
    #[test]
    fn legal_values_survive(rolls in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0usize..1000), 0..8)) {
        let keys = all();
        let mut wanted = BTreeMap::new();
        let mut options = Vec::new();
        for (index, roll, pick) in rolls {
            let key = &keys[index.index(keys.len())];
            let (text, value) = legal(key, roll, pick);
            options.push(Override { origin: format!("--set {}={text}", key.path), key: key.path.into(), value: text });
            wanted.insert(key.path, value);
        }
        match resolve(Base::Preset("map-plus"), &options) {
            // Each value is legal, so only their combination can be refused.
            Err(error) => {
                bounded(&error);
                prop_assert!(error.to_string().lines().last().unwrap().ends_with(')'), "{}", error);
            }
            Ok(resolved) => {
                for (path, value) in &wanted {
                    prop_assert_eq!(&resolved.values[path], value);
                }
                let text = resolved.to_toml();
                let again = resolve(Base::Text { name: "again.toml", text: &text }, &[]);
                let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
                prop_assert_eq!(&again.values, &resolved.values);
                prop_assert_eq!(again.to_json(), resolved.to_json());
                prop_assert_eq!(again.to_toml(), text);
                prop_assert_eq!(again.hash(), resolved.hash());
            }
        }
    }

    /// No text makes the reader panic, and every error is short and printable.
    #[test]
    fn any_text_is_answered(text in "\\PC*|[\\x00-\\x7f\\u{80}-\\u{2100}]{0,200}") {
        if let Err(error) = resolve(Base::Text { name: "c.toml", text: &text }, &[]) {
            bounded(&error);
        }
    }

    /// No option, and no text that is almost a configuration, makes the reader panic; every error is short and
    /// printable.
    #[test]
    fn nearly_correct_texts_are_answered(parts in prop::collection::vec((0usize..40, 0usize..30, 0usize..60), 1..10)) {
        const VALUES: [&str; 30] = [
            "1", "0", "-1", "'16KiB'", "16KiB", "'16K'", "true", "[1]", "{ a = 1 }", "'map+'", "'unlimited'", "1e9",
            "inf", "'99999999999999999999999TiB'", "\"\"\"\na\n\"\"\"", "'\t'", "\"\\u202e\"", "1979-05-27", "''",
            "'0.1.2ns'", "'%'", "'7%'", "0x_", "\"é日本KiB\"", "'1 '", "99999999999999999999999", "'none'", "'-5ms'",
            "'5m'", "#",
        ];
        let keys = all();
        let mut text = String::new();
        let mut options = Vec::new();
        for (kind, value, key) in parts {
            let path = keys[key % keys.len()].path;
            let name = match kind % 5 {
                0 => path.to_owned(),
                1 => path.rsplit('.').next().unwrap().to_owned(),
                2 => path.replace('e', "a"),
                3 => format!("'{path}'"),
                _ => path.split('.').next().unwrap().to_owned(),
            };
            match kind / 5 {
                0 => text.push_str(&format!("[{name}]\n")),
                1 => text.push_str(&format!("[[{name}]]\r\n")),
                2 => options.push(Override {
                    origin: format!("--set {name}={}", VALUES[value]),
                    key: name,
                    value: VALUES[value].into(),
                }),
                _ => text.push_str(&format!("\t{name} = {}\n", VALUES[value])),
            }
        }
        if let Err(error) = resolve(Base::Text { name: "c.toml", text: &text }, &options) {
            bounded(&error);
        }
    }

    /// A quantity of arbitrary digits is exact or refused, never wrapped or rounded.
    #[test]
    fn quantities_are_exact(whole in "[0-9]{1,25}", fraction in "[0-9]{0,22}", unit in 0usize..9) {
        let (name, size) = BYTES.names[unit];
        let text = if fraction.is_empty() { format!("{whole}{name}") } else { format!("{whole}.{fraction}{name}") };
        // The expected product is computed in decimal digits: digits times size, shifted by the length of the fraction.
        let digits: Vec<u128> = format!("{whole}{fraction}").bytes().map(|b| u128::from(b - b'0')).collect();
        let mut product = vec![0u128; digits.len() + 16];
        let mut carry = 0u128;
        for (place, digit) in digits.iter().rev().enumerate() {
            carry += digit * u128::from(size);
            product[place] = carry % 10;
            carry /= 10;
        }
        for slot in product.iter_mut().skip(digits.len()) {
            *slot = carry % 10;
            carry /= 10;
        }
        let exact = product[..fraction.len()].iter().all(|digit| *digit == 0);
        let value = product[fraction.len()..].iter().rev().try_fold(0u64, |n, digit| {
            n.checked_mul(10)?.checked_add(*digit as u64)
        });
        match BYTES.parse(&text) {
            Ok(steps) => {
                prop_assert!(exact);
                prop_assert_eq!(Some(steps), value);
            }
            Err(_) => prop_assert!(!exact || value.is_none(), "{} was refused", text),
        }
    }
}
