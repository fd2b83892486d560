//! The lines of a job file, by section: comments, what it takes from the environment, and files that it includes.

use std::rc::Rc;

/// Why a job file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct JobError {
    /// Name of the job file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong, including the name of the option.
    pub message: String,
}

/// Upper bound on the number of characters of a message about a line, which may be as long as the file.
const MOST_MESSAGE: usize = 300;

/// Upper bound on the depth of `include`, which may go in a circle.
const MOST_INCLUDED: usize = 16;

/// What fio replaces by figures of the machine that runs it.
const OF_THE_MACHINE: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// What a job file takes from around it.
pub struct Around<'a> {
    /// Gives the value of an environment variable, if it is set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file to include; an error says why it cannot be read.
    pub text: &'a dyn Fn(&str) -> Result<String, String>,
}

impl Around<'_> {
    /// No variables and no files.
    pub const NOTHING: Around<'static> = Around { variable: &|_| None, text: &|_| Err("not found".into()) };
}

/// Where a line is.
#[derive(Clone, Debug)]
pub(super) struct At {
    file: Rc<str>,
    line: usize,
}

impl At {
    pub fn fail(&self, message: &str) -> JobError {
        self.fail_whole(message.chars().take(MOST_MESSAGE).collect())
    }

    /// Returns the error for a message that is short because of what it consists of.
    pub fn fail_whole(&self, message: String) -> JobError {
        JobError { file: self.file.to_string(), line: self.line, message }
    }

    pub fn line(&self) -> usize {
        self.line
    }
}

/// An option of a section.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub at: At,
    pub option: String,
    /// Empty if there is none. Blanks before it remain, because fio reads numbers behind blanks otherwise.
    pub value: Result<String, String>,
}

/// A section with its options, in the order of the file.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub at: At,
    pub name: String,
    pub lines: Vec<Line>,
}

/// Returns the sections of a job file.
///
/// # Errors
/// [`JobError`] for the first line that belongs to none, or includes what cannot be included.
pub(super) fn sections(file: &str, text: &str, around: &Around) -> Result<Vec<Section>, JobError> {
    let mut sections = Vec::new();
    add(&mut sections, file, text, around, 0)?;
    if sections.iter().all(|section| section.is_global()) {
        let at = At { file: file.into(), line: text.lines().count().max(1) };
        return Err(at.fail("no job: a section like [job1] describes one"));
    }
    Ok(sections)
}

impl Section {
    /// Returns whether its options are for all jobs after it.
    pub fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// Adds the lines of a text that is included at this depth.
fn add(
    sections: &mut Vec<Section>,
    file: &str,
    text: &str,
    around: &Around,
    depth: usize,
) -> Result<(), JobError> {
    let file: Rc<str> = file.into();
    for (index, line) in text.lines().enumerate() {
        let at = At { file: file.clone(), line: index + 1 };
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let Some(name) = section.strip_suffix(']') else {
                return Err(at.fail(&format!("\"{line}\": a section ends with ]")));
            };
            if depth > 0 {
                return Err(at.fail(&format!("[{name}]: a file that is included has options only")));
            }
            sections.push(Section { at, name: name.into(), lines: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            let option = line.split('=').next().unwrap_or_default().trim();
            return Err(at.fail(&format!("{option}: before any section; begin with [global] or [job]")));
        };
        if let Some(name) = line.strip_prefix("include").and_then(|rest| rest.strip_prefix([' ', '\t', '=']))
        {
            if depth == MOST_INCLUDED {
                return Err(at.fail(&format!("include {name}: {depth} files deep; do they go in a circle?")));
            }
            let (path, text) = included(&file, name.trim(), around).map_err(|why| at.fail(&why))?;
            add(sections, &path, &text, around, depth + 1)?;
            continue;
        }
        section.lines.push(option(at, line, around));
    }
    Ok(())
}

/// Returns the path and the text of a file to include: from here, or else from next to the file that includes it.
fn included(file: &str, name: &str, around: &Around) -> Result<(String, String), String> {
    let beside = file.rsplit_once('/').map(|(folder, _)| format!("{folder}/{name}"));
    let paths = [Some(name.to_owned()), beside];
    let mut why = String::new();
    for path in paths.into_iter().flatten() {
        match (around.text)(&path) {
            Ok(text) => return Ok((path, text)),
            Err(message) => why = message,
        }
    }
    Err(format!("include {name}: {why}"))
}

fn option(at: At, line: &str, around: &Around) -> Line {
    let (line, missing) = substituted(line, around);
    let (option, value) = line.split_once('=').unwrap_or((&line, ""));
    let value = match missing {
        Some(name) => {
            Err(format!("the environment variable {name} is not set; set it: {name}=... ftlab run ..."))
        }
        None => match OF_THE_MACHINE.iter().find(|word| value.contains(**word)) {
            Some(word) => Err(format!("{word} is a figure of the machine that runs fio; write a number")),
            None => Ok(value.to_owned()),
        },
    };
    Line { at, option: option.trim().into(), value }
}

/// Puts in the values of `${VARIABLE}`; also returns the first one that is not set.
fn substituted(line: &str, around: &Around) -> (String, Option<String>) {
    let (mut rest, mut text, mut missing) = (line, String::new(), None);
    while let Some((before, (name, after))) =
        rest.split_once("${").and_then(|(before, from)| Some((before, from.split_once('}')?)))
    {
        text += before;
        match (around.variable)(name) {
            Some(value) => text += &value,
            None => missing = missing.or(Some(name.to_owned())),
        }
        rest = after;
    }
    (text + rest, missing)
}
