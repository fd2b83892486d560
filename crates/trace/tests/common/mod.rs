//! Files for tests, and short forms of what is read from them.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod campaign;
pub mod drawn;
pub mod seeds;

use ftlab_core::workload::{Record, Source, SourceError, SourceSummary};
use ftlab_trace::{Options, open};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed when the value is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ftlab-trace-{}-{serial}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn with(format: &str) -> Options {
    Options { format: format.into(), ..Options::default() }
}

pub fn drain(source: &mut dyn Source) -> Result<Vec<Record>, SourceError> {
    let mut records = Vec::new();
    while let Some(record) = source.next()? {
        records.push(record);
    }
    assert!(matches!(source.next(), Ok(None)), "None again after the end");
    Ok(records)
}

/// Returns the records and summary of a trace with this content.
pub fn read(content: impl AsRef<[u8]>, options: &Options) -> Result<(Vec<Record>, SourceSummary), String> {
    let folder = Folder::new();
    let path = folder.file("trace", content);
    let short = |error: SourceError| error.to_string().replace(&path, "trace");
    let mut source = open(&path, options).map_err(short)?;
    let records = drain(&mut *source).map_err(short)?;
    Ok((records, source.summary()))
}

/// Time, operation, offset and size of each record.
pub type Short = (u64, char, u64, u64);

pub fn short(records: &[Record]) -> Vec<Short> {
    records.iter().map(|r| (r.time_ns, r.op.letter(), r.offset, r.size)).collect()
}

/// Returns the records that `read` returns, without their line numbers.
pub fn rows(content: impl AsRef<[u8]>, options: &Options) -> Vec<Short> {
    short(&read(content, options).unwrap_or_else(|error| panic!("{error}")).0)
}

/// Reads content that must fail, checks the form of the error and returns the error.
pub fn failure(content: impl AsRef<[u8]>, options: &Options) -> String {
    match read(content, options) {
        Ok((records, _)) => panic!("no error, but {} records", records.len()),
        Err(text) => {
            check_form(&text);
            text
        }
    }
}

/// Checks that an error is short, says in its first line where the fault is, and has no prefix of its own.
pub fn check_form(text: &str) {
    assert!(text.lines().count() <= 12, "{text}");
    assert!(!text.starts_with("error"), "{text}");
    assert!(text.lines().next().unwrap().contains(": "), "{text}");
    assert!(text.lines().all(|line| line.len() <= 400), "{text}");
}

/// Returns the path of a recording in the shared folder; `None`, with a message, if it is absent.
pub fn shared(name: &str) -> Option<String> {
    let folder = std::env::var_os("FTLAB_TRACES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"), PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        Some(path.to_str().unwrap().to_owned())
    } else {
        eprintln!("SKIPPED: {} is not there (FTLAB_TRACES names the folder)", path.display());
        None
    }
}

/// Returns proptest's settings for this number of cases, or for the number that PROPTEST_CASES gives; failing seeds
/// are kept next to the test.
pub fn cases(count: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, FileFailurePersistence};
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { count };
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    Config { cases, failure_persistence, ..Config::default() }
}
