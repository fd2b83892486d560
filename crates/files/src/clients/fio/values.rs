//! Reads the values of fio's options, as fio's own parser does.

use super::{Distribution, Engine, Extent, Group, Sync};

/// The zones of a direction: the accesses and the size of each.
type Zones = Vec<(u64, u64)>;

/// All of something, ppm.
const WHOLE: u64 = 1_000_000;

/// Bytes of a `k`, unless `kb_base` says otherwise.
pub(super) const KIBI: u64 = 1024;

/// What separates the values of reads, writes and trims where they are numbers.
pub(super) const BETWEEN: &[char] = &[',', ':', '-'];

/// Reads a whole number, decimal or hexadecimal, with a unit whose factor `unit` gives.
fn scaled(value: &str, unit: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>, String> {
    let bare = value.trim();
    let (number, tail) = match bare.strip_prefix("0x").or_else(|| bare.strip_prefix("0X")) {
        Some(digits) => (u64::from_str_radix(digits, 16).ok(), ""),
        None => {
            let end = bare.find(|c: char| !c.is_ascii_digit()).unwrap_or(bare.len());
            (bare[..end].parse().ok(), &bare[end..])
        }
    };
    if !tail.is_empty() && value.starts_with(char::is_whitespace) {
        return Err(format!(
            "fio leaves out the unit of a number behind a blank; write {bare} without the blank"
        ));
    }
    let factor = unit(&tail.to_ascii_lowercase());
    Ok(factor.and_then(|factor| number?.checked_mul(factor)).filter(|&number: &u64| number < 1 << 62))
}

/// Returns the factor of a unit of bytes. As in fio, its first letter counts; `kib` and its like are what `kilo` is
/// not.
fn of_bytes(unit: &str, kilo: u64) -> Option<u64> {
    if matches!(unit, "" | "b") {
        return Some(1);
    }
    let power = "kmgtp".find(unit.chars().next()?)? as u32 + 1;
    let other = if kilo == KIBI { 1000 } else { KIBI };
    Some(if unit[1..].starts_with("ib") { other } else { kilo }.pow(power))
}

/// Reads a whole number from `min` to `max`, which may have a unit of bytes.
pub(super) fn count(value: &str, min: u64, max: u64) -> Result<u64, String> {
    match scaled(value, |unit| of_bytes(unit, KIBI))? {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("\"{}\" is not a whole number from {min} to {max}", value.trim())),
    }
}

/// Reads a size in bytes; 0 stands for none.
pub(super) fn size_or_none(value: &str, kilo: u64) -> Result<u64, String> {
    let wrong = || format!("\"{}\" is not a size; write for example 4k or 64m", value.trim());
    scaled(value, |unit| of_bytes(unit, kilo))?.ok_or_else(wrong)
}

pub(super) fn size(value: &str, kilo: u64) -> Result<u64, String> {
    match size_or_none(value, kilo)? {
        0 => Err(format!("\"{}\" is not a size; write for example 4k or 64m", value.trim())),
        bytes => Ok(bytes),
    }
}

/// Reads a time in ns; one without a unit is in units of `bare_ns`. Returns also whether fio knows its unit: what it
/// does not know, as in `60sec`, it reads as us.
pub(super) fn time(value: &str, bare_ns: u64) -> Result<(u64, bool), String> {
    let of = |unit: &str| {
        Some(match unit {
            "" => bare_ns,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ if unit.starts_with("ms") => 1_000_000,
            _ if unit.starts_with(|c: char| c.is_ascii_alphabetic()) => 1_000,
            _ => return None,
        })
    };
    let Some(ns) = scaled(value, of)? else {
        return Err(format!("\"{}\" is not a time; write for example 60s or 500ms", value.trim()));
    };
    let unit = value.trim().trim_start_matches(|c: char| c.is_ascii_digit()).to_ascii_lowercase();
    let known =
        ["", "s", "m", "h", "d"].contains(&&*unit) || unit.starts_with("us") || unit.starts_with("ms");
    Ok((ns, known))
}

/// Reads an option that is on or off; without a value it is on.
pub(super) fn flag(value: &str) -> Result<bool, String> {
    Ok(value.trim().is_empty() || count(value, 0, 1)? == 1)
}

