//! Days, times and decimals as text.

use forebay_types::{date_of, day_of};

const SECONDS_A_DAY: i64 = 86_400;

/// `1995-03-15`.
pub(super) fn parse_date(text: &str) -> Option<i32> {
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut fields = rest.splitn(3, '-');
    let (year, month, day) = (fields.next()?, fields.next()?, fields.next()?);
    if [year, month, day].iter().any(|field| field.is_empty() || !field.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let year = sign * year.parse::<i64>().ok()?;
    if year.abs() > 5_000_000 {
        return None;
    }
    i32::try_from(day_of(year, month.parse().ok()?, day.parse().ok()?)?).ok()
}

pub(super) fn format_date(days: i32) -> String {
    let (year, month, day) = date_of(days.into());
    format!("{year:04}-{month:02}-{day:02}")
}

/// A date alone, or with `T` or a space, `12:30`, `12:30:00` or `12:30:00.123456`, and perhaps `Z`, with at most so many digits behind the
/// point: as a number of the last one's unit.
pub(super) fn parse_timestamp(text: &str, digits: usize) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let fields: Vec<i64> = whole.split(':').map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match fields[..] {
        [hours, minutes] if fraction.is_empty() => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    if fraction.len() > digits || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return None;
    }
    let fraction: i128 = format!("{fraction:0<digits$}").parse().ok()?;
    let seconds = i64::from(parse_date(day)?) * SECONDS_A_DAY + (hours * 60 + minutes) * 60 + seconds;
    (i128::from(seconds) * i128::from(units(digits)) + fraction).try_into().ok()
}

pub(super) fn format_timestamp(number: i64, digits: usize) -> String {
    let (second, fraction) = (number.div_euclid(units(digits)), number.rem_euclid(units(digits)));
    let (days, seconds) = (second.div_euclid(SECONDS_A_DAY), second.rem_euclid(SECONDS_A_DAY));
    let (year, month, day) = date_of(days);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        text.push_str(format!(".{fraction:0>digits$}").trim_end_matches('0'));
    }
    text
}

/// How many of the unit of the last digit are a second.
fn units(digits: usize) -> i64 {
    10i64.pow(digits as u32)
}

/// A decimal as a whole number of `10^-scale`; none with more digits after the point than that.
pub(super) fn parse_decimal(text: &str, scale: u8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() && fraction.is_empty() || fraction.len() > usize::from(scale) {
        return None;
    }
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i128 = format!("0{whole}{fraction:0<width$}", width = usize::from(scale)).parse().ok()?;
    Some(if negative { -number } else { number })
}

/// A number of JSON, where one that is small is written with an exponent, without it: `1.5e-7` as `0.00000015`. A large one stays as it is:
/// it was perhaps a whole number, of which the last digits are lost.
pub(super) fn without_exponent(number: &str) -> String {
    let small = number.split_once("e-").and_then(|(digits, places)| Some((digits, places.parse::<usize>().ok()?)));
    // No number of 64 bits is smaller.
    let Some((digits, places @ 1..=400)) = small else { return number.to_string() };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() != 1 {
        return number.to_string();
    }
    format!("{sign}0.{}{whole}{fraction}", "0".repeat(places - 1))
}

pub(super) fn format_decimal(value: i128, scale: u8) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_come_back() {
        for (text, number) in
            [("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11_016), ("1995-03-15", 9204), ("0001-01-01", -719_162)]
        {
            assert_eq!(parse_date(text), Some(number), "{text}");
            assert_eq!(format_date(number), text);
        }
        for wrong in ["1995-02-29", "1995-13-01", "1995-00-10", "1995-1", "x", "1995-01-+1"] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
        for text in ["1995-03-15T12:30:59", "1969-12-31T23:59:59.5", "2001-01-01T00:00:00.000001"] {
            assert_eq!(format_timestamp(parse_timestamp(text, 6).unwrap(), 6), text);
            assert_eq!(format_timestamp(parse_timestamp(text, 9).unwrap(), 9), text);
        }
        assert_eq!(parse_timestamp("1970-01-02", 6), Some(86_400_000_000));
        assert_eq!(parse_timestamp("1970-01-01 00:01Z", 6), Some(60_000_000));
        assert_eq!(parse_timestamp("1970-01-01T25:00", 6), None);
        for number in (-800_000..800_000).step_by(997) {
            assert_eq!(parse_date(&format_date(number)), Some(number));
        }
    }

    #[test]
    fn decimals_come_back() {
        for (text, value) in [("12.34", 1234), ("-0.05", -5), ("0.00", 0), ("100.00", 10_000)] {
            assert_eq!(parse_decimal(text, 2), Some(value), "{text}");
            assert_eq!(format_decimal(value, 2), text);
        }
        assert_eq!(parse_decimal("12", 2), Some(1200));
        assert_eq!(parse_decimal("12.3400", 2), Some(1234));
        assert_eq!((parse_decimal("12.345", 2), parse_decimal("1e5", 2), parse_decimal(".", 2)), (None, None, None));
    }

    #[test]
    fn small_numbers_lose_their_exponents() {
        for (number, text) in [
            ("1e-10", "0.0000000001"),
            ("-1.5e-7", "-0.00000015"),
            ("5e-1", "0.5"),
            ("0.5", "0.5"),
            ("-12", "-12"),
            ("1e20", "1e20"),
            ("1e-", "1e-"),
            ("15e-7", "15e-7"),
            ("1e-0", "1e-0"),
            ("1e-999999999", "1e-999999999"),
        ] {
            assert_eq!(without_exponent(number), text, "{number}");
        }
    }
}
