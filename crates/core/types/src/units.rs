//! Sizes, rates, durations and dates as people write and read them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::as_text;
use crate::{Error, Result};

/// A number of bytes, written with a unit: `64MiB`, `4GiB`, `10GB`, `512` (bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(pub u64);

/// A rate, kept in bytes a second, written in bits or bytes: `400Mbit`, `1Gbit`, `50MB` or `50MiB` (a second).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BitRate {
    bytes_per_sec: u64,
}

impl BitRate {
    /// A rate of that many bytes a second.
    pub fn from_bytes_per_sec(bytes_per_sec: u64) -> Self {
        Self { bytes_per_sec }
    }

    /// Bytes a second.
    pub fn bytes_per_sec(self) -> u64 {
        self.bytes_per_sec
    }
}

/// Splits `64MiB` into 64.0 and `MiB`; `None` when the number is not a finite one of 0 or more.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..unit_at].parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number, text[unit_at..].trim()))
}

fn byte_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

/// Whole numbers, which floating point would round when they are large.
fn exact_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..unit_at].parse::<u64>().ok()?.checked_mul(byte_unit(text[unit_at..].trim())? as u64)
}

impl FromStr for ByteSize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        exact_bytes(text)
            .or_else(|| {
                let (number, unit) = split_unit(text)?;
                let bytes = number * byte_unit(unit)?;
                (bytes < 9.0e18).then(|| bytes.round() as u64)
            })
            .map(Self)
            .ok_or_else(|| Error::invalid(format!("{text:?} is no size: write a number with a unit, as in 64MiB or 10GB")))
    }
}

impl FromStr for BitRate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let per_second = text.trim().trim_end_matches("/s");
        split_unit(per_second)
            .and_then(|(number, unit)| {
                let factor = match unit {
                    "bit" => 1.0 / 8.0,
                    "kbit" | "Kbit" => 1e3 / 8.0,
                    "Mbit" => 1e6 / 8.0,
                    "Gbit" => 1e9 / 8.0,
                    "" => return None,
                    _ => byte_unit(unit)?,
                };
                Some((number * factor).round())
            })
            .filter(|rate| (1.0..9.0e18).contains(rate))
            .map(|rate| Self { bytes_per_sec: rate as u64 })
            .ok_or_else(|| Error::invalid(format!("{text:?} is no rate: write it as in 400Mbit, 1Gbit or 50MB")))
    }
}

impl fmt::Display for ByteSize {
    /// Exact, so that it can be read back: the largest binary unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, factor) in [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if self.0 >= factor && self.0.is_multiple_of(factor) {
                return write!(f, "{}{unit}", self.0 / factor);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl fmt::Display for BitRate {
    /// Exact, so that it can be read back: the largest decimal unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.bytes_per_sec) * 8;
        for (unit, factor) in [("Gbit", 1_000_000_000u128), ("Mbit", 1_000_000), ("kbit", 1_000)] {
            if bits >= factor && bits.is_multiple_of(factor) {
                return write!(f, "{}{unit}", bits / factor);
            }
        }
        write!(f, "{}B", self.bytes_per_sec)
    }
}

as_text!(ByteSize);
as_text!(BitRate);

/// Reads `250ms`, `60s`, `5m`, `2h` or `1d`. `Invalid` without a unit.
pub fn parse_duration(text: &str) -> Result<Duration> {
    split_unit(text)
        .and_then(|(number, unit)| {
            let unit_secs = match unit {
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ => return None,
            };
            Duration::try_from_secs_f64(number * unit_secs).ok()
        })
        .ok_or_else(|| Error::invalid(format!("{text:?} is no duration: write a number with a unit, as in 250ms, 60s or 5m")))
}

/// Writes a duration so that [`parse_duration`] reads it back, to the millisecond.
pub fn format_duration(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "0s".to_string(),
        ms if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        ms if !ms.is_multiple_of(60_000) || ms < 120_000 => format!("{}s", ms / 1000),
        ms if !ms.is_multiple_of(3_600_000) => format!("{}m", ms / 60_000),
        ms => format!("{}h", ms / 3_600_000),
    }
}

/// Writes bytes for people, to about three digits: `1.21 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

/// Which day a date of the Gregorian calendar is, from 1970-01-01 on (Hinnant, "chrono-compatible low-level date algorithms"); none where
/// the calendar has no such date.
///
/// ```
/// use forebay_types::{date_of, day_of};
///
/// for (date, day) in [((1970, 1, 1), 0), ((1969, 12, 31), -1), ((2000, 2, 29), 11_016), ((2100, 3, 1), 47_541)] {
///     assert_eq!((day_of(date.0, date.1, date.2), date_of(day)), (Some(day), date));
/// }
/// assert_eq!((day_of(2100, 2, 29), day_of(1995, 3, 0), day_of(1995, 13, 1)), (None, None, None));
/// ```
pub fn day_of(year: i64, month: u32, day: u32) -> Option<i64> {
    if !(1..=12).contains(&month) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one.
    let from_march = i64::from((month + 9) % 12);
    let of_year = (153 * from_march + 2) / 5 + i64::from(day) - 1;
    let from = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (from.div_euclid(400), from.rem_euclid(400));
    let number = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    // A day that the month doesn't have comes back as another one.
    (date_of(number) == (year, month, day)).then_some(number)
}

/// The year, the month and the day of what [`day_of`] numbers.
pub fn date_of(day: i64) -> (i64, u32, u32) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * from_march + 2) / 5 + 1) as u32;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 } as u32;
    debug_assert!((1..=12).contains(&month) && (1..=31).contains(&day), "{month}-{day} is in a year");
    (year + era * 400 + i64::from(month <= 2), month, day)
}
