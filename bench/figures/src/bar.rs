//! What a figure has to reach, as the table writes it: `>= 0.9x` of the peer, `<= 20 us` by itself, `0.85x to 1.15x` both ways.

use std::fmt;
use std::str::FromStr;

use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

/// A bound on a figure, or two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bar {
    least: Option<f64>,
    most: Option<f64>,
    /// Whether it is held against the ratio to the peer, not against the value itself.
    pub of_ratio: bool,
    text: String,
}

/// What came of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It reaches its bar.
    Met,
    /// It does not.
    Missed,
    /// It has no bar.
    ForTheRecord,
    /// A round of it failed.
    Failed,
    /// Nobody has run it.
    NotRunYet,
}

impl Bar {
    /// Judges a value, or the ratio to its peer where the bar is one of that; a bar of a ratio without one is missed.
    pub fn judge(&self, value: f64, ratio: Option<f64>) -> Verdict {
        let held = if self.of_ratio { ratio } else { Some(value) };
        let is_within = |held: f64| self.least.is_none_or(|least| held >= least) && self.most.is_none_or(|most| held <= most);
        if held.is_some_and(is_within) { Verdict::Met } else { Verdict::Missed }
    }

    /// Whether more is better, and too much can't be.
    pub fn wants_more(&self) -> bool {
        self.most.is_none()
    }
}

impl FromStr for Bar {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            let how =
                "write `>= 0.9x` for a ratio, `<= 20 us` for a value, or `0.85x to 1.15x` for what may be neither less nor more";
            Error::invalid(format!("bar {text:?}: {how}"))
        };
        let bound = |text: &str| {
            let word = text.split_whitespace().next().ok_or_else(bad)?;
            let bound = word.trim_end_matches('x').replace(',', "").parse::<f64>().ok().filter(|bound| bound.is_finite());
            Ok::<_, Error>((bound.ok_or_else(bad)?, word.ends_with('x')))
        };
        let (least, most) = match (text.strip_prefix(">="), text.strip_prefix("<="), text.split_once(" to ")) {
            (Some(least), None, None) => (Some(bound(least)?), None),
            (None, Some(most), None) => (None, Some(bound(most)?)),
            (None, None, Some((least, most))) => (Some(bound(least)?), Some(bound(most)?)),
            _ => return Err(bad()),
        };
        let of_ratio = [least, most].into_iter().flatten().all(|(_, of_ratio)| of_ratio);
        let number = |bound: Option<(f64, bool)>| bound.map(|(bound, _)| bound);
        let is_one = match (least, most) {
            (Some((least, is_ratio)), Some((most, also))) => least <= most && is_ratio == also,
            _ => true,
        };
        if !is_one {
            return Err(bad());
        }
        Ok(Self { least: number(least), most: number(most), of_ratio, text: text.to_owned() })
    }
}

impl TryFrom<String> for Bar {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Bar> for String {
    fn from(bar: Bar) -> Self {
        bar.text
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(text: &str) -> Bar {
        text.parse().unwrap()
    }

    #[test]
    fn a_bar_of_a_ratio_looks_at_the_ratio_alone() {
        assert_eq!(bar(">= 0.9x").judge(0.0, Some(0.9)), Verdict::Met);
        assert_eq!(bar(">= 0.9x").judge(100.0, Some(0.899)), Verdict::Missed);
        assert_eq!(bar("<= 1.1x").judge(100.0, Some(1.1)), Verdict::Met);
        assert_eq!(bar("<= 1.1x").judge(0.0, Some(1.2)), Verdict::Missed);
    }

    #[test]
    fn a_bar_of_a_value_looks_at_the_value_alone() {
        assert_eq!(bar("<= 20 us").judge(20.0, Some(9.0)), Verdict::Met);
        assert_eq!(bar("<= 20 us").judge(20.1, None), Verdict::Missed);
        assert_eq!(bar(">= 20,000 objects/s").judge(20_000.0, None), Verdict::Met);
        assert_eq!(bar(">= 20,000 objects/s").judge(19_999.0, None), Verdict::Missed);
    }

    #[test]
    fn a_bar_with_two_ends_is_met_between_them() {
        let verdicts = [0.849, 0.85, 1.15, 1.151, f64::NAN].map(|ratio| bar("0.85x to 1.15x").judge(1.0, Some(ratio)));
        assert_eq!(verdicts, [Verdict::Missed, Verdict::Met, Verdict::Met, Verdict::Missed, Verdict::Missed]);
        assert_eq!(bar("9 to 11 copies").judge(11.5, Some(10.0)), Verdict::Missed);
        assert!(bar(">= 2x").wants_more() && !bar("0.85x to 1.15x").wants_more() && !bar("<= 2x").wants_more());
    }

    #[test]
    fn a_bar_of_a_ratio_is_missed_where_there_is_no_peer() {
        assert_eq!(bar(">= 0.9x").judge(5.0, None), Verdict::Missed);
    }

    #[test]
    fn what_is_no_number_meets_no_bar() {
        assert_eq!(bar(">= 1").judge(f64::NAN, None), Verdict::Missed);
        assert_eq!(bar("<= 1").judge(f64::NAN, None), Verdict::Missed);
    }

    #[test]
    fn bars_that_say_nothing_are_refused() {
        for text in [
            "",
            ">",
            "= 3",
            ">=",
            ">= x",
            "<= fast",
            ">= infx",
            "> 3",
            "3",
            "3x to",
            "2x to 1x",
            "1x to 2",
            "NaN to 2",
            ">= 1 to 2",
        ] {
            assert!(text.parse::<Bar>().is_err(), "{text:?} was taken");
        }
    }
}
