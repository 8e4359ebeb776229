//! What a figure has to reach, as the table writes it: `>= 0.9x` of the peer, `<= 20 us` by itself.

use std::fmt;
use std::str::FromStr;

use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

/// A bound on a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bar {
    /// Whether more is better.
    pub at_least: bool,
    bound: f64,
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
        let met = held.is_some_and(|held| if self.at_least { held >= self.bound } else { held <= self.bound });
        if met { Verdict::Met } else { Verdict::Missed }
    }
}

impl FromStr for Bar {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::invalid(format!("bar {text:?}: write `>= 0.9x` for a ratio or `<= 20 us` for a value"));
        let (at_least, rest) = match text.split_at_checked(2) {
            Some((">=", rest)) => (true, rest),
            Some(("<=", rest)) => (false, rest),
            _ => return Err(bad()),
        };
        let word = rest.split_whitespace().next().ok_or_else(bad)?;
        let of_ratio = word.ends_with('x');
        let bound = word.trim_end_matches('x').replace(',', "").parse::<f64>().map_err(|_| bad())?;
        if !bound.is_finite() {
            return Err(bad());
        }
        Ok(Self { at_least, bound, of_ratio, text: text.to_owned() })
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
        for text in ["", ">", "= 3", ">=", ">= x", "<= fast", ">= infx", "> 3"] {
            assert!(text.parse::<Bar>().is_err(), "{text:?} was taken");
        }
    }
}
