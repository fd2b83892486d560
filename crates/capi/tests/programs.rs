//! Programs in C, compiled against the header and the library as a user's programs are: the examples, and the law that
//! a replay from C yields the numbers of `ftlab run`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ftlab_config::{Base, Override, resolve};
use ftlab_core::sim::{Prepared, run_prepared};
use ftlab_trace::Options;
use rand::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Map, Value};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Makes a folder that holds the library under the name by which programs look for it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let built = std::env::current_exe().unwrap().with_file_name("libftlab.so");
    for name in ["libftlab.so", "libftlab.so.1"] {
        let link = folder.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&built, link).unwrap();
    }
    folder
}

/// Compiles a program with strict warnings, each of which is an error.
fn compile(folder: &Path, source: &Path) -> PathBuf {
    let program = folder.join("program");
    let done = Command::new("gcc")
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"])
        .arg(format!("-I{HERE}/include"))
        .arg(source)
        .arg(format!("-L{}", folder.display()))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .args(["-lftlab", "-o"])
        .arg(&program)
        .output()
        .expect("gcc is installed");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// Returns what a command prints, on standard output and on standard error.
fn both(command: &mut Command) -> [String; 2] {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}: {}", String::from_utf8_lossy(&stderr));
    [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap())
}

fn example(name: &str) -> PathBuf {
    Path::new(HERE).join("../../examples/c").join(name)
}

fn run(command: &mut Command) -> String {
    let [printed, _] = both(command);
    printed
}

/// Returns a command that runs a program under valgrind, and fails for invalid reads or frees and for leaks; `None` if
/// valgrind is missing.
fn watched(program: &Path) -> Option<Command> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("SKIPPED: valgrind is not installed; {} was not watched by it", program.display());
        return None;
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    command.arg(program);
    Some(command)
}

#[test]
fn the_co_simulation_says_what_its_cache_does_with_a_thread_for_each_device_too() {
    let program = compile(&folder("cosim"), &example("cosim.c"));
    let alone = run(&mut Command::new(&program));
    let hits: Vec<f64> =
        alone.lines().skip(1).map(|row| row.split_whitespace().nth(2).unwrap()).map(percent).collect();
    assert_eq!(hits.len(), 4, "{alone}");
    assert!(hits.is_sorted() && hits[0] < hits[3], "a larger cache has more hits: {alone}");
    assert_eq!(run(Command::new(&program).arg("threads")), alone, "devices share nothing");
    let page = std::fs::read_to_string(format!("{HERE}/../../docs/embedding.md")).unwrap();
    assert!(alone.lines().all(|row| page.contains(row)), "docs/embedding.md shows this: {alone}");
    if let Some(mut command) = watched(&program) {
        assert_eq!(run(command.arg("threads")), alone);
    }
}

fn percent(text: &str) -> f64 {
    text.trim_end_matches('%').parse().unwrap()
}

/// Writes a trace in ftlab's own layout, with bursts and pauses, all operations, and some requests at the same time.
fn write_trace(path: &Path, requests: u64, bytes: u64, seed: u64) {
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut text, mut time_ns) = (String::from("time_ns,op,offset,size\n"), 0u64);
    for _ in 0..requests {
        time_ns += match draw.random_range(0..20) {
            0..8 => 0,
            19 => draw.random_range(0..60_000_000),
            _ => draw.random_range(0..600_000),
        };
        let op = ["R", "R", "R", "R", "W", "W", "W", "W", "WF", "T", "F"].choose(&mut draw).unwrap();
        let size = if *op == "F" { 0 } else { 512 * draw.random_range(1..40u64) };
        let offset = if *op == "F" { 0 } else { 512 * draw.random_range(0..(bytes - size) / 512) };
        writeln!(text, "{time_ns},{op},{offset},{size}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

/// Removes the fields that may differ between a result of `ftlab run` and one of a device driven from
/// outside.
fn comparable(mut result: Value) -> Value {
    result.as_object_mut().unwrap().remove("engine");
    result["config"].as_object_mut().unwrap().remove("workload");
    let trace = result["trace"].as_object_mut().unwrap();
    assert!(trace.remove("out_of_order").is_some() && trace.remove("dropped").is_some());
    result
}

/// Returns the differences, one line each.
fn differences(path: &str, found: &Value, wanted: &Value) -> String {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let keys = found.keys().chain(wanted.keys().filter(|key| !found.contains_key(*key)));
            let at = |object: &Map<String, Value>, key| object.get(key).cloned().unwrap_or_default();
            keys.map(|key| differences(&format!("{path}.{key}"), &at(found, key), &at(wanted, key))).collect()
        }
        _ if found == wanted => String::new(),
        _ => format!("{path}: {found}, not {wanted}\n"),
    }
}

