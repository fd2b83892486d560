use std::path::{Path, PathBuf};

use ftlab_core::workload::{Op, Record};

use super::{Recording, RecordingStatus, lines_within};

/// Returns a folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ftlab-recording-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Records this many requests, and returns how far that came.
fn record(path: &Path, requests: u64, rotate: Option<u64>) -> RecordingStatus {
    record_with(Recording::create(path, false, rotate).unwrap(), requests)
}

fn record_with(mut recording: Recording, requests: u64) -> RecordingStatus {
    for number in 0..requests {
        let record = Record { time_ns: number, op: Op::Read, size: 512, ..Record::FLUSH };
        recording.push(number + 1, &record, 1);
    }
    recording.finish();
    recording.status()
}

#[test]
fn a_recording_goes_on_in_numbered_files() {
    let folder = folder("rotate");
    let status = record(&folder.join("a.csv"), 1000, Some(1 << 10));
    let texts: Vec<String> = (1..=status.files)
        .map(|number| std::fs::read_to_string(folder.join(format!("a.{number:04}.csv"))).unwrap())
        .collect();
    assert_eq!((status.requests, status.error), (1000, None));
    let header = "time_ns,op,offset,size,outstanding,latency_ns\n";
    let mut times = Vec::new();
    for text in &texts {
        assert!(text.len() <= 1 << 10 && text.ends_with('\n'), "{} bytes", text.len());
        let rows = text.strip_prefix(header).expect("each has the header").lines();
        times.extend(rows.map(|row| row.split(',').next().unwrap().parse::<u64>().unwrap()));
    }
    assert!(texts.len() > 10);
    assert!(times.into_iter().eq(0..1000));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), texts.len());
    let again = Recording::create(&folder.join("a.csv"), false, Some(1 << 10)).err().unwrap().to_string();
    assert!(again.contains("a.0001.csv: exists"), "{again}");
    // However small the files are to be, each has a request.
    assert_eq!(record(&folder.join("b.csv"), 5, Some(1)).files, 5);
    // The numbered names are nothing that the user has named: a link there is replaced, not followed.
    let recording = Recording::create(&folder.join("c.csv"), false, Some(1)).unwrap();
    std::os::unix::fs::symlink(folder.join("victim"), folder.join("c.0003.csv")).unwrap();
    assert_eq!(record_with(recording, 5).files, 5);
    assert!(!folder.join("victim").exists() && folder.join("c.0003.csv").is_file());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A recording that cannot be written ends, and the device may go on to record.
#[test]
fn what_cannot_be_written_is_said() {
    let status = record(Path::new("/dev/full"), 100_000, None);
    let error = status.error.unwrap();
    assert!(
        error.starts_with("/dev/full: cannot write: No space left on device; the recording ends"),
        "{error}"
    );
    assert_eq!(status.requests, 0);
}

/// Until a request is recorded, an older recording of the same name stays; a device that fails to start leaves it.
#[test]
fn a_device_that_is_never_served_leaves_the_file() {
    let folder = folder("forgotten");
    let path = folder.join("a.csv");
    std::fs::write(&path, "older").unwrap();
    drop(Recording::create(&path, false, None).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
    record(&path, 0, None);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "time_ns,op,offset,size,outstanding,latency_ns\n");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn lines_are_whole() {
    for (most, whole) in [(0, 0), (2, 0), (3, 3), (5, 3), (6, 6), (9, 6)] {
        assert_eq!(lines_within(b"ab\ncd\nef", most), whole);
    }
}
