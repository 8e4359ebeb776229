//! How old the data of an object is, by what the names of its folders say, as engines lay out partitions.

use forebay_types::day_of;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Years that a number of four digits may be.
const YEARS: std::ops::RangeInclusive<u32> = 1970..=2999;

/// When the period ends that an object's data is of, in seconds since 1970 and in UTC; none where its key names no date, or no more than a
/// year that may be any number.
///
/// ```
/// use forebay_placement::period_end;
///
/// let day = 20 * 86_400;
/// for key in ["t/dt=1970-01-20/a", "t/1970/01/20/a", "year=1970/month=1/day=20/a", "day=19700120/a", "log-1970-01-20.csv"] {
///     assert_eq!(period_end(key), Some(day), "{key}");
/// }
/// assert_eq!(period_end("t/dt=1970-01-20/hour=05/a"), Some(19 * 86_400 + 6 * 3_600));
/// assert_eq!(period_end("t/part-00020/a"), None);
/// ```
pub fn period_end(key: &str) -> Option<i64> {
    let mut period = Period::default();
    for part in key.split('/') {
        let (name, value) = part.split_once('=').unwrap_or(("", part));
        if let Some(date) = whole_date(value) { period = date } else { period.take(name, value) }
    }
    period.end()
}

/// A year, and as much more as is known: no month without its year, and so on.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    hour: Option<u32>,
    /// It is said to be a year.
    is_named: bool,
}

impl Period {
    fn of_day(year: u32, month: u32, day: u32, hour: Option<u32>) -> Option<Self> {
        let is_date = YEARS.contains(&year) && day_of(year.into(), month, day).is_some();
        is_date.then_some(Self { year: Some(year), month: Some(month), day: Some(day), hour, is_named: true })
    }

    /// A folder that has one number of a date; others say nothing.
    fn take(&mut self, name: &str, value: &str) {
        let Some(number) = number(value).filter(|_| value.len() <= 4) else { return };
        let is_bare = name.is_empty() && value.len() == 2;
        match name.to_ascii_lowercase().as_str() {
            "year" | "yyyy" | "y" if YEARS.contains(&number) => {
                *self = Self { year: Some(number), is_named: true, ..Self::default() }
            }
            "month" | "mm" | "m" => self.take_month(number),
            "day" | "dd" | "d" => self.take_day(number),
            "hour" | "hh" | "hr" | "h" => self.take_hour(number),
            "" if value.len() == 4 && YEARS.contains(&number) => *self = Self { year: Some(number), ..Self::default() },
            "" if is_bare && self.month.is_none() => self.take_month(number),
            "" if is_bare && self.day.is_none() => self.take_day(number),
            "" if is_bare && self.hour.is_none() => self.take_hour(number),
            _ => {}
        }
    }

    fn take_month(&mut self, month: u32) {
        if self.year.is_some() && (1..=12).contains(&month) {
            (self.month, self.day, self.hour) = (Some(month), None, None);
        }
    }

    fn take_day(&mut self, day: u32) {
        if let (Some(year), Some(month)) = (self.year, self.month)
            && day_of(year.into(), month, day).is_some()
        {
            (self.day, self.hour) = (Some(day), None);
        }
    }

    fn take_hour(&mut self, hour: u32) {
        if self.day.is_some() && hour < 24 {
            self.hour = Some(hour);
        }
    }

    fn end(self) -> Option<i64> {
        debug_assert!(self.year.is_some() || self.month.is_none(), "no month without its year");
        debug_assert!(self.month.is_some() || self.day.is_none(), "no day without its month");
        let year = i64::from(self.year?);
        let begin = |year, month, day| {
            let day = day_of(year, month, day)?;
            assert!(day >= 0, "no year before 1970 was taken");
            Some(day * DAY)
        };
        match (self.month, self.day) {
            (None, _) => begin(year + 1, 1, 1).filter(|_| self.is_named),
            (Some(12), None) => begin(year + 1, 1, 1),
            (Some(month), None) => begin(year, month + 1, 1),
            (Some(month), Some(day)) => {
                begin(year, month, day).map(|begin| begin + self.hour.map_or(DAY, |hour| i64::from(hour + 1) * 3_600))
            }
        }
    }
}

