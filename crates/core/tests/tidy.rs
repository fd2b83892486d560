//! Rules of the source, kept by a test: which module may use which, and how long things may get.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may use, beside itself: of those above it in this list, so that no two use each other.
const MAY_USE: &[(&str, &[&str])] = &[
    ("util", &[]),
    ("clock", &["util"]),
    ("config", &[]),
    ("workload", &["config", "util"]),
    ("request", &["util", "workload"]),
    ("flash", &["config", "util"]),
    ("ftl", &["config", "flash", "request", "util"]),
    ("device", &["clock", "config", "flash", "ftl", "request", "util", "workload"]),
    ("metrics", &["config", "device", "flash", "ftl", "request", "util", "workload"]),
    ("host", &["clock", "config", "device", "flash", "ftl", "metrics", "request", "util", "workload"]),
    ("settings", &["config", "device", "flash", "ftl", "host", "metrics", "workload"]),
    (
        "sim",
        &[
            "clock", "config", "device", "flash", "ftl", "host", "metrics", "request", "settings", "util",
            "workload",
        ],
    ),
];

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 60;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut found);
    }
    found.sort();
    assert!(found.len() > 50, "the sources are where this test looks for them");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn no_module_reaches_up() {
    let rules: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for (place, (module, uses)) in MAY_USE.iter().enumerate() {
        let below = |used: &&str| MAY_USE[..place].iter().any(|(other, _)| other == used);
        assert!(uses.iter().all(below), "{module} may use what is not below it");
    }
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut broken = Vec::new();
    for (path, text) in all_sources() {
        let Ok(inside) = path.strip_prefix(&core) else { continue };
        if inside == Path::new("lib.rs") {
            continue;
        }
        let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.trim_end_matches(".rs").trim_end_matches("_tests");
        let allowed = rules.get(module).unwrap_or_else(|| panic!("{module} has no rule in tidy.rs"));
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            for used in code.split("crate::").skip(1) {
                let end = used.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(used.len());
                let used = &used[..end];
                if used != module && rules.contains_key(used) && !allowed.contains(&used) {
                    broken.push(format!("{}:{}: {module} uses {used}", inside.display(), number + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn files_and_functions_can_be_read_at_one_sitting() {
    let mut long = Vec::new();
    for (path, text) in all_sources() {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > LONGEST_FILE {
            long.push(format!("{}: {} lines", path.display(), lines.len()));
        }
        for (start, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let declares =
                ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "const fn ", "pub const fn "];
            if !declares.iter().any(|word| line.trim_start().starts_with(word)) || line.ends_with([';', '}'])
            {
                continue;
            }
            let closing = format!("{}}}", " ".repeat(indent));
            let length = lines[start..].iter().position(|line| *line == closing).map_or(0, |end| end + 1);
            if length > LONGEST_FUNCTION {
                long.push(format!("{}:{}: function of {length} lines", path.display(), start + 1));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}
