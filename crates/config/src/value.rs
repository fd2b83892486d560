//! Converts one value between the text in a file or an option and what a key holds.

use crate::error::clean;
use crate::suggest::nearest;
use ftlab_core::config::form::Form;
use ftlab_core::config::units::{BANDWIDTH, BYTES, NANOS, PICOS_PER_BYTE, PPM, QuantityError, Unit};
use ftlab_core::config::{ByPageType, Choice, Key, Kind, MAX_TIME_PER_BYTE_PS, MOST_BITS, Value, outside};
use toml::de::DeValue;

/// A value as written, before its key interprets it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    /// A string, or the bare text of an option.
    Text(String),
    /// An integer's digits (with a sign) and radix.
    Integer(String, u32),
    /// A float as written.
    Float(String),
    /// true or false.
    Bool(bool),
    /// Something that no key accepts: "an array", "a date".
    Other(&'static str),
}

/// Why a value does not suit its key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// What is wrong and what would be right, without the key's name.
    pub message: String,
    /// A note with further choices.
    pub note: Option<String>,
}

fn fault<T>(message: String) -> Result<T, Fault> {
    Err(Fault { message, note: None })
}

impl Literal {
    /// Converts a value of a TOML document.
    pub fn of_toml(value: &DeValue<'_>) -> Literal {
        match value {
            DeValue::String(text) => Literal::Text(text.to_string()),
            DeValue::Integer(number) => Literal::Integer(number.as_str().to_owned(), number.radix()),
            DeValue::Float(number) => Literal::Float(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Literal::Bool(*flag),
            DeValue::Datetime(_) => Literal::Other("a date"),
            DeValue::Array(_) => Literal::Other("an array"),
            DeValue::Table(_) => Literal::Other("a table"),
        }
    }

    /// Returns the text of an option, read as its key demands; quotes are optional.
    pub fn of_option(kind: &Kind, text: &str) -> Literal {
        // A path may begin or end with spaces.
        let keep = matches!(kind, Kind::Path) && !text.trim_start().starts_with(['"', '\'']);
        let bare = if keep { text.to_owned() } else { unquoted(text) };
        if matches!(kind, Kind::Bool | Kind::Count { .. } | Kind::Number { .. } | Kind::FromZero { .. })
            // Brackets are not part of a number, and nothing bounds how deep the parser nests.
            && !bare.contains(['[', '{'])
            && let Ok(value) = DeValue::parse(&bare)
            && matches!(value.get_ref(), DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_))
        {
            return Literal::of_toml(value.get_ref());
        }
        Literal::Text(bare)
    }

    /// Returns the value in the form that a message shows.
    fn shown(&self) -> String {
        match self {
            Literal::Text(text) => clean(text, 60),
            Literal::Integer(digits, radix) => {
                let prefix = match radix {
                    2 => "0b",
                    8 => "0o",
                    16 => "0x",
                    _ => "",
                };
                clean(&format!("{prefix}{digits}"), 60)
            }
            Literal::Float(text) => clean(text, 60),
            Literal::Bool(flag) => flag.to_string(),
            Literal::Other(what) => (*what).to_owned(),
        }
    }
}

/// Returns the text of an option, without the quotes that a file would need.
pub(crate) fn unquoted(text: &str) -> String {
    let text = text.trim();
    if text.starts_with(['"', '\''])
        && let Ok(value) = DeValue::parse(text)
        && let DeValue::String(inside) = value.get_ref()
    {
        return inside.to_string();
    }
    text.to_owned()
}

