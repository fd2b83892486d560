//! Reads TOML files whose keys are not a configuration's (targets, figures, claims) as JSON, with the limits of a
//! configuration: 1 MiB, and the parser's bound on nesting.

use crate::error::{ConfigError, Text};
use crate::input::read_text;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Deepest nesting of brackets that is accepted.
const MOST_NESTING: usize = 80;
/// The largest number of characters in a key, and in a string: messages quote them.
const MOST_KEY: usize = 200;
const MOST_TEXT: usize = 10_000;

/// Reads a TOML file; tables keep the order of the text, dates become strings. In messages, `what` says what the file
/// should be.
///
/// # Errors
/// If the file cannot be read, is larger than 1 MiB, nested more than 80 deep, has a key of more than 200
/// characters or a string of more than 10,000, or is not TOML; the message names the line.
pub fn read_toml(path: &str, what: &str) -> Result<Value, ConfigError> {
    let source = Text::new(path, &read_text(path, what)?);
    check_nesting(&source)?;
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let first = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start));
    if let Some(error) = first {
        let message = format!("not valid TOML: {}", error.message().replace('\n', ", "));
        return Err(ConfigError::in_text(&source, error.span().unwrap_or(0..0), &message, &[]));
    }
    object(&source, table.get_ref())
}

/// Refuses deeply nested brackets before parsing: the parser's own bound does not hold where a key is
/// missing.
pub(crate) fn check_nesting(source: &Text) -> Result<(), ConfigError> {
    let mut open = Vec::new();
    for token in Source::new(&source.text).lex() {
        match token.kind() {
            bracket @ (TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket) => open.push(bracket),
            // A bracket of the other kind closes nothing.
            TokenKind::RightSquareBracket => drop(open.pop_if(|last| *last == TokenKind::LeftSquareBracket)),
            TokenKind::RightCurlyBracket => drop(open.pop_if(|last| *last == TokenKind::LeftCurlyBracket)),
            _ => {}
        }
        if open.len() > MOST_NESTING {
            let span = token.span().start()..token.span().end();
            let message = format!("not valid TOML: nested more than {MOST_NESTING} deep");
            return Err(ConfigError::in_text(source, span, &message, &[]));
        }
    }
    Ok(())
}

fn object(source: &Text, table: &DeTable<'_>) -> Result<Value, ConfigError> {
    let entry = |(name, value): (&Spanned<_>, _)| {
        let key: &Cow<'_, str> = name.get_ref();
        bounded(source, name.span(), "key", key, MOST_KEY)?;
        Ok((key.to_string(), json(source, value)?))
    };
    table.iter().map(entry).collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn bounded(
    source: &Text,
    span: Range<usize>,
    what: &str,
    text: &str,
    most: usize,
) -> Result<(), ConfigError> {
    if text.chars().count() <= most {
        return Ok(());
    }
    Err(ConfigError::in_text(source, span, &format!("a {what} of more than {most} characters"), &[]))
}

fn json(source: &Text, value: &Spanned<DeValue<'_>>) -> Result<Value, ConfigError> {
    let number = |number: Option<Number>| {
        let fault = || ConfigError::in_text(source, value.span(), "a number beyond what ftlab reads", &[]);
        number.map(Value::Number).ok_or_else(fault)
    };
    match value.get_ref() {
        DeValue::String(text) => {
            bounded(source, value.span(), "text", text, MOST_TEXT)?;
            Ok(Value::String(text.to_string()))
        }
        DeValue::Integer(digits) => {
            number(i64::from_str_radix(digits.as_str(), digits.radix()).ok().map(Number::from))
        }
        DeValue::Float(digits) => number(digits.as_str().parse().ok().and_then(Number::from_f64)),
        DeValue::Boolean(flag) => Ok(Value::Bool(*flag)),
        DeValue::Datetime(date) => Ok(Value::String(date.to_string())),
        DeValue::Array(items) => items.iter().map(|item| json(source, item)).collect::<Result<_, _>>(),
        DeValue::Table(table) => object(source, table),
    }
}
