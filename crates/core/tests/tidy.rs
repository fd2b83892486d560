//! Rules for the source, enforced by tests: which module may use which, which files may name each other in a circle,
//! how long files and functions may get, and how comments and messages are written.

mod house;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use house::House;

/// What each module may use in addition to itself: only modules above it in this list, so that no two modules use each
/// other.
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

/// The circles of files that exist: the first file of each, and the number of its files. The list may only shrink.
const CIRCLES: &[(&str, usize)] = &[
    ("capi/src/handle.rs", 2),
    ("config/src/document.rs", 4),
    ("conformance/src/registered.rs", 2),
    ("core/src/device/mod.rs", 4),
    ("core/src/flash/parallel.rs", 3),
    ("core/src/ftl/blocks/by_speed.rs", 3),
    ("core/src/ftl/hybrid/frame.rs", 2),
    ("core/src/ftl/hybrid/merges.rs", 2),
    ("core/src/ftl/map/context.rs", 3),
    ("core/src/ftl/map/entries.rs", 2),
    ("core/src/sim/instant.rs", 4),
    ("files/src/chosen.rs", 2),
    ("files/src/clients/dbench.rs", 6),
    ("live/src/engine/flights.rs", 4),
    ("live/src/media/mod.rs", 2),
    ("trace/src/binary.rs", 2),
];

/// The files of the core that exist although they declare nothing: they only add methods to a type of another file. The
/// list may only shrink: a file is a part, not a slice of one.
const SLICES: &[&str] = &[
    "device/array/look.rs",
    "device/array/order/flin/insertion.rs",
    "device/array/suspension.rs",
    "device/buffer/destaging.rs",
    "flash/across.rs",
    "flash/copies.rs",
    "flash/emit.rs",
    "flash/errors/worn.rs",
    "flash/media/gathered.rs",
    "flash/repeats.rs",
    "ftl/hybrid/audit.rs",
    "ftl/hybrid/inspect.rs",
    "ftl/hybrid/trims.rs",
    "ftl/page_mapped/durable.rs",
    "ftl/page_mapped/hand_out.rs",
    "ftl/page_mapped/inspect.rs",
    "ftl/page_mapped/serve.rs",
];

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 60;
const WIDEST_COMMENT: usize = 120;

/// The number of words in all pages that are written by hand. It may only shrink: a new page says in its commit which
/// page it replaces, or why it has to come on top.
const WORDS: usize = 110_000;
/// Pages that `make docs` writes, and the history, which grows.
const NO_PAGES: &[&str] = &["CHANGELOG.md", "DEVIATIONS.md", "configuration.md", "fields.md"];

/// Collects the files below a folder that have one of these extensions.
fn walk(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            walk(&path, ends, found);
        } else if path.extension().is_some_and(|end| ends.iter().any(|known| end == *known)) {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        walk(&entry.unwrap().path().join("src"), &["rs"], &mut found);
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
    let mut broken = Vec::new();
    for (user, path) in House::of(Path::new(env!("CARGO_MANIFEST_DIR"))).written() {
        let (Some(module), Some(used)) = (user.first(), path.first()) else { continue };
        let module = module.trim_end_matches("_tests");
        let allowed = rules.get(module).unwrap_or_else(|| panic!("{module} has no rule in tidy.rs"));
        if used != module && rules.contains_key(&**used) && !allowed.contains(&&**used) {
            broken.push(format!("{} uses {}", user.join("::"), path.join("::")));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_new_circle_of_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeMap::new();
    let mut drawn = String::new();
    for entry in fs::read_dir(crates).unwrap() {
        let house = House::of(&entry.unwrap().path());
        let arrows = house.files();
        for circle in house.circles() {
            let name = |path: &Path| path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
            found.insert(name(circle[0]), circle.len());
            for path in &circle {
                let others: Vec<String> =
                    arrows[path].iter().filter(|to| circle.contains(to)).map(|to| name(to)).collect();
                drawn += &format!("{} -> {}\n", name(path), others.join(" "));
            }
        }
    }
    let known: BTreeMap<String, usize> =
        CIRCLES.iter().map(|&(file, files)| (file.to_owned(), files)).collect();
    assert_eq!(found, known, "CIRCLES in tidy.rs may only shrink:\n{drawn}");
}

/// Regression: an earlier search, line by line, saw neither the names imported in a group nor circles within a folder.
#[test]
fn groups_and_folders_are_seen() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("house");
    fs::create_dir_all(folder.join("src/a")).unwrap();
    let write = |file: &str, text: &str| fs::write(folder.join("src").join(file), text).unwrap();
    write("lib.rs", "mod a; mod b;");
    write("a/mod.rs", "mod c; mod d; pub use c::C;");
    write("a/c.rs", "use super::{super::{b::B}, d}; pub struct C(B, d::D);");
    write("a/d.rs", "use super::C; pub struct D(Box<C>);");
    write(
        "b.rs",
        "/* crate::a::C */ registry! { C = crate::a::C } #[cfg(test)] mod t { use crate::a::C; } pub struct B;",
    );
    let house = House::of(&folder);
    let path = |file: &str| folder.join("src").join(file);
    assert_eq!(house.circles(), [[path("a/c.rs"), path("a/d.rs")]]);
    assert!(house.files()[&*path("a/c.rs")].contains(&*path("b.rs")));
    assert!(!house.files().contains_key(&*path("b.rs")));
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

#[test]
fn no_new_slice_of_a_part() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&core, &["rs"], &mut files);
    let declares = |line: &str| {
        let line =
            line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or(rest, |cut| cut.1));
        ["struct ", "enum ", "trait ", "type ", "fn ", "section!", "dispatch!", "choice!", "registry!"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let is_slice = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().any(|line| line.starts_with("impl")) && !text.lines().any(declares)
    };
    let mut found: Vec<PathBuf> = files.into_iter().filter(is_slice).collect();
    found.sort();
    let found: Vec<&str> =
        found.iter().map(|path| path.strip_prefix(&core).unwrap().to_str().unwrap()).collect();
    assert_eq!(found, SLICES, "SLICES in tidy.rs may only shrink");
}

