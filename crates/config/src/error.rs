//! What a user reads when a configuration is wrong.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// The largest number of lines in a message.
const MAX_LINES: usize = 12;
/// Notes are wrapped at this many characters.
const WIDTH: usize = 100;

/// A mistake in a configuration, an option or a preset's name.
///
/// When shown, it has at most 12 lines. The first line is complete by itself: it says where the mistake is (file and
/// line, or the option), in which key, what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    text: String,
}

impl ConfigError {
    /// Returns the first line of the message.
    pub fn headline(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// Makes an error that reads `location: message`, followed by the notes.
    pub(crate) fn plain(location: &str, message: &str, notes: &[String]) -> ConfigError {
        ConfigError::assemble(&format!("{}: {}", clean(location, 160), clean(message, 400)), "", notes)
    }

    /// Makes an error that reads `file:line: message`, followed by the line with carets under `span` and by the notes.
    pub(crate) fn in_text(source: &Text, span: Range<usize>, message: &str, notes: &[String]) -> ConfigError {
        let headline = format!("{}: {}", source.place(span.start), clean(message, 400));
        ConfigError::assemble(&headline, &source.excerpt(span), notes)
    }

    fn assemble(headline: &str, excerpt: &str, notes: &[String]) -> ConfigError {
        let mut lines = vec![headline.to_owned()];
        lines.extend(excerpt.lines().map(str::to_owned));
        for note in notes {
            wrap(note, &mut lines);
        }
        if lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES - 1);
            lines.push("  ...".into());
        }
        ConfigError { text: lines.join("\n") }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConfigError {}

/// A named text: a configuration file, or a preset.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Name of the text in messages.
    label: String,
    /// The content, without a byte order mark.
    pub text: String,
}

impl Text {
    /// Makes a text with this label.
    pub fn new(label: &str, text: &str) -> Text {
        Text { label: label.into(), text: text.strip_prefix('\u{feff}').unwrap_or(text).into() }
    }

    /// Returns `label:line` of a byte offset.
    pub fn place(&self, offset: usize) -> String {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}:{line}", clean(&self.label, 160))
    }

    /// Returns the line of a span, with carets under the part that the span covers.
    fn excerpt(&self, span: Range<usize>) -> String {
        // A fault at the end of the text is shown at the end of its last line.
        let content = self.text.trim_end_matches(['\n', '\r']);
        let start = floor(content, span.start);
        let first = content[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let last = content[start..].find('\n').map_or(content.len(), |newline| start + newline);
        let line = content[first..last].trim_end_matches('\r');
        if line.trim().is_empty() {
            return String::new();
        }
        let from = (start - first).min(line.len());
        let to = floor(line, span.end.saturating_sub(first)).max(from);
        let number = content[..first].matches('\n').count() + 1;
        let mark = AnnotationKind::Primary.span(from..to);
        // Each replacement is as long as what it replaces, so that the span still fits; the renderer handles
        // tabs and other ASCII controls.
        let shown: String = line
            .chars()
            .map(|c| match c.len_utf8() {
                2 if invisible(c) => '\u{b7}',
                3 if invisible(c) => '\u{fffd}',
                _ => c,
            })
            .collect();
        let snippet =
            Snippet::source(shown).line_start(number).path(clean(&self.label, 160)).annotation(mark);
        Renderer::plain().render(&[Group::with_level(Level::ERROR).element(snippet)])
    }
}

/// Returns the last character boundary at or before `offset`.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Whether a character is invisible, breaks lines or changes the direction of text.
fn invisible(c: char) -> bool {
    let format = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    c.is_control() || c == '\u{feff}' || format.iter().any(|range| range.contains(&c))
}

/// Makes one line of printable text: control characters are escaped, the middle of a long text is left out.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if invisible(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    let length = line.chars().count();
    if length <= most {
        return line;
    }
    let head: String = line.chars().take(most / 2).collect();
    let tail: String = line.chars().skip(length - (most - most / 2 - 3)).collect();
    format!("{head}...{tail}")
}

/// Appends `note`, indented and wrapped at spaces.
fn wrap(note: &str, lines: &mut Vec<String>) {
    let mut line = String::from(" ");
    for word in clean(note, 800).split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.trim() != "" {
            lines.push(std::mem::replace(&mut line, "   ".into()));
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text::new("c.toml", text)
    }

    #[test]
    fn shows_the_line_and_a_caret() {
        let error =
            ConfigError::in_text(&text("[host]\n\tschduler = \"日本\" # x\n"), 8..16, "no", &["note".into()]);
        let shown =
            "c.toml:2: no\n --> c.toml:2:2\n  |\n2 |     schduler = \"日本\" # x\n  |     ^^^^^^^^\n  note";
        assert_eq!(error.to_string(), shown);
        assert_eq!(error.headline(), "c.toml:2: no");
    }

    #[test]
    fn any_span_of_any_text_is_shown() {
        for content in
            ["", "\n\n", "a", "é\r\nü", "a = '''\nb\n'''\n", "\u{feff}x", "\0\u{1b}[31m\t\u{202e}x"]
        {
            for start in 0..content.len() + 2 {
                for end in start..content.len() + 2 {
                    let error = ConfigError::in_text(&text(content), start..end, "m", &[]).to_string();
                    assert!(error.lines().count() <= MAX_LINES, "{error}");
                    assert!(error.chars().all(|c| c == '\n' || !c.is_control()), "{error:?}");
                }
            }
        }
    }

    #[test]
    fn stays_short() {
        let long = ConfigError::in_text(
            &text(&format!("a = \"{}\"", "x".repeat(100_000))),
            4..100_004,
            &"y".repeat(5000),
            &vec!["z ".repeat(1000); 40],
        );
        assert!(long.to_string().lines().count() <= MAX_LINES);
        assert!(long.to_string().lines().all(|line| line.chars().count() < 600), "{long}");
        assert_eq!(clean("a\nb\u{1b}[0m\u{202e}", 80), "a\\nb\\u{1b}[0m\\u{202e}");
        assert_eq!(clean(&"ab".repeat(50), 11), "ababa...bab");
    }
}
