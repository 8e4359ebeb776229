//! The middle of what rounds gave, and how far they lie apart.

use serde::{Deserialize, Serialize};

/// Digits that a figure keeps: more than any round repeats.
const DIGITS: i32 = 6;

/// Median, least and most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle value; the mean of the two middle ones of an even number.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of all rounds; none where there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Self { median: rounded(median), min: rounded(min), max: rounded(max) })
    }
}

/// The number in as many digits as are kept.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // By text: the nearest number that is written so, whatever the machine's powers of ten are.
    format!("{value:.*e}", (DIGITS - 1) as usize).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        assert_eq!(Spread::of(&[5.0, 1.0, 3.0]), Some(Spread { median: 3.0, min: 1.0, max: 5.0 }));
        assert_eq!(Spread::of(&[7.0]), Some(Spread { median: 7.0, min: 7.0, max: 7.0 }));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 10.0]), Some(Spread { median: 3.0, min: 1.0, max: 10.0 }));
    }

    #[test]
    fn one_round_that_is_far_off_moves_the_spread_and_not_the_median() {
        let calm = Spread::of(&[10.0, 10.0, 10.0, 10.0, 10.0]).unwrap();
        let noisy = Spread::of(&[10.0, 10.0, 10.0, 10.0, 99.0]).unwrap();
        assert_eq!((noisy.median, noisy.max), (calm.median, 99.0));
    }

    #[test]
    fn no_rounds_have_no_spread() {
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn figures_keep_six_digits() {
        assert_eq!(rounded(1_234_567.8), 1_234_570.0);
        assert_eq!(rounded(-0.001_234_567), -0.001_234_57);
        assert_eq!(rounded(0.0), 0.0);
    }
}
