//! Days, times and decimals as text.

use forebay_types::{date_of, day_of};

const MICROS_A_DAY: i64 = 86_400_000_000;

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

/// A date alone, or with `T` or a space, `12:30`, `12:30:00` or `12:30:00.123456`, and perhaps `Z`.
pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let fields: Vec<i64> = whole.split(':').map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match fields[..] {
        [hours, minutes] if fraction.is_empty() => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    if fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    let of_day = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
    i64::from(parse_date(day)?).checked_mul(MICROS_A_DAY)?.checked_add(of_day)
}

pub(super) fn format_timestamp(micros: i64) -> String {
    let (days, of_day) = (micros.div_euclid(MICROS_A_DAY), micros.rem_euclid(MICROS_A_DAY));
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (year, month, day) = date_of(days);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
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
            assert_eq!(format_timestamp(parse_timestamp(text).unwrap()), text);
        }
        assert_eq!(parse_timestamp("1970-01-02"), Some(MICROS_A_DAY));
        assert_eq!(parse_timestamp("1970-01-01 00:01Z"), Some(60_000_000));
        assert_eq!(parse_timestamp("1970-01-01T25:00"), None);
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
}