/// Describes what a key takes: `a size such as "16KiB", or "unlimited"`.
pub(crate) fn expected(key: &Key) -> String {
    let takes = match key.kind {
        Kind::Bool => "true or false",
        Kind::Count { .. } => "a whole number such as 128",
        Kind::Number { .. } | Kind::FromZero { .. } => "a number such as 1.5",
        Kind::Bytes { .. } => BYTES.example,
        Kind::Bandwidth { .. } => BANDWIDTH.example,
        Kind::Duration { .. } => NANOS.example,
        Kind::ByPageType { unit, example, .. } => {
            return format!("{}, or one for each page type: \"{example}\"{}", unit.example, or_words(key));
        }
        Kind::Quantity { unit, .. } => unit.example,
        Kind::TimePerByte => PICOS_PER_BYTE.example,
        Kind::Percent { .. } => PPM.example,
        Kind::Form { form, .. } => form.takes,
        Kind::Path => "the path of a file, in quotes",
        Kind::Choice(_) => "a name in quotes",
    };
    format!("{takes}{}", or_words(key))
}

fn or_words(key: &Key) -> String {
    key.words.iter().map(|word| format!(", or \"{word}\"")).collect()
}

/// Reads a value as its key demands and checks its limits.
pub(crate) fn read(key: &Key, literal: &Literal) -> Result<Value, Fault> {
    if let Literal::Text(text) = literal
        && let Some(word) = key.words.iter().find(|word| *word == text)
    {
        return Ok(Value::Word(word));
    }
    match key.kind {
        Kind::Bool => match literal {
            Literal::Bool(flag) => Ok(Value::Bool(*flag)),
            _ => unsuited(key, literal),
        },
        Kind::Count { min, max } => count(key, literal, min, max),
        Kind::Number { min, max } => number(key, literal, (min, min == 0.0), max),
        Kind::FromZero { max } => number(key, literal, (0.0, false), max),
        Kind::Bytes { min, max } => quantity(key, literal, &BYTES, min, max).map(Value::Bytes),
        Kind::Bandwidth { min, max } => quantity(key, literal, &BANDWIDTH, min, max).map(Value::Bandwidth),
        Kind::Duration { max_ns } => quantity(key, literal, &NANOS, 0, max_ns).map(Value::Nanos),
        Kind::ByPageType { unit, max, .. } => by_page_type(key, literal, unit, max),
        Kind::Quantity { unit, max } => {
            quantity(key, literal, unit, 0, max).map(|n| Value::Quantity(n, unit))
        }
        Kind::TimePerByte => {
            quantity(key, literal, &PICOS_PER_BYTE, 0, MAX_TIME_PER_BYTE_PS).map(Value::PicosPerByte)
        }
        Kind::Percent { min_ppm, max_ppm } => quantity(key, literal, &PPM, min_ppm, max_ppm).map(Value::Ppm),
        Kind::Form { form, min, max } => formed(key, literal, form, min, max),
        Kind::Path => match literal {
            Literal::Text(path) if path.is_empty() => {
                fault(format!("an empty path; expected {}", expected(key)))
            }
            Literal::Text(path) if path.contains('\0') => fault("a path cannot hold a NUL character".into()),
            Literal::Text(path) => Ok(Value::Text(path.clone())),
            _ => unsuited(key, literal),
        },
        Kind::Choice(list) => choice(key, literal, &list()),
    }
}

/// Makes the fault for a value of the wrong kind.
fn unsuited<T>(key: &Key, literal: &Literal) -> Result<T, Fault> {
    if let Literal::Text(text) = literal {
        if let Some(word) = nearest(text, key.words.iter().copied()) {
            return fault(format!("{}: did you mean \"{word}\"?", clean(text, 60)));
        }
        let inner = Literal::of_option(&key.kind, text);
        if !matches!(inner, Literal::Text(_)) && read(key, &inner).is_ok() {
            return fault(format!("\"{}\" is text; write it without quotes", clean(text, 60)));
        }
    }
    match literal {
        Literal::Text(text) if text.trim().is_empty() => fault(format!("empty; expected {}", expected(key))),
        _ => fault(format!("{}: expected {}", literal.shown(), expected(key))),
    }
}

fn too_small<T>(key: &Key, literal: &Literal, least: &str) -> Result<T, Fault> {
    fault(format!("{}: must be at least {least}{}", literal.shown(), or_words(key)))
}

fn too_large<T>(key: &Key, literal: &Literal, most: &str) -> Result<T, Fault> {
    fault(format!("{}: must be at most {most}{}", literal.shown(), or_words(key)))
}

