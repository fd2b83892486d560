//! Quantities as people write them: "16KiB", "1.5ms", "4.98%".
//!
//! Parsing is exact (decimals are never rounded) and never overflows; printing produces a text that parses to
//! the same number.

/// A family of units: the size of one step of the stored integer, and the accepted names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What is counted, for messages: "bytes".
    pub counted: &'static str,
    /// An example, for messages: `a size such as "16KiB"`.
    pub example: &'static str,
    /// Accepted names, each with the number of steps in one such unit, smallest first.
    pub names: &'static [(&'static str, u64)],
    /// Ambiguous names that people write, each with its two meanings.
    ambiguous: &'static [(&'static str, &'static str, &'static str)],
    /// Units that a message suggests for a number without one: "write 16B, 16kB or 16KiB".
    suggested: &'static [&'static str],
    /// Names used for printing, a subset of `names`. In the first of these units, any number of steps has at most four
    /// decimals.
    printed: &'static [&'static str],
}

/// Sizes; one step is a byte.
pub const BYTES: Unit = Unit {
    counted: "bytes",
    example: "a size such as \"16KiB\"",
    names: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    ambiguous: &[
        ("K", "KiB", "kB"),
        ("k", "KiB", "kB"),
        ("KB", "KiB", "kB"),
        ("M", "MiB", "MB"),
        ("G", "GiB", "GB"),
        ("T", "TiB", "TB"),
    ],
    suggested: &["B", "kB", "KiB"],
    printed: &["B", "KiB", "kB", "MiB", "MB", "GiB", "GB", "TiB", "TB"],
};

/// Times; one step is a nanosecond.
pub const NANOS: Unit = Unit {
    counted: "nanoseconds",
    example: "a time such as \"35us\"",
    names: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    ambiguous: &[("m", "ms", "min")],
    suggested: &["us", "ms"],
    printed: &["ns", "us", "ms", "s", "h"],
};

/// Times per byte; one step is a picosecond.
pub const PICOS_PER_BYTE: Unit = Unit {
    counted: "picoseconds",
    example: "a time per byte such as \"1.25ns\"",
    names: &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("µs", 1_000_000), ("μs", 1_000_000)],
    ambiguous: &[],
    suggested: &["ns"],
    printed: &["ns", "us"],
};

/// Bandwidths; one step is a byte per second.
pub const BANDWIDTH: Unit = Unit {
    counted: "bytes per second",
    example: "a bandwidth such as \"3.2GB/s\"",
    names: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("KiB/s", 1 << 10),
        ("MB/s", 1_000_000),
        ("MiB/s", 1 << 20),
        ("GB/s", 1_000_000_000),
        ("GiB/s", 1 << 30),
    ],
    ambiguous: &[("KB/s", "KiB/s", "kB/s"), ("M/s", "MiB/s", "MB/s"), ("G/s", "GiB/s", "GB/s")],
    suggested: &["MB/s", "GB/s"],
    printed: &["B/s", "kB/s", "MB/s", "MiB/s", "GB/s", "GiB/s"],
};

/// Shares; one step is a part per million.
pub const PPM: Unit = Unit {
    counted: "parts per million",
    example: "a share such as \"7%\"",
    names: &[("%", 10_000)],
    ambiguous: &[],
    suggested: &["%"],
    printed: &["%"],
};

/// Energies; one step is a femtojoule, the energy of a microwatt for a nanosecond.
pub const ENERGY: Unit = Unit {
    counted: "femtojoules",
    example: "an energy such as \"58uJ\"",
    names: &[
        ("fJ", 1),
        ("pJ", 1_000),
        ("nJ", 1_000_000),
        ("uJ", 1_000_000_000),
        ("µJ", 1_000_000_000),
        ("μJ", 1_000_000_000),
        ("mJ", 1_000_000_000_000),
        ("J", 1_000_000_000_000_000),
    ],
    ambiguous: &[],
    suggested: &["nJ", "uJ"],
    printed: &["pJ", "fJ", "nJ", "uJ", "mJ", "J"],
};

/// Energies per byte; one step is a femtojoule per byte. "/B" may be left out.
pub const ENERGY_PER_BYTE: Unit = Unit {
    counted: "femtojoules per byte",
    example: "an energy per byte such as \"12pJ/B\"",
    names: &[
        ("fJ/B", 1),
        ("pJ/B", 1_000),
        ("nJ/B", 1_000_000),
        ("uJ/B", 1_000_000_000),
        ("fJ", 1),
        ("pJ", 1_000),
        ("nJ", 1_000_000),
        ("uJ", 1_000_000_000),
    ],
    ambiguous: &[],
    suggested: &["pJ/B", "nJ/B"],
    printed: &["pJ/B", "fJ/B", "nJ/B", "uJ/B"],
};

