//! Numbers as pages write them: three digits or four, and units that fit.

use crate::Spread;

/// From here on bytes are told in millions.
const LARGE_BYTES: f64 = 1e6;

/// A spread in a unit: the median, and where rounds differ the least and the most.
pub(crate) fn with_unit(spread: &Spread, unit: &str) -> String {
    let (scale, unit) = match unit {
        "bytes" if spread.median >= LARGE_BYTES => (1e-6, "MB"),
        "bytes/s" if spread.median >= LARGE_BYTES => (1e-6, "MB/s"),
        other => (1.0, other),
    };
    let scaled = Spread { median: spread.median * scale, min: spread.min * scale, max: spread.max * scale };
    let blank = if unit == "x" || unit.is_empty() { "" } else { " " };
    between(&scaled, &format!("{blank}{unit}"))
}

pub(crate) fn ratio(spread: &Spread) -> String {
    between(spread, "x")
}

fn between(spread: &Spread, unit: &str) -> String {
    let (median, min, max) = (plain(spread.median), plain(spread.min), plain(spread.max));
    if min == max { format!("{median}{unit}") } else { format!("{median}{unit} ({min} to {max})") }
}

/// Whole above 100, with commas; else in three digits, or fewer where a number is small.
pub(crate) fn plain(value: f64) -> String {
    let is_whole = value.fract() == 0.0 && value.abs() < 100.0;
    let text = match value.abs() {
        _ if is_whole => format!("{value:.0}"),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    if text.split_once('.').is_some() { text } else { in_thousands(&text) }
}

fn in_thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_rounds_repeat() {
        let written = [1_909.7, 99.96, 10.14, 3.456, 0.845, 0.0123, 26.0, -1_234_567.0, 0.0].map(plain);
        assert_eq!(written, ["1,910", "100", "10.1", "3.46", "0.84", "0.0123", "26", "-1,234,567", "0"]);
    }

    #[test]
    fn a_spread_is_written_only_where_rounds_differ() {
        let spread = Spread { median: 50.0, min: 49.9, max: 50.0 };
        assert_eq!(with_unit(&spread, "MB/s"), "50 MB/s (49.9 to 50)");
        assert_eq!(ratio(&Spread { median: 1.0, min: 1.0, max: 1.0 }), "1x");
    }

    #[test]
    fn many_bytes_are_told_in_millions() {
        let spread = |bytes| Spread { median: bytes, min: bytes, max: bytes };
        assert_eq!(with_unit(&spread(299e6), "bytes"), "299 MB");
        assert_eq!(with_unit(&spread(26.0), "bytes"), "26 bytes");
        assert_eq!(with_unit(&spread(0.312), "x"), "0.31x");
    }
}