fn negative<T>(literal: &Literal) -> Result<T, Fault> {
    fault(format!("{}: must not be negative", literal.shown()))
}

fn count(key: &Key, literal: &Literal, min: u64, max: u64) -> Result<Value, Fault> {
    match literal {
        Literal::Integer(digits, radix) => {
            if digits.starts_with('-') && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
                return negative(literal);
            }
            let digits = digits.trim_start_matches(['-', '+']);
            // There are only digits, so this can fail only if the number is too large.
            let Ok(n) = u64::from_str_radix(digits, *radix) else {
                return too_large(key, literal, &max.to_string());
            };
            match n {
                _ if n < min => too_small(key, literal, &min.to_string()),
                _ if n > max => too_large(key, literal, &max.to_string()),
                _ => Ok(Value::Count(n)),
            }
        }
        Literal::Float(_) => fault(format!("{}: not a whole number", literal.shown())),
        _ => unsuited(key, literal),
    }
}

/// Reads a number from `min` to `max`; `min` itself may be left out.
fn number(key: &Key, literal: &Literal, (min, above): (f64, bool), max: f64) -> Result<Value, Fault> {
    let parsed = match literal {
        Literal::Float(text) => text.parse::<f64>().ok(),
        // i128 holds any sensible integer; a longer one is beyond every limit.
        Literal::Integer(digits, radix) => {
            Some(i128::from_str_radix(digits, *radix).map_or(f64::MAX, |n| n as f64))
        }
        _ => None,
    };
    let Some(n) = parsed else { return unsuited(key, literal) };
    // A float too large for 64 bits parses as infinite although it is not written as infinity.
    let overflown = n.is_infinite() && !literal.shown().contains("inf");
    if !n.is_finite() && !overflown {
        return fault(format!("{}: not a finite number", literal.shown()));
    }
    if n < 0.0 {
        return negative(literal);
    }
    match n {
        _ if above && n == min => fault(format!("{}: must be above 0", literal.shown())),
        _ if n < min => too_small(key, literal, &format!("{min:?}")),
        _ if n > max => too_large(key, literal, &format!("{max:?}")),
        _ => Ok(Value::Number(n)),
    }
}

fn quantity(key: &Key, literal: &Literal, unit: &Unit, min: u64, max: u64) -> Result<u64, Fault> {
    let (Literal::Text(whole) | Literal::Float(whole) | Literal::Integer(whole, 10)) = literal else {
        return unsuited(key, literal);
    };
    let text = literal.shown();
    let fault = |message: String| fault(format!("{text}: {message}"));
    let noted = |message: String| {
        let units: Vec<_> = unit.listed().collect();
        let note = (units.len() > 1).then(|| format!("units: {}", units.join(", ")));
        Err(Fault { message: format!("{text}: {message}"), note })
    };
    let steps = match unit.parse(whole) {
        Ok(steps) => steps,
        Err(QuantityError::NotANumber) => {
            let word = whole.trim_start_matches(['+', '-']).to_ascii_lowercase();
            if word.starts_with("inf") || word == "nan" {
                return fault("not a finite number".into());
            }
            return unsuited(key, literal);
        }
        Err(QuantityError::Negative) => return negative(literal),
        Err(QuantityError::NoUnit(texts)) => {
            return noted(format!("no unit; write {}", alternatives(&texts)));
        }
        Err(QuantityError::Ambiguous(a, b)) => return fault(format!("ambiguous, write {a} or {b}")),
        Err(QuantityError::UnknownUnit(name)) => {
            let meant =
                nearest(&name, unit.listed()).map_or(String::new(), |unit| format!("; did you mean {unit}?"));
            return noted(format!("unknown unit {}{meant}", clean(&name, 20)));
        }
        Err(QuantityError::NotWhole(counted)) => return fault(format!("not a whole number of {counted}")),
        Err(QuantityError::TooLarge) => return too_large(key, literal, &unit.format(max)),
    };
    match steps {
        _ if steps != min && min == max => {
            fault(format!("only {} is possible: {}", unit.format(min), key.doc))
        }
        _ if steps < min => too_small(key, literal, &unit.format(min)),
        _ if steps > max => too_large(key, literal, &unit.format(max)),
        _ => Ok(steps),
    }
}