/// Powers; one step is a microwatt.
pub const POWER: Unit = Unit {
    counted: "microwatts",
    example: "a power such as \"350mW\"",
    names: &[("uW", 1), ("µW", 1), ("μW", 1), ("mW", 1_000), ("W", 1_000_000)],
    ambiguous: &[],
    suggested: &["mW", "W"],
    printed: &["mW", "uW", "W"],
};

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text does not begin with a number.
    NotANumber,
    /// The number is negative.
    Negative,
    /// The number has no unit; holds texts that would be accepted.
    NoUnit(Vec<String>),
    /// The unit is ambiguous; holds the texts to choose from.
    Ambiguous(String, String),
    /// The unit is unknown.
    UnknownUnit(String),
    /// The quantity is not a whole number of steps.
    NotWhole(&'static str),
    /// The quantity does not fit into 64 bits.
    TooLarge,
}

impl Unit {
    /// Returns the accepted names for messages and patterns, without spelling variants.
    pub fn listed(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().map(|&(name, _)| name).filter(|name| name.is_ascii())
    }

    fn steps(&self, name: &str) -> Option<u64> {
        self.names.iter().find(|(known, _)| *known == name).map(|&(_, steps)| steps)
    }

    /// Parses `text` as a whole number of steps. The text consists of digits (`_` between them and decimals are
    /// allowed), perhaps spaces, and a unit.
    ///
    /// # Errors
    /// [`QuantityError`]; the number is never rounded.
    pub fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        if let Some(rest) = text.strip_prefix(['-', '\u{2212}']) {
            let negative = rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
            return Err(if negative { QuantityError::Negative } else { QuantityError::NotANumber });
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start_matches(' '));
        let (whole, fraction) = decimal(number).ok_or(QuantityError::NotANumber)?;
        if unit.is_empty() {
            return Err(QuantityError::NoUnit(
                self.suggested.iter().map(|unit| format!("{number}{unit}")).collect(),
            ));
        }
        if let Some((_, a, b)) = self.ambiguous.iter().find(|(name, ..)| *name == unit) {
            return Err(QuantityError::Ambiguous(format!("{number}{a}"), format!("{number}{b}")));
        }
        let steps = self.steps(unit).ok_or_else(|| QuantityError::UnknownUnit(unit.to_owned()))?;
        exact(&whole, &fraction, steps, self.counted)
    }

    /// Returns the shortest text, with at most four decimals, that parses to `steps`.
    pub fn format(&self, steps: u64) -> String {
        let base = self.printed[0];
        if steps == 0 {
            return format!("0{base}");
        }
        let mut best = None::<String>;
        for name in self.printed {
            let size = u128::from(self.steps(name).expect("printed units are named"));
            let scaled = u128::from(steps) * 10_000;
            if scaled % size != 0 {
                continue;
            }
            let (whole, rest) = (scaled / size / 10_000, scaled / size % 10_000);
            let decimals = format!("{rest:04}");
            let decimals = decimals.trim_end_matches('0');
            let point = if decimals.is_empty() { "" } else { "." };
            let text = format!("{whole}{point}{decimals}{name}");
            // If two texts are equally long, the one without decimals reads better.
            let rank = |t: &str| (t.chars().count(), t.contains('.'));
            if best.as_deref().is_none_or(|b| rank(&text) < rank(b)) {
                best = Some(text);
            }
        }
        best.expect("the base unit prints every number of steps")
    }
}

/// Splits "1_000.50" into its digits "1000" and "5"; `None` if it is not of that form.
fn decimal(number: &str) -> Option<(String, String)> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let plain = |digits: &str| {
        let between = digits.split('_').all(|run| !run.is_empty() && run.bytes().all(|b| b.is_ascii_digit()));
        between.then(|| digits.replace('_', ""))
    };
    let whole = plain(whole)?;
    let fraction = match fraction {
        Some(digits) => plain(digits)?.trim_end_matches('0').to_owned(),
        None => String::new(),
    };
    Some((whole.trim_start_matches('0').to_owned(), fraction))
}

