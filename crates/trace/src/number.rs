//! Exact numbers from text: whole numbers, and decimal times as nanoseconds.
//!
//! No float is involved: a trace's stamps have up to 19 digits, of which a float keeps 15.

/// Why a text is not a number that ftlab accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text is empty.
    Missing,
    /// The number is below zero.
    Negative,
    /// The text has characters that do not belong in a number.
    NotANumber,
    /// The number exceeds 64 bits in the unit in which it is kept.
    TooLarge,
}

/// Exponents of the powers of ten that convert units to nanoseconds.
pub(crate) mod unit {
    /// Nanoseconds.
    pub(crate) const NS: u32 = 0;
    /// Microseconds.
    pub(crate) const US: u32 = 3;
    /// Milliseconds.
    pub(crate) const MS: u32 = 6;
    /// Seconds.
    pub(crate) const S: u32 = 9;
}

const POW10: [u64; 20] = {
    let mut table = [1; 20];
    let mut i = 1;
    while i < 20 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// Parses a whole number: decimal, not negative.
#[inline]
pub(crate) fn uint(text: &[u8]) -> Result<u64, Fault> {
    // 19 digits cannot overflow.
    if text.is_empty() || text.len() > 19 {
        return long_uint(text);
    }
    let mut value = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(fault_of(text));
        }
        value = value * 10 + u64::from(digit);
    }
    Ok(value)
}

#[cold]
fn long_uint(text: &[u8]) -> Result<u64, Fault> {
    if !text.iter().all(u8::is_ascii_digit) || text.is_empty() {
        return Err(fault_of(text));
    }
    text.iter()
        .try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(u64::from(byte - b'0')))
        .ok_or(Fault::TooLarge)
}

#[cold]
fn fault_of(text: &[u8]) -> Fault {
    match text {
        [] => Fault::Missing,
        [b'-', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => Fault::Negative,
        _ => Fault::NotANumber,
    }
}

/// Parses a decimal time (`12`, `0.5`, `7.39e-05`) in a unit of 10^`unit` ns, rounded to the nearest ns (half
/// up).
#[inline]
pub(crate) fn time_ns(text: &[u8], unit: u32) -> Result<u64, Fault> {
    // 19 characters are at most 19 digits, which cannot overflow.
    if text.is_empty() || text.len() > 19 {
        return long_time(text, unit);
    }
    let mut value = 0u64;
    let mut point = text.len();
    for (i, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + u64::from(digit);
        } else if byte == b'.' && point == text.len() {
            point = i;
        } else {
            return long_time(text, unit);
        }
    }
    if text.len() == 1 && point == 0 {
        return Err(Fault::NotANumber);
    }
    let decimals = (text.len() - point).saturating_sub(1) as u32;
    if decimals <= unit {
        value.checked_mul(POW10[(unit - decimals) as usize]).ok_or(Fault::TooLarge)
    } else {
        let divisor = POW10[(decimals - unit) as usize];
        // This cannot overflow: 19 digits and half of 10^18 stay below 2^64.
        Ok((value + divisor / 2) / divisor)
    }
}

/// Parses a time with a sign, an exponent or more than 19 characters.
#[cold]
fn long_time(text: &[u8], unit: u32) -> Result<u64, Fault> {
    // Bound on the digits that are kept: further digits cannot change the number of nanoseconds.
    const MOST: u128 = 10u128.pow(36);
    if text.is_empty() {
        return Err(Fault::Missing);
    }
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (digits, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (mut value, mut decimals, mut seen_point, mut any) = (0u128, 0i64, false, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if value < MOST {
                    value = value * 10 + u128::from(byte - b'0');
                    decimals += i64::from(seen_point);
                } else if !seen_point {
                    return Err(Fault::TooLarge);
                }
            }
            b'.' if !seen_point => seen_point = true,
            _ => return Err(Fault::NotANumber),
        }
    }
    if !any {
        return Err(Fault::NotANumber);
    }
    if negative && value != 0 {
        return Err(Fault::Negative);
    }
    let power = i64::from(unit) + exponent - decimals;
    if value == 0 || power < -38 {
        return Ok(0);
    }
    if power >= 0 {
        let factor = u32::try_from(power).ok().and_then(|power| 10u128.checked_pow(power));
        let ns = factor.and_then(|factor| value.checked_mul(factor)).ok_or(Fault::TooLarge)?;
        u64::try_from(ns).map_err(|_| Fault::TooLarge)
    } else {
        let divisor = 10u128.pow(-power as u32);
        u64::try_from((value + divisor / 2) / divisor).map_err(|_| Fault::TooLarge)
    }
}