/// Reads a value that has a form of its own, made of sizes from `min` to `max`.
fn formed(key: &Key, literal: &Literal, form: &Form, min: u64, max: u64) -> Result<Value, Fault> {
    let (Literal::Text(text) | Literal::Integer(text, 10)) = literal else { return unsuited(key, literal) };
    let mut wrong = None;
    let mut bytes = |size: &str| {
        let read = quantity(key, &Literal::Text(size.to_owned()), &BYTES, min, max);
        read.map_err(|fault| wrong = Some(fault)).ok()
    };
    match ((form.canonical)(text, &mut bytes), wrong) {
        (_, Some(fault)) => Err(fault),
        (Ok(stated), None) => Ok(Value::Form(stated)),
        (Err(Some(why)), None) => fault(clean(&why, 160)),
        (Err(None), None) => unsuited(key, literal),
    }
}

fn by_page_type(key: &Key, literal: &Literal, unit: &'static Unit, max: u64) -> Result<Value, Fault> {
    let one = |literal: &Literal| quantity(key, literal, unit, 0, max);
    let stated = match literal {
        Literal::Text(text) if text.contains('/') => text
            .split('/')
            .map(|part| one(&Literal::Text(part.trim().to_owned())))
            .collect::<Result<_, _>>()?,
        _ => vec![one(literal)?],
    };
    let count = stated.len();
    if count > MOST_BITS {
        return fault(format!(
            "{}: {count} values; a word line has at most {MOST_BITS} pages",
            literal.shown()
        ));
    }
    Ok(Value::ByPageType(ByPageType::of_unit(unit, &stated)))
}

fn choice(key: &Key, literal: &Literal, list: &[Choice]) -> Result<Value, Fault> {
    let Literal::Text(text) = literal else { return unsuited(key, literal) };
    for name in list.iter().filter_map(Choice::before_share) {
        if let Some(share) = text.strip_prefix(name) {
            let written = Literal::Text(share.trim().to_owned());
            return match PPM.parse(share.trim()) {
                Err(QuantityError::NotANumber) => {
                    fault(format!("{}: expected a share such as \"{name}25%\"", literal.shown()))
                }
                _ => quantity(key, &written, &PPM, 1, 1_000_000)
                    .map(|ppm| Value::Text(format!("{name}{}", PPM.format(ppm)))),
            };
        }
    }
    for name in list.iter().filter_map(Choice::before_number) {
        if let Some(number) = text.strip_prefix(name) {
            let written = number.trim();
            let read = match written.bytes().all(|digit| digit.is_ascii_digit()) && !written.is_empty() {
                true => count(key, &Literal::Integer(written.to_owned(), 10), 1, u32::MAX.into())?,
                false => return fault(format!("{}: expected a number such as \"{name}4\"", literal.shown())),
            };
            let Value::Count(number) = read else { return unsuited(key, literal) };
            return Ok(Value::Text(format!("{name}{number}")));
        }
    }
    if list.iter().any(|choice| choice.name == text) || outside::has(key.path, text) {
        return Ok(Value::Text(text.clone()));
    }
    let names: Vec<_> = list.iter().map(|choice| choice.name).collect();
    let all = names.join(", ");
    let (hint, note) = match nearest(text, names.iter().copied().chain(key.words.iter().copied())) {
        Some(name) => (format!("; did you mean \"{name}\"?"), Some(format!("names: {all}"))),
        None if names.len() == 1 => (format!("; the only one is \"{all}\""), None),
        None if names.len() <= 16 => (format!("; the names are {all}"), None),
        None => (String::new(), Some(format!("names: {all}"))),
    };
    Err(Fault { message: format!("{}: unknown name{hint}", literal.shown()), note })
}

/// Joins names: "a, b or c".
fn alternatives(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}