#[test]
fn comments_fit_on_a_screen() {
    let mut found = Vec::new();
    for (path, text) in
        prose().into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "rs"))
    {
        let is_wide =
            |line: &str| line.trim_start().starts_with("//") && line.chars().count() > WIDEST_COMMENT;
        found.extend(text.lines().position(is_wide).map(|at| format!("{}:{}", path.display(), at + 1)));
    }
    assert!(found.is_empty(), "wider than {WIDEST_COMMENT} columns:\n{}", found.join("\n"));
}

#[test]
fn pages_grow_no_longer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut pages = Vec::new();
    walk(&root.join("docs"), &["md"], &mut pages);
    let top = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(top.filter(|path| path.extension().is_some_and(|end| end == "md")));
    pages.retain(|path| !NO_PAGES.iter().any(|name| path.ends_with(name)));
    assert!(pages.len() > 100, "the pages are where this test looks for them");
    let words: usize =
        pages.iter().map(|page| fs::read_to_string(page).unwrap().split_whitespace().count()).sum();
    assert!(words <= WORDS, "{words} words in pages written by hand; WORDS in tidy.rs may only shrink");
}

/// Several files of tests share a program, which lists them as modules; cargo does not look for files that no program
/// lists.
#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut files, mut left_out) = (0, Vec::new());
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("\nautotests = false\n") {
            continue;
        }
        let mut compiled = BTreeSet::new();
        for named in manifest.split("[[test]]\nname = \"").skip(1) {
            let program = named.split('"').next().unwrap();
            let text = fs::read_to_string(folder.join(format!("tests/{program}.rs"))).unwrap();
            let modules = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
            compiled.extend(modules.map(str::to_owned));
            compiled.insert(program.to_owned());
        }
        for entry in fs::read_dir(folder.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "rs") {
                files += 1;
                let stem = path.file_stem().unwrap().to_str().unwrap();
                left_out.extend((!compiled.contains(stem)).then_some(path.clone()));
            }
        }
    }
    assert!(files > 70, "{files} files: the tests are where this test looks for them");
    assert!(left_out.is_empty(), "no program has them as a module: {left_out:?}");
}

/// Phrases that a native reader stumbles over, and the words to write instead.
const TICS: &[(&[&str], &str)] = &[
    (&[" so many ", "(so many "], "the number, or \"this many\""),
    (
        &[" beside a ", " beside each ", " beside it", " beside the ", " beside what "],
        "besides, or \"next to\"",
    ),
    (&[", say.", ", say)", ", say;", ", say\"", ", say`"], "\"for example\", before the example"),
    (&["Read into ", "Reading: "], "Interpretation:"),
    (&[" hear of ", " hears of ", " is told of ", " are told of "], "is told about, or what receives it"),
    (&["manieth"], "the number"),
    (&["To be called ", "; to be called "], "Must be called"),
    (&[" stand there", " stands there"], "is there, or \"is given\""),
    (&["The same of ", "the same of "], "the same for"),
    (&[" known of ", " knows of ", " says of ", " said of "], "known about, says about"),
];

