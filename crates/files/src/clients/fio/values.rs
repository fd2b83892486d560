//! Reads the values of fio's options.

use super::{Distribution, Extent, Sizes};

pub(super) fn count(value: &str, min: u64, max: u64) -> Result<u64, String> {
    match value.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("\"{value}\" is not a whole number from {min} to {max}")),
    }
}

/// Parses a number with one of fio's suffixes.
fn scaled(value: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|&n| n < 1 << 62)
}

pub(super) fn size(value: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("b", 1),
        ("k", 1 << 10),
        ("kb", 1 << 10),
        ("kib", 1 << 10),
        ("m", 1 << 20),
        ("mb", 1 << 20),
        ("mib", 1 << 20),
        ("g", 1 << 30),
        ("gb", 1 << 30),
        ("gib", 1 << 30),
        ("t", 1 << 40),
        ("tb", 1 << 40),
        ("tib", 1 << 40),
    ];
    match scaled(value, UNITS) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("\"{value}\" is not a size; write for example 4k or 64m")),
    }
}

/// Parses a time; one without a unit is in units of `bare_ns`.
pub(super) fn time(value: &str, bare_ns: u64) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("s", 1_000_000_000),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let known = scaled(value, UNITS).or_else(|| scaled(value, &[("", bare_ns)]));
    match known {
        Some(ns) if ns > 0 => Ok(ns),
        _ => Err(format!("\"{value}\" is not a time; write for example 60s or 500ms")),
    }
}

/// Parses a value that may also be 0, which has the option do nothing.
pub(super) fn or_zero(value: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<u64, String> {
    if value == "0" { Ok(0) } else { read(value) }
}

/// Parses an option that is on or off; without a value it is on.
pub(super) fn flag(value: &str) -> Result<bool, String> {
    Ok(value.is_empty() || count(value, 0, 1)? == 1)
}

/// Parses a size in bytes, or as a share in percent.
pub(super) fn extent(value: &str) -> Result<Extent, String> {
    match value.strip_suffix('%') {
        Some(share) => Ok(Extent::Percent(count(share, 1, 100)?)),
        None => size(value).map(Extent::Bytes),
    }
}

/// Parses "4k/60:16k/40" for reads and writes, or for each, as in "4k/60:16k/40,8k/100".
pub(super) fn splits(value: &str) -> Result<[Sizes; 3], String> {
    match value.split_once(',') {
        None => split(value).map(|all| [all.clone(), all.clone(), all]),
        Some((reads, writes)) => {
            let writes = split(writes.trim())?;
            Ok([split(reads.trim())?, writes.clone(), writes])
        }
    }
}

/// Parses the sizes of one direction; those without a percentage share evenly what the others leave.
fn split(value: &str) -> Result<Sizes, String> {
    let mut parts = Vec::new();
    for part in value.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { 0 } else { count(share, 0, 100)? };
        // As in fio, 0 does not count as a percentage.
        parts.push((size(bytes)?, (share > 0).then_some(share)));
    }
    let given: u64 = parts.iter().filter_map(|part| part.1).sum();
    let open = parts.iter().filter(|part| part.1.is_none()).count() as u64;
    if given > 100 || (given < 100 && open == 0) {
        return Err(format!("the percentages of {value} come to {given}, not to 100"));
    }
    // What does not divide evenly falls to the last.
    let mut below = 0;
    let sizes = parts.iter().map(|&(bytes, share)| {
        below += share.unwrap_or((100 - given) / open.max(1));
        (bytes, below)
    });
    let mut sizes: Vec<(u64, u64)> = sizes.collect();
    sizes.last_mut().expect("split gives one part at least").1 = 100;
    Ok(Sizes::Split(sizes))
}

/// Parses one value for both reads and writes, or one value for each, as in "4k,8k".
pub(super) fn pair(value: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<[u64; 3], String> {
    match value.split_once(',') {
        None => read(value).map(|all| [all; 3]),
        Some((reads, writes)) => {
            let writes = read(writes.trim())?;
            Ok([read(reads.trim())?, writes, writes])
        }
    }
}

fn number(value: &str, above: f64, below: f64) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(number) if number > above && number < below => Ok(number),
        _ => Err(format!("\"{value}\" is not a number above {above} and below {below}")),
    }
}

pub(super) fn distribution(value: &str) -> Result<Distribution, String> {
    let (name, rest) = value.split_once(':').unwrap_or((value, ""));
    match name {
        "random" if rest.is_empty() => Ok(Distribution::Random),
        "zipf" => number(rest, 0.0, 10.0).map(|theta| Distribution::Zipf(theta, None)),
        "pareto" => number(rest, 0.0, 1.0).map(|h| Distribution::Pareto(h, None)),
        "zoned" => zones(rest).map(|all| Distribution::Zoned([all.clone(), all.clone(), all])),
        _ => Err(format!("\"{value}\" is not one of random, zipf:THETA, pareto:H, zoned:ACCESSES/SIZE:...")),
    }
}

/// Parses "60/10:30/20:10/70": shares of accesses and of the size, in percent.
fn zones(value: &str) -> Result<Vec<(u64, u64)>, String> {
    let percent = |text: &str| number(text, 0.0, 100.000_1).map(|share| (share * 1e4).round() as u64);
    let mut zones = Vec::new();
    for zone in value.split(':') {
        let (accesses, size) =
            zone.split_once('/').ok_or_else(|| format!("\"{zone}\": a zone is ACCESSES/SIZE in percent"))?;
        zones.push((percent(accesses)?, percent(size)?));
    }
    let sums = zones.iter().fold((0, 0), |sum, zone| (sum.0 + zone.0, sum.1 + zone.1));
    if sums != (1_000_000, 1_000_000) {
        return Err(format!("zones of {value}: accesses and sizes must each come to 100 percent"));
    }
    Ok(zones)
}