/// Reads a size in bytes, or as a share in percent.
pub(super) fn extent(value: &str, kilo: u64) -> Result<Extent, String> {
    if value.ends_with('z') {
        return Err(format!("\"{}\" counts zones of a zoned drive; write bytes", value.trim()));
    }
    match value.trim().strip_suffix('%') {
        Some(share) => Ok(Extent::Percent(count(share, 0, 100)?)),
        None => size_or_none(value, kilo).map(Extent::Bytes),
    }
}

/// Reads values for reads, writes and trims. As in fio, an empty place leaves what was there, the last value also holds
/// for those after it, and a separator at the end keeps it from doing so.
pub(super) fn each<T: Clone>(
    value: &str,
    separators: &[char],
    into: &mut [T; 3],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    let parts: Vec<&str> = value.split(separators).collect();
    if parts.len() > into.len() && parts[into.len()..].iter().any(|part| !part.trim().is_empty()) {
        return Err(format!("\"{}\" has more than values for reads, writes and trims", value.trim()));
    }
    if parts.iter().all(|part| part.trim().is_empty()) {
        return read("").map(drop);
    }
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
        let read = read(part)?;
        let last = if at + 1 == parts.len() { into.len() } else { at + 1 };
        into[at..last].fill(read);
    }
    Ok(())
}

/// Reads "4k-16k": the smallest and the largest size.
pub(super) fn range(value: &str, kilo: u64) -> Result<(u64, u64), String> {
    let ends = value.split_once(['-', ':']);
    let (one, other) = ends.ok_or_else(|| format!("\"{value}\" is not a range; write for example 4k-16k"))?;
    let (one, other) = (size(one, kilo)?, size(other, kilo)?);
    Ok((one.min(other), one.max(other)))
}

/// Reads "4k/60:16k/40", the sizes of one direction: each size, and the number (out of 100) below which a draw selects
/// it. Those without a percentage share evenly what the others leave.
pub(super) fn split(value: &str, kilo: u64) -> Result<Vec<(u64, u64)>, String> {
    let mut parts = Vec::new();
    for part in value.trim().split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { 0 } else { count(share, 0, 100)? };
        // As in fio, 0 does not count as a percentage.
        parts.push((size(bytes, kilo)?, (share > 0).then_some(share)));
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
    Ok(sizes)
}

fn number(value: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let (least, most) = (range.start(), range.end());
    match value.trim().parse::<f64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("\"{}\" is not a number from {least} to {most}", value.trim())),
    }
}

pub(super) fn distribution(value: &str, kilo: u64) -> Result<Distribution, String> {
    let value = value.trim();
    let (name, rest) = value.split_once(':').unwrap_or((value, ""));
    // A parameter, if it is not left out, and where the middle is.
    let placed = |usual: f64, range| -> Result<(f64, Option<f64>), String> {
        let (parameter, center) =
            rest.split_once(':').map_or((rest, None), |(one, other)| (one, Some(other)));
        let parameter = if parameter.is_empty() { usual } else { number(parameter, range)? };
        Ok((parameter, center.map(|center| number(center, 0.0..=1.0)).transpose()?))
    };
    let zoned = |read: &dyn Fn(&str) -> Result<Zones, String>| {
        let mut zones = [const { Vec::new() }; 3];
        each(rest, &[','], &mut zones, read).map(|()| zones)
    };
    match name {
        "random" if rest.is_empty() => Ok(Distribution::Random),
        "zipf" => match placed(1.1, 1e-6..=10.0)? {
            (1.0, _) => Err("zipf:1 is not defined; fio refuses it too, write for example zipf:1.01".into()),
            (theta, center) => Ok(Distribution::Zipf(theta, center)),
        },
        "pareto" => placed(0.2, 1e-6..=1.0 - 1e-6).map(|(h, center)| Distribution::Pareto(h, center)),
        "normal" => placed(0.0, 0.0..=99.999_999).map(|(share, center)| Distribution::Normal(share, center)),
        "zoned" => zoned(&shares).map(Distribution::Zoned),
        "zoned_abs" => zoned(&|part| zones_of(part, |text| size(text, kilo))).map(Distribution::ZonedBytes),
        _ => {
            let known = "random, zipf:THETA, pareto:H, normal:PERCENT, zoned:ACCESSES/SIZE:..., \
                         zoned_abs:ACCESSES/BYTES:...";
            Err(format!("\"{value}\" is not one of {known}"))
        }
    }
}

