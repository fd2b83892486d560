//! Reads a fio job file.

use super::Job;
use super::draft::Draft;
use super::lines::{Around, At, JobError, Line, sections};
use super::options;
use super::passed::{PASSED_OVER, REFUSED, REFUSED_IN_A_CACHE, is_passed_over, refusal};

/// What a job file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// Its jobs, in order.
    pub jobs: Vec<Job>,
    /// What the user is told: options that are skipped, and values that fio reads otherwise than one would.
    pub notes: Vec<String>,
}

/// Reads a job file that takes nothing from around it; `file` names it in messages.
///
/// # Errors
/// Those of [`parse_with`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Job>, JobError> {
    parse_with(file, text, &Around::NOTHING).map(|read| read.jobs)
}

/// Reads a job file's text; `file` names it in messages.
///
/// # Errors
/// [`JobError`] for the first line at fault; its message also lists all other refused options.
pub fn parse_with(file: &str, text: &str, around: &Around) -> Result<Jobs, JobError> {
    let mut sections = sections(file, text, around)?;
    let (mut global, mut notes) = (Draft::new(), Vec::new());
    let (mut skipped, mut refused): (Vec<&'static str>, Vec<(At, String)>) = (Vec::new(), Vec::new());
    let mut drafts = Vec::new();
    for section in &mut sections {
        let mut own = (!section.is_global()).then(|| global.clone());
        let draft = own.as_mut().unwrap_or(&mut global);
        // As in fio, the units of a section are what it says anywhere.
        section.lines.sort_by_key(|line| line.option != "kb_base");
        for line in &section.lines {
            skipped.extend(PASSED_OVER.iter().find(|option| **option == line.option));
            if let Err(message) = set(draft, line) {
                refused.push((line.at.clone(), message));
            }
        }
        notes.append(&mut draft.notes);
        drafts.extend(own.map(|draft| (draft, section.name.clone(), section.at.clone())));
    }
    if let Some(error) = refusal_of(&refused) {
        return Err(error);
    }
    // As in fio, one that says it is enough.
    let exits = drafts.iter().any(|(draft, ..)| draft.exitall);
    let mut jobs = Vec::new();
    for (draft, name, at) in &drafts {
        let job = draft.clone().finish(name, &jobs, &mut notes);
        let mut job = job.map_err(|why| at.fail(&format!("job \"{name}\": {why}")))?;
        job.exits = exits.then_some(draft.exit_what);
        jobs.push(job);
    }
    skipped.sort_unstable();
    skipped.dedup();
    if !skipped.is_empty() {
        notes.insert(0, format!("the fio job's {}: skipped, nothing here depends on it", skipped.join(", ")));
    }
    Ok(Jobs { jobs, notes })
}

/// Makes one error for all refused lines, at the place of the first, so that a user can fix all of them in one go.
fn refusal_of(refused: &[(At, String)]) -> Option<JobError> {
    let ((at, first), others) = refused.split_first()?;
    let others: String =
        others.iter().map(|(at, message)| format!("\n  line {}: {message}", at.line())).collect();
    let unknown = refused.iter().any(|(_, message)| message.starts_with("option "));
    let names = || options::all().map(|option| option.0[0]).collect::<Vec<_>>().join(", ");
    let known = if unknown { format!("\n  it knows {}", names()) } else { String::new() };
    Some(at.fail_whole(at.fail(&format!("{first}{others}")).message + &known))
}

fn set(draft: &mut Draft, line: &Line) -> Result<(), String> {
    let option = line.option.as_str();
    if PASSED_OVER.contains(&option) {
        return Ok(());
    }
    let value = line.value.as_ref().map_err(|why| format!("{option}: {why}"))?;
    let set = if value.is_empty() { option.into() } else { format!("{option}={}", value.trim()) };
    if let Some(refused) = refusal(REFUSED, option, value) {
        return Err(format!("{set}: {}", refused.instead));
    }
    draft.of_the_cache.retain(|(_, refused)| !refused.names.contains(&option));
    if let Some(refused) = refusal(REFUSED_IN_A_CACHE, option, value) {
        draft.of_the_cache.push((set, refused));
    }
    if is_passed_over(option) {
        return Ok(());
    }
    let Some((_, read)) = options::all().find(|(names, _)| names.contains(&option)) else {
        return Err(format!("option {option} is not read by ftlab"));
    };
    read(draft, value).map_err(|why| format!("{option}: {why}"))
}