/// Returns `whole.fraction` times `steps`, if that is a whole number below 2^64.
fn exact(whole: &str, fraction: &str, steps: u64, counted: &'static str) -> Result<u64, QuantityError> {
    // 20 digits hold every u64; longer whole parts are too large in any unit.
    if whole.len() > 20 {
        return Err(QuantityError::TooLarge);
    }
    // Up to 38 digits fit in a u128, so the product below overflows only beyond 2^64 steps.
    if fraction.len() > 18 {
        return Err(QuantityError::NotWhole(counted));
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| QuantityError::TooLarge)?;
    let product = digits.checked_mul(u128::from(steps)).ok_or(QuantityError::TooLarge)?;
    if product % scale != 0 {
        return Err(QuantityError::NotWhole(counted));
    }
    u64::try_from(product / scale).map_err(|_| QuantityError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly() {
        assert_eq!(BYTES.parse("16KiB"), Ok(16_384));
        assert_eq!(BYTES.parse("16 kB"), Ok(16_000));
        assert_eq!(BYTES.parse("0.5MiB"), Ok(524_288));
        assert_eq!(BYTES.parse("1_024B"), Ok(1024));
        assert_eq!(BYTES.parse("16777215TiB"), Ok(16_777_215 << 40));
        assert_eq!(NANOS.parse("1.5ms"), Ok(1_500_000));
        assert_eq!(NANOS.parse("0.000000001s"), Ok(1));
        assert_eq!(NANOS.parse("2min"), Ok(120_000_000_000));
        assert_eq!(NANOS.parse("35µs"), Ok(35_000));
        assert_eq!(PICOS_PER_BYTE.parse("1.25ns"), Ok(1250));
        assert_eq!(PPM.parse("4.98%"), Ok(49_800));
        assert_eq!(PPM.parse("0.0001%"), Ok(1));
        assert_eq!(ENERGY.parse("58uJ"), Ok(58_000_000_000));
        assert_eq!(ENERGY_PER_BYTE.parse("0.5pJ"), Ok(500));
        assert_eq!(ENERGY_PER_BYTE.parse("12 nJ/B"), Ok(12_000_000));
        assert_eq!(POWER.parse("1.2W"), Ok(1_200_000));
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        use QuantityError::{Ambiguous, Negative, NoUnit, NotANumber, NotWhole, TooLarge, UnknownUnit};
        let pair = |a: &str, b: &str| Ambiguous(a.into(), b.into());
        assert_eq!(BYTES.parse("16"), Err(NoUnit(vec!["16B".into(), "16kB".into(), "16KiB".into()])));
        assert_eq!(BYTES.parse("16K"), Err(pair("16KiB", "16kB")));
        assert_eq!(BYTES.parse("1.5KB"), Err(pair("1.5KiB", "1.5kB")));
        assert_eq!(BYTES.parse("2G"), Err(pair("2GiB", "2GB")));
        assert_eq!(NANOS.parse("5m"), Err(pair("5ms", "5min")));
        assert_eq!(BYTES.parse("16kib"), Err(UnknownUnit("kib".into())));
        assert_eq!(NANOS.parse("1e3us"), Err(UnknownUnit("e3us".into())));
        assert_eq!(BYTES.parse("-16KiB"), Err(Negative));
        assert_eq!(BYTES.parse("0.3B"), Err(NotWhole("bytes")));
        assert_eq!(NANOS.parse("0.5ns"), Err(NotWhole("nanoseconds")));
        assert_eq!(PPM.parse("0.00001%"), Err(NotWhole("parts per million")));
        for text in
            ["", "KiB", ".5KiB", "5.KiB", "1__0B", "_1B", "1_B", "1.2.3B", "+5B", "- B", "inf", "nanB", " 5B"]
        {
            assert_eq!(BYTES.parse(text), Err(NotANumber), "{text:?}");
        }
        for text in
            ["99999999999TiB", "99999999999999999999999999999999999999999999B", "18446744073709551616B"]
        {
            assert_eq!(BYTES.parse(text), Err(TooLarge), "{text:?}");
        }
    }

    #[test]
    fn prints_the_shortest_exact_text() {
        for (steps, text) in [
            (0, "0B"),
            (512, "512B"),
            (4096, "4KiB"),
            (1_000_000, "1MB"),
            (1_572_864, "1.5MiB"),
            (16 << 30, "16GiB"),
            (4097, "4097B"),
            (1500, "1500B"),
            (u64::MAX, "18446744073709551615B"),
        ] {
            assert_eq!(BYTES.format(steps), text);
        }
        for (steps, text) in [
            (0, "0ns"),
            (35_000, "35us"),
            (1_500_000, "1.5ms"),
            (10_000_000, "10ms"),
            (60_000_000_000, "60s"),
            (3_600_000_000_000, "1h"),
            (1_500, "1.5us"),
            (1_234_567, "1234567ns"),
        ] {
            assert_eq!(NANOS.format(steps), text);
        }
        assert_eq!(PICOS_PER_BYTE.format(1250), "1.25ns");
        assert_eq!(PICOS_PER_BYTE.format(0), "0ns");
        assert_eq!(PPM.format(70_000), "7%");
        assert_eq!(PPM.format(49_800), "4.98%");
        assert_eq!(PPM.format(1), "0.0001%");
        assert_eq!(ENERGY.format(0), "0pJ");
        assert_eq!(ENERGY.format(58_000_000_000), "58uJ");
        assert_eq!(ENERGY.format(1_500), "1.5pJ");
        assert_eq!(ENERGY_PER_BYTE.format(12_000), "12pJ/B");
        assert_eq!(POWER.format(350_000), "350mW");
        assert_eq!(POWER.format(1_200_000), "1.2W");
    }

    #[test]
    fn printing_and_reading_agree() {
        for unit in [BYTES, NANOS, PICOS_PER_BYTE, PPM, ENERGY, ENERGY_PER_BYTE, POWER] {
            let mut steps = 1u64;
            for _ in 0..4000 {
                assert_eq!(unit.parse(&unit.format(steps)), Ok(steps), "{}", unit.counted);
                steps = steps.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
                    >> (steps % 50);
            }
        }
    }
}