/// Reads a share in percent; returns it in ppm.
fn percent(text: &str) -> Result<u64, String> {
    number(text, 0.0..=100.0).map(|share| (share * 1e4).round() as u64)
}

/// Reads "60/10:30/20:10/", shares of accesses and of the file; zones without the latter share evenly what is left.
fn shares(value: &str) -> Result<Zones, String> {
    let open = value.split(':').filter(|zone| zone.ends_with('/')).count() as u64;
    let mut zones = zones_of(value, |text| if text.is_empty() { Ok(0) } else { percent(text) })?;
    let left = WHOLE.saturating_sub(zones.iter().map(|zone| zone.1).sum());
    for zone in zones.iter_mut().filter(|zone| zone.1 == 0) {
        zone.1 = left / open.max(1);
    }
    // What does not divide evenly falls to the last.
    if open > 0 && left >= open {
        let missing = WHOLE - zones.iter().map(|zone| zone.1).sum::<u64>();
        zones.iter_mut().rev().find(|zone| zone.1 == left / open).expect("it is open").1 += missing;
    }
    whole(zones.iter().map(|zone| zone.1), "sizes", value)?;
    Ok(zones)
}

/// Reads "60/10:30/20:10/70": shares of accesses in percent, and sizes as `size` reads them.
fn zones_of(value: &str, size: impl Fn(&str) -> Result<u64, String>) -> Result<Zones, String> {
    let mut zones = Vec::new();
    for zone in value.split(':') {
        let (accesses, bytes) =
            zone.split_once('/').ok_or_else(|| format!("\"{zone}\": a zone is ACCESSES/SIZE"))?;
        zones.push((percent(accesses)?, size(bytes)?));
    }
    whole(zones.iter().map(|zone| zone.0), "accesses", value)?;
    Ok(zones)
}

fn whole(ppm: impl Iterator<Item = u64>, what: &str, value: &str) -> Result<(), String> {
    match ppm.sum() {
        WHOLE => Ok(()),
        sum => Err(format!("the {what} of {value} come to {} percent, not to 100", sum as f64 / 1e4)),
    }
}

/// Reads the name of an engine that performs requests on a drive.
pub(super) fn engine(value: &str) -> Result<Engine, String> {
    match value.trim() {
        "psync" | "sync" | "vsync" | "pvsync" | "pvsync2" | "mmap" | "null" => Ok(Engine::Waits),
        "libaio" => Ok(Engine::Queues),
        "io_uring" | "io_uring_cmd" | "posixaio" | "solarisaio" | "windowsaio" | "xnvme" | "libblkio"
        | "spdk" | "spdk_bdev" => Ok(Engine::QueuesAll),
        name if name.starts_with("external:") && name.contains("spdk") => Ok(Engine::QueuesAll),
        name => {
            let known = "psync, sync, vsync, pvsync, pvsync2, mmap, libaio, io_uring, io_uring_cmd, posixaio";
            Err(format!("\"{name}\" has no reads and writes of a drive; write one of {known}"))
        }
    }
}

pub(super) fn sync(value: &str) -> Result<Sync, String> {
    match value.trim() {
        "0" | "none" => Ok(Sync::None),
        "dsync" => Ok(Sync::Data),
        "1" | "sync" => Ok(Sync::All),
        other => Err(format!("\"{other}\" is not one of none, dsync, sync")),
    }
}

/// Reads which requests of a random job are drawn: `group` of them follow one draw, or repeat it.
pub(super) fn grouped(group: u64, identical: bool) -> Group {
    if identical { Group::Repeats(group) } else { Group::Follows(group) }
}

/// Returns the files of a `filename`, which colons separate; `\:` is a colon.
pub(super) fn filenames(value: &str) -> Result<Vec<String>, String> {
    const COLON: &str = "\u{0}";
    let escaped = value.trim().replace("\\:", COLON);
    let names = escaped.split(':').filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(|name| name.replace(COLON, ":")).collect();
    if names.is_empty() {
        return Err("has no name; write for example filename=/dev/nvme0n1".into());
    }
    if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
        return Err(format!("\"{}\" names a file twice; leave one out", value.trim()));
    }
    Ok(names)
}
