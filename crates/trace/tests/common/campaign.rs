//! Runs a campaign of numbered cases: a short form, and a long form that resumes where it stopped.
//!
//! `FTLAB_CAMPAIGN=N` continues from out/campaigns/NAME to the next multiple of N; `FTLAB_CAMPAIGN_SECONDS` may end it
//! earlier. `FTLAB_CASE=K` runs only case K.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Ends the process if a case takes longer than `most`, since a thread cannot be stopped.
fn watch(current: Arc<AtomicU64>, most: Duration) {
    std::thread::spawn(move || {
        let mut seen = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = current.load(Relaxed);
            if now == u64::MAX {
                return;
            }
            if now != seen.0 {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > most {
                eprintln!("case {now} does not end");
                std::process::abort();
            }
        }
    });
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a whole number")))
}

/// Judges the cases from 0 up to `short`, or those of the long form. `judge` gets a case's number and a
/// folder in which it may keep an input, and returns what was wrong. No case may take longer than `most`.
///
/// # Panics
/// If any case fails.
pub fn campaign(name: &str, short: u64, most: Duration, mut judge: impl FnMut(u64, &Path) -> Option<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../out/campaigns");
    std::fs::create_dir_all(&folder).unwrap();
    let state = folder.join(name);
    let (whole, alone) = (environment("FTLAB_CAMPAIGN"), environment("FTLAB_CASE"));
    let stopped = whole.and_then(|_| std::fs::read_to_string(&state).ok());
    let first = alone.unwrap_or_else(|| stopped.map_or(0, |text| text.trim().parse().unwrap()));
    let last = match (alone, whole) {
        (Some(alone), _) => alone + 1,
        (None, Some(whole)) => (first / whole + 1) * whole,
        (None, None) => short,
    };
    let keeps = whole.is_some() && alone.is_none();
    let (start, seconds) = (Instant::now(), environment("FTLAB_CAMPAIGN_SECONDS").unwrap_or(u64::MAX));
    let current = Arc::new(AtomicU64::new(first));
    watch(current.clone(), most);
    let (mut faults, mut number) = (Vec::new(), first);
    while number < last && start.elapsed().as_secs() < seconds {
        current.store(number, Relaxed);
        if keeps {
            // The case is saved before it is judged, because a stack overflow ends the process.
            std::fs::write(&state, number.to_string()).unwrap();
        }
        if let Some(fault) = judge(number, &folder) {
            println!("{name}: case {number}: {fault}");
            faults.push(format!("case {number}: {fault}"));
        }
        number += 1;
    }
    if keeps {
        std::fs::write(&state, number.to_string()).unwrap();
    }
    current.store(u64::MAX, Relaxed);
    println!("{name}: cases {first} to {number}, {} s, {} faults", start.elapsed().as_secs(), faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