/// A date that stands in one name: `2026-11-20`, anywhere in it and with an hour behind, or `20261120` alone.
fn whole_date(value: &str) -> Option<Period> {
    let bytes = value.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    for at in 0..bytes.len().saturating_sub(9) {
        let is_apart = (at == 0 || !is_digit(at - 1)) && !is_digit(at + 10);
        let is_date = [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(|digit| is_digit(at + digit));
        let between = bytes[at + 4];
        if !(is_apart && is_date && matches!(between, b'-' | b'_') && bytes[at + 7] == between) {
            continue;
        }
        let has_hour = bytes.get(at + 10).is_some_and(|byte| b"Tt -_".contains(byte))
            && is_digit(at + 11)
            && is_digit(at + 12)
            && !is_digit(at + 13);
        let two = |at: usize| u32::from(bytes[at] - b'0') * 10 + u32::from(bytes[at + 1] - b'0');
        let hour = if has_hour { Some(two(at + 11)).filter(|hour| *hour < 24) } else { None };
        return Period::of_day(two(at) * 100 + two(at + 2), two(at + 5), two(at + 8), hour);
    }
    let stem = value.split('.').next().unwrap_or_default();
    let digits = number(stem).filter(|_| stem.len() == 8 || stem.len() == 10)?;
    let (date, hour) = if stem.len() == 10 { (digits / 100, Some(digits % 100)) } else { (digits, None) };
    let hour = match hour {
        Some(hour) if hour >= 24 => return None,
        hour => hour,
    };
    Period::of_day(date / 10_000, date / 100 % 100, date % 100, hour)
}

/// A number of digits alone.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-20T00:00:00Z.
    const NOVEMBER_20: i64 = 1_795_132_800;

    #[test]
    fn names_of_partitions_tell_when_their_period_ends() {
        let day = Some(NOVEMBER_20 + DAY);
        for (key, end) in [
            ("t/dt=2026-11-20/a.parquet", day),
            ("t/ds=2026_11_20/a.parquet", day),
            ("t/event_date=20261120/a", day),
            ("t/2026/11/20/a", day),
            ("t/2026-11-20/a", day),
            ("t/year=2026/month=11/day=20/a", day),
            ("t/Y=2026/M=11/D=20/a", day),
            ("t/events-2026-11-20.parquet", day),
            ("t/20261120.parquet", day),
            ("t/2026-11-20-00012.parquet", day),
            ("t/dt=2026-11-20/part-00000-2ab1", day),
            ("t/dt=2026-11-20/hour=23/a", day),
            ("t/dt=2026-11-20/00/a", Some(NOVEMBER_20 + 3_600)),
            ("t/2026/11/20/05/a", Some(NOVEMBER_20 + 6 * 3_600)),
            ("t/hour=2026-11-20T05/a", Some(NOVEMBER_20 + 6 * 3_600)),
            ("t/2026112005/a", Some(NOVEMBER_20 + 6 * 3_600)),
            ("t/dt=2026-11-20 05:10:00/a", Some(NOVEMBER_20 + 6 * 3_600)),
            ("t/year=2026/month=11/a", Some(NOVEMBER_20 + 11 * DAY)),
            ("t/2026/12/a", Some(NOVEMBER_20 + 42 * DAY)),
            ("t/year=2026/a", Some(NOVEMBER_20 + 42 * DAY)),
            // The last date counts: that of the data, not of the run that wrote it or of a version of the table.
            ("v=2020-01-01/dt=2026-11-20/a", day),
            ("2020/01/01/dt=2026-11-20/a", day),
        ] {
            assert_eq!(period_end(key), end, "{key}");
        }
    }

    #[test]
    fn other_numbers_are_no_dates() {
        for key in [
            "",
            "a",
            "t/a.parquet",
            "t/2026/a",
            "t/dt=2026-13-20/a",
            "t/dt=2026-02-29/a",
            "t/12026-11-20/a",
            "t/2026-11_20/a",
            "t/20261320.parquet",
            "t/2026112024/a",
            "t/99999999/a",
            "t/month=11/day=20/a",
            "t/day=20/a",
            "1/2/3/4",
            "t/part-00012-1f2e.parquet",
            "ä/日=20/a",
        ] {
            assert_eq!(period_end(key), None, "{key}");
        }
    }

    #[test]
    fn days_are_counted_as_calendars_do() {
        for (year, month, days) in [(1970, 1, 0), (1970, 3, 59), (1972, 3, 790), (2000, 3, 11_017), (2100, 3, 47_541)] {
            assert_eq!(day_of(year, month, 1), Some(days), "{year}-{month}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_read_without_harm(key in "\\PC{0,80}") {
            period_end(&key);
        }

        #[test]
        fn later_days_end_later(year in 1970u32..2999, month in 1u32..=12, day in 1u32..=31) {
            prop_assume!(day_of(year.into(), month, day).is_some());
            let end = period_end(&format!("t/dt={year:04}-{month:02}-{day:02}/a"));
            prop_assert_eq!(end, period_end(&format!("t/{year:04}/{month:02}/{day:02}/a")));
            let (end, next) = (end.unwrap(), day + 1);
            if day_of(year.into(), month, next).is_some() {
                prop_assert_eq!(period_end(&format!("t/{year:04}{month:02}{next:02}/a")), Some(end + DAY));
            } else {
                prop_assert_eq!(period_end(&format!("t/year={year}/month={month}/a")), Some(end));
            }
        }
    }
}
