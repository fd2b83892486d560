//! Puts switchable mutants into a copy of the source of core and what is built on it: one build, and an
//! environment variable says which of them is on.
//!
//!     ftlab-mutants SOURCE COPY CHOSEN
//!
//! Reads every module below SOURCE (core/src and files/src) and writes it below COPY with a switch around
//! each place whose mutants are CHOSEN, a file of their numbers, one per line. The list of all mutants goes
//! to stdout as JSON. `run.py` in the same folder does the rest.

mod find;
mod render;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

/// What the switches call. Nothing is allocated once the variable has been read, or a test that counts
/// allocations would notice.
const SWITCH: &str = include_str!("switch.rs.txt");

fn modules(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            modules(&path, found)?;
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn run(source: &Path, copy: &Path, chosen: &Path) -> Result<Value, Box<dyn std::error::Error>> {
    let chosen: HashSet<usize> =
        fs::read_to_string(chosen)?.lines().map(str::parse).collect::<Result<_, _>>()?;
    let mut files = Vec::new();
    modules(source, &mut files)?;
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let inside = path.strip_prefix(source)?;
        let text = fs::read_to_string(&path)?;
        let edits = find::edits(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        // 0 means no mutant.
        let (text, mutants) = render::render(&text, &edits, all.len() + 1, &chosen);
        all.extend(mutants.into_iter().map(|at| (inside.display().to_string(), at)));
        fs::write(copy.join(inside), text)?;
    }
    let switch = SWITCH.replace("COUNT", &(all.len() + 1).to_string());
    for (root, switch) in [("core", &*switch), ("files", "pub(crate) use ftlab_core::switched;\n")] {
        let root = copy.join(root).join("src/lib.rs");
        let text = fs::read_to_string(&root)?;
        // The tests have to find what is wrong with a mutant.
        fs::write(root, format!("#![allow(arithmetic_overflow, unconditional_panic)]\n{text}{switch}"))?;
    }
    let list = all.into_iter().map(|(file, at)| {
        json!({
            "file": file, "function": at.function, "what": at.what,
            "branch": [at.branch.start, at.branch.end], "whole": [at.whole.start, at.whole.end],
        })
    });
    Ok(list.collect())
}

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [source, copy, chosen] = arguments.as_slice() else {
        eprintln!("ftlab-mutants: write ftlab-mutants SOURCE COPY CHOSEN");
        return ExitCode::from(2);
    };
    match run(source, copy, chosen) {
        Ok(list) => {
            println!("{list}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ftlab-mutants: {error}");
            ExitCode::from(2)
        }
    }
}