/// Words that may follow "is no", as in "is no longer"; before any other word, "is not a" is right.
const AFTER_NO: &[&str] =
    &["better", "earlier", "farther", "higher", "larger", "later", "less", "longer", "more", "smaller"];

/// Words that must not begin the first line of a function that returns something.
const NOUNS: &[&str] = &["A ", "All ", "An ", "How ", "Its ", "The ", "This ", "What "];

/// Returns all text that people read and these tests judge: sources, scripts, headers and presets.
fn prose() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut found = vec![root.join("Makefile"), root.join(".ci/run")];
    for folder in ["benches", "crates", "examples", "python", "scripts", "tests"] {
        walk(&root.join(folder), &["c", "h", "py", "rs", "sh", "toml"], &mut found);
    }
    found.retain(|path| path.is_file() && !path.ends_with("core/tests/tidy.rs"));
    assert!(found.len() > 500, "the text is where this test looks for it");
    let read = |path: PathBuf| (path.clone(), String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
    found.into_iter().map(read).collect()
}

#[test]
fn comments_and_messages_are_plain_english() {
    let mut odd = Vec::new();
    for (path, text) in prose() {
        for (number, line) in text.lines().enumerate() {
            let mut tell = |what: &str, write: &str| {
                odd.push(format!("{}:{}: {what:?}: write {write}", path.display(), number + 1));
            };
            for (phrases, write) in TICS {
                phrases
                    .iter()
                    .filter(|phrase| line.contains(**phrase))
                    .for_each(|phrase| tell(phrase, write));
            }
            for verb in [" is no ", " are no "] {
                for (at, _) in line.match_indices(verb) {
                    let before = line[..at].trim_start_matches([' ', '/', '#', '*', '!']).to_lowercase();
                    let there = before.is_empty() || before.ends_with("there");
                    let next = line[at + verb.len()..].split(|c: char| !c.is_alphanumeric()).next().unwrap();
                    if !there && !AFTER_NO.contains(&next) {
                        tell(verb, "\"is not a\"");
                    }
                }
            }
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

/// Returns the item that a doc comment or docstring at a line is about, up to its body.
fn item_of(lines: &[&str], at: usize, is_python: bool) -> String {
    if !is_python {
        let item = lines[at..].iter().copied().skip_while(|line| line.starts_with(['/', '#'])).take(30);
        let item: Vec<&str> = item.collect();
        let ends = |line: &&str| line.ends_with(['{', ';', '}']) || !item[0].contains("fn ");
        let end = item.iter().position(ends).map_or(item.len(), |end| end + 1);
        return item[..end].join(" ").split(['{', ';']).next().unwrap().to_owned();
    }
    let starts = |line: &&str| ["def ", "async def ", "class "].iter().any(|word| line.starts_with(word));
    let head = lines[..at].iter().rposition(starts).filter(|_| lines[at - 1].ends_with(':'));
    lines[head.unwrap_or(at)..at].join(" ").replace("def ", "fn ").replace("-> None:", "")
}

/// A field or type returns nothing; the first line of a function that returns something says so, or says what it does.
#[test]
fn first_lines_say_what_is_returned() {
    let mut odd = Vec::new();
    for (path, text) in prose() {
        let is_python = match path.extension().and_then(|end| end.to_str()) {
            Some("py") => true,
            Some("rs") => false,
            _ => continue,
        };
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(said) = line.strip_prefix(if is_python { "\"\"\"" } else { "/// " }) else { continue };
            let is_noun = NOUNS.iter().any(|noun| said.starts_with(noun));
            let is_odd = is_noun || !is_python && said.starts_with("Returns ");
            if at == 0 || lines[at - 1].starts_with("///") || !is_odd {
                continue;
            }
            let item = item_of(&lines, at, is_python);
            let is_function = item.starts_with("fn ") || item.contains(" fn ");
            if !is_noun && !is_function {
                odd.push(format!("{}:{}: say what this is: {said}", path.display(), at + 1));
            } else if is_noun && is_function && item.contains("->") {
                odd.push(format!("{}:{}: begin with Returns, or a verb: {said}", path.display(), at + 1));
            }
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}