/// Returns the result of the workload in the settings, as `ftlab run` reports it.
fn simulated(preset: &str, set: &[String]) -> Value {
    let set: Vec<Override> = set
        .iter()
        .map(|text| text.split_once('=').unwrap())
        .map(|(key, value)| Override { origin: "test".into(), key: key.into(), value: value.into() })
        .collect();
    let resolved = resolve(Base::Preset(preset), &set).unwrap();
    let settings = &resolved.settings;
    let path = settings.workload.trace.as_ref().unwrap();
    let mut source = ftlab_trace::open(path, &Options::from_settings(settings)).unwrap();
    let prepared = Prepared::new(settings, &mut (), false).unwrap();
    let report = run_prepared(settings, prepared, &mut *source, &mut ()).unwrap();
    // The JSON is parsed again like C's result, because the parser rounds in the last place.
    serde_json::from_str(&ftlab_embed::Fields::json(&resolved, &report, 1.0).to_string()).unwrap()
}

#[test]
fn from_c_the_numbers_are_those_of_a_run() {
    let folder = folder("replay");
    let program = compile(&folder, &example("replay.c"));
    let small = ["flash.channels=2", "flash.chips_per_channel=2", "flash.blocks_per_plane=64"];
    // The preset, the number of requests, how far ahead to submit, the room for completions, and further settings.
    let cases: [(&str, u64, &str, &str, &[&str]); 5] = [
        ("map-plus", 100_000, "64", "64", &["flash.blocks_per_plane=128", "device.precondition=fill"]),
        ("map-plus", 100_000, "1", "1", &["flash.blocks_per_plane=128", "host.scheduler=map+"]),
        ("map-plus", 20_000, "7", "3", &["flash.blocks_per_plane=128", "host.merge_limit=64KiB"]),
        ("coop-fast", 20_000, "100", "9", &["flash.blocks_per_plane=256"]),
        ("vios", 20_000, "1000", "2", &small),
    ];
    for (number, (preset, requests, ahead, room, set)) in cases.into_iter().enumerate() {
        let trace = folder.join(format!("{number}.csv"));
        write_trace(&trace, requests, 8 << 20, number as u64);
        let mut command = Command::new(&program);
        let [found, said] = both(command.arg(preset).arg(&trace).args([ahead, room]).args(set));
        assert!(said.starts_with(&format!("replay: {requests} completions")), "{said}");
        let found: Value = serde_json::from_str(&found).unwrap();
        assert!(found["engine"]["wall_s"].is_f64() && found["engine"]["version"].is_string());
        let mut set: Vec<String> = set.iter().map(|&text| text.into()).collect();
        set.push(format!("workload.trace={}", trace.display()));
        let differ = differences("", &comparable(found), &comparable(simulated(preset, &set)));
        assert!(differ.is_empty(), "{preset} {set:?}:\n{differ}");
    }
    write_trace(&folder.join("short.csv"), 500, 8 << 20, 9);
    if let Some(mut command) = watched(&program) {
        run(command.arg("map-plus").arg(folder.join("short.csv")).args([
            "5",
            "2",
            "flash.blocks_per_plane=64",
        ]));
    }
}

#[test]
fn the_program_in_the_documentation_runs() {
    let folder = folder("documented");
    let page = std::fs::read_to_string(format!("{HERE}/../../docs/embedding.md")).unwrap();
    let (_, text) = page.split_once("```c\n").unwrap();
    let source = folder.join("documented.c");
    std::fs::write(&source, text.split_once("```").unwrap().0).unwrap();
    let printed = run(&mut Command::new(compile(&folder, &source)));
    let kinds: Vec<&str> = printed.lines().map(|line| &line[..6]).collect();
    assert_eq!(kinds, ["W took", "R took"], "{printed}");
}