fn exponent(text: &[u8]) -> Result<i64, Fault> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    match long_uint(digits) {
        // Larger powers change nothing: the value is 0 or too large either way.
        Ok(value) => Ok(sign * value.min(100_000) as i64),
        Err(Fault::TooLarge) => Ok(sign * 100_000),
        Err(_) => Err(Fault::NotANumber),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(uint(b"0"), Ok(0));
        assert_eq!(uint(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(uint(b"00000000000000000000000000012"), Ok(12));
        assert_eq!(uint(b"18446744073709551616"), Err(Fault::TooLarge));
        assert_eq!(uint(b"-5"), Err(Fault::Negative));
        for text in [&b"-"[..], b"1.0", b"0x10", b"1 2", b"abc", b"+1", b"\xff", b"123456789012345678901x"] {
            assert_eq!(uint(text), Err(Fault::NotANumber), "{}", text.escape_ascii());
        }
        assert_eq!(uint(b""), Err(Fault::Missing));
    }

    #[test]
    fn times_round_to_the_nearest_nanosecond() {
        assert_eq!(time_ns(b"159273.83748699998", unit::S), Ok(159_273_837_487_000));
        assert_eq!(time_ns(b"49680.625025000005", unit::S), Ok(49_680_625_025_000));
        assert_eq!(time_ns(b"0.0000000005", unit::S), Ok(1));
        assert_eq!(time_ns(b"0.00000000049999", unit::S), Ok(0));
        assert_eq!(time_ns(b"223.412", unit::MS), Ok(223_412_000));
        assert_eq!(time_ns(b"7.3902e-05", unit::S), Ok(73_902));
        assert_eq!(time_ns(b"1.67560000002e-05", unit::S), Ok(16_756));
        assert_eq!(time_ns(b"1E3", unit::US), Ok(1_000_000));
        assert_eq!(time_ns(b"5.", unit::S), Ok(5_000_000_000));
        assert_eq!(time_ns(b".5", unit::S), Ok(500_000_000));
        assert_eq!(time_ns(b"-0.0", unit::S), Ok(0));
        assert_eq!(time_ns(b"1.4999999999999999999999999999999999999999999999", unit::NS), Ok(1));
        assert_eq!(time_ns(b"0.5", unit::NS), Ok(1));
        assert_eq!(time_ns(b"18446744073.709551615", unit::S), Ok(u64::MAX));
    }

    #[test]
    fn times_that_are_none() {
        assert_eq!(time_ns(b"18446744073.709551616", unit::S), Err(Fault::TooLarge));
        assert_eq!(time_ns(b"18446744073.7095516155", unit::S), Err(Fault::TooLarge));
        assert_eq!(time_ns(b"1e400", unit::S), Err(Fault::TooLarge));
        assert_eq!(time_ns(b"9999999999999999999", unit::S), Err(Fault::TooLarge));
        assert_eq!(time_ns(b"-1.5", unit::S), Err(Fault::Negative));
        assert_eq!(time_ns(b"", unit::S), Err(Fault::Missing));
        for text in [&b"."[..], b"-", b"e5", b"1e", b"1.2.3", b"nan", b"inf", b"0x1p3", b"1,5", b"12 "] {
            assert_eq!(time_ns(text, unit::S), Err(Fault::NotANumber), "{}", text.escape_ascii());
        }
    }

    proptest::proptest! {
        /// Compares the results with 128-bit arithmetic on whole parts and nine or more decimals.
        #[test]
        fn agrees_with_wide_arithmetic(whole in 0u64..18_000_000_000, frac in 0u64..1_000_000_000_000u64) {
            let text = format!("{whole}.{frac:012}");
            let wide = u128::from(whole) * 1_000_000_000_000 + u128::from(frac);
            let expected = ((wide + 500) / 1000) as u64;
            proptest::prop_assert_eq!(time_ns(text.as_bytes(), unit::S), Ok(expected));
        }

        #[test]
        fn never_panics(text in proptest::collection::vec(proptest::sample::select(b"0123456789.+-eE x".to_vec()), 0..60)) {
            let _ = (uint(&text), time_ns(&text, unit::S), time_ns(&text, unit::NS));
        }
    }
}
