//! Times as signatures have them: `20240102T030405Z`.

use chrono::{DateTime, NaiveDateTime, Utc};
use forebay_types::day_of;

/// Reads one, and what else chrono takes for it.
pub(super) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%SZ").ok().map(|time| time.and_utc())
}

/// Reads one as seconds since the Unix epoch, shortly: what this takes is what [`parse_time`] takes, and means the same.
pub(super) fn seconds_of(stamp: &str) -> Option<i64> {
    let bytes: &[u8; 16] = stamp.as_bytes().try_into().ok()?;
    if bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = &bytes[from..to];
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0')))
    };
    let (year, month, day) = (i64::from(number(0, 4)?), number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if year < 1970 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(day_of(year, month, day)? * 86_400 + i64::from((hour * 60 + minute) * 60 + second))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

        #[test]
        fn times_are_read_as_everywhere(secs in 0i64..250_000_000_000, place in 0usize..16, byte in 32u8..127) {
            let stamp = DateTime::from_timestamp(secs, 0).unwrap().format("%Y%m%dT%H%M%SZ").to_string();
            prop_assert_eq!(seconds_of(&stamp), Some(secs));
            let mut other = stamp;
            other.replace_range(place..place + 1, &char::from(byte).to_string());
            if let Some(secs) = seconds_of(&other) {
                prop_assert_eq!(parse_time(&other).map(|time| time.timestamp()), Some(secs), "{}", other);
            }
        }
    }
}
