//! Commands of the control socket that change what the device does, or save its state.
//!
//! `save PATH` saves the state; `fail read|write LBA...` makes logical blocks fail, `fail none` none; `slow FACTOR`,
//! `age HOURS`, `wear CYCLES` and `readonly` are [`Outside`].

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use ftlab_core::sim::Outside;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::shared::Shared;

/// How long `save` waits for a moment without a request under way, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(1);
/// The commands, for messages.
const KNOWN: &str = "stats, flush, trim-all, cut, save, fail, slow, age, wear, readonly or stop";

/// Obeys a command; returns the answer.
pub fn obey(shared: &Shared, command: &str) -> Value {
    match command.strip_prefix("save ").map_or_else(|| told(shared, command), |path| save(shared, path)) {
        Ok(()) => json!({}),
        Err(why) => json!({ "error": why }),
    }
}

/// Has the engine do what a command says.
fn told(shared: &Shared, command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        ["fail", "none"] => with(shared, |engine| {
            engine.fail_nothing();
            Ok(())
        }),
        ["fail", what @ ("read" | "write"), ref lbas @ ..] if !lbas.is_empty() => {
            let lbas: Vec<Range<u64>> = lbas.iter().map(|text| range(text)).collect::<Result<_, _>>()?;
            with(shared, |engine| engine.fail(what == "write", &lbas))
        }
        ["fail", ..] => Err("fail: write fail read LBA..., fail write LBA..., or fail none".into()),
        _ => {
            let what = outside(&words).ok_or_else(|| format!("unknown command {command:?}: {KNOWN}"))??;
            with(shared, |engine| engine.suffer(what, command))
        }
    }
}

/// Parses a command that lets something happen to the device; returns `None` if it is another one.
fn outside(words: &[&str]) -> Option<Result<Outside, String>> {
    let number = |text: &str, most: f64| {
        let number: f64 = text.parse().map_err(|_| format!("{text}: not a number"))?;
        let fits = number > 0.0 && number <= most;
        if fits { Ok(number) } else { Err(format!("{text}: a number above 0, at most {most}")) }
    };
    Some(match *words {
        ["slow", factor] => number(factor, 1e6).map(Outside::Slow),
        ["age", hours] => number(hours, 876_000.0).map(Outside::Age),
        ["wear", cycles] => number(cycles, 1e6).and_then(|many| match many.fract() {
            0.0 => Ok(Outside::Wear(many as u32)),
            _ => Err(format!("{cycles}: erasures are whole")),
        }),
        ["readonly"] => Ok(Outside::ReadOnly),
        ["slow" | "age" | "wear", ..] => Err(format!("{}: one number follows", words[0])),
        _ => return None,
    })
}

/// Parses a logical block, `7`, or the first and the last of several, `7-9`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text}: a logical block of 512 B, 7, or the first and the last of several, 7-9");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().map_err(|_| wrong())?, last.parse::<u64>().map_err(|_| wrong())?);
    let end = last.checked_add(1).filter(|&end| end > first && end < 1 << 54).ok_or_else(wrong)?;
    Ok(first..end)
}

/// Runs `how` on the engine, which has caught up with the wall clock.
fn with(shared: &Shared, how: impl FnOnce(&mut Engine) -> Result<(), String>) -> Result<(), String> {
    let (mut answered, mut outcome) = (Vec::new(), Ok(()));
    shared.with_engine(&mut answered, |engine| {
        engine.catch_up()?;
        outcome = how(engine);
        Ok(())
    });
    answered.iter().for_each(|sink| sink.kick());
    outcome
}

/// Saves the state of the device, as soon as no request is under way.
fn save(shared: &Shared, path: &str) -> Result<(), String> {
    let path = Path::new(path);
    let (settings, identity) = &shared.device;
    let since = Instant::now();
    let state = loop {
        let engine = shared.engine();
        if engine.is_media(path) {
            return Err(format!("{}: holds the flash of this device; name another file", path.display()));
        }
        if path.is_file() && !is_state_or_empty(path) {
            let why = "exists and is not a saved state; remove it, or name another file";
            return Err(format!("{}: {why}", path.display()));
        }
        if engine.is_off() {
            return Err("the power is off".into());
        }
        if !engine.is_busy() {
            break engine.state(settings, identity)?;
        }
        drop(engine);
        if since.elapsed() >= PATIENCE {
            let why = "requests were under way all the time; let the clients pause, or stop the device";
            return Err(why.into());
        }
        std::thread::sleep(LOOK);
    };
    ftlab_trace::atomic::write(path, &state).map_err(|error| error.to_string())
}

/// Whether a file holds a saved state, or nothing: only such a one is replaced.
fn is_state_or_empty(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    read.is_ok() && (start.is_empty() || ftlab_core::sim::is_state(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        let of = |text: &str| outside(&text.split_whitespace().collect::<Vec<_>>());
        assert_eq!(of("slow 2.5"), Some(Ok(Outside::Slow(2.5))));
        assert_eq!(of("wear 100"), Some(Ok(Outside::Wear(100))));
        for wrong in ["slow 0", "slow nan", "slow -1", "age inf", "wear 0.5", "wear", "age 1 2"] {
            assert!(of(wrong).unwrap().is_err(), "{wrong}");
        }
        assert_eq!(of("stats"), None);
        assert_eq!((range("7"), range("7-9")), (Ok(7..8), Ok(7..10)));
        for wrong in ["", "9-7", "-1", "7-", "x", "18446744073709551615"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
