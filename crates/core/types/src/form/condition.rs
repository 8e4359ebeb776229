//! What rows of decoded columns must meet, as it goes to the worker that holds them.

use serde::{Deserialize, Serialize};

use super::at_most::at_most;
use crate::{Error, Result};

/// Steps of a condition at most.
pub const ROW_TESTS_MAX: usize = 64;
/// Values that all of its steps compare with at most.
const VALUES_MAX: usize = 256;
/// Bytes of these at most.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// A step of a condition on rows. A condition is a list of them: each test leaves whether a row meets it, `And` and `Or` make one
/// of the last two, and at the end one is left. So it has no depth. A column is its place among those that are asked for; a value
/// has the bytes of one in the column's own type: little-endian numbers, one byte for a boolean, the bytes of a text. Null is equal
/// to nothing, different from nothing, and in no list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowTest {
    /// A column compares so with a value.
    Compare {
        /// The column.
        column: u32,
        /// How.
        by: Comparison,
        /// With what.
        value: Vec<u8>,
    },
    /// A column has one of some values.
    OneOf {
        /// The column.
        column: u32,
        /// The values.
        #[serde(deserialize_with = "at_most::<VALUES_MAX, _, _>")]
        values: Vec<Vec<u8>>,
        /// It has a value, and none of these.
        negated: bool,
    },
    /// A column is null.
    Null {
        /// The column.
        column: u32,
        /// It is not.
        negated: bool,
    },
    /// Both of the last two hold.
    And,
    /// One of the last two holds.
    Or,
}

/// How a column compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// It is the value.
    Equal,
    /// It is another one.
    Different,
    /// It is below.
    Less,
    /// It is not above.
    AtMost,
    /// It is above.
    Greater,
    /// It is not below.
    AtLeast,
}

impl RowTest {
    /// Whether steps are a condition on so many columns; no steps are one that all rows meet.
    /// `Invalid` when they are none, or more than is looked at.
    pub fn check(tests: &[Self], columns: usize) -> Result<()> {
        let (mut left, mut values, mut bytes) = (0usize, 0, 0);
        if tests.len() > ROW_TESTS_MAX {
            return Err(Error::invalid(format!("a condition of {} steps: {ROW_TESTS_MAX} at most", tests.len())));
        }
        for test in tests {
            let column = match test {
                Self::Compare { column, value, .. } => {
                    (values, bytes) = (values + 1, bytes + value.len());
                    Some(*column)
                }
                Self::OneOf { column, values: list, .. } => {
                    (values, bytes) = (values + list.len(), bytes + list.iter().map(Vec::len).sum::<usize>());
                    Some(*column)
                }
                Self::Null { column, .. } => Some(*column),
                Self::And | Self::Or => None,
            };
            match column {
                Some(column) if column as usize >= columns => {
                    return Err(Error::invalid(format!("a condition on column {column} of the {columns} that are asked for")));
                }
                Some(_) => left += 1,
                None if left < 2 => return Err(Error::invalid("a condition joins two where there are not two")),
                None => left -= 1,
            }
        }
        debug_assert!(left <= tests.len(), "each step leaves one at most");
        if values > VALUES_MAX || bytes > VALUE_BYTES_MAX {
            let most = format!("{VALUES_MAX} and {VALUE_BYTES_MAX} at most");
            return Err(Error::invalid(format!("a condition with {values} values of {bytes} bytes: {most}")));
        }
        match tests.is_empty() || left == 1 {
            true => Ok(()),
            false => Err(Error::invalid(format!("a condition that ends with {left} truths instead of one"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null(column: u32) -> RowTest {
        RowTest::Null { column, negated: false }
    }

    #[test]
    fn steps_that_leave_one_truth_are_a_condition() {
        for good in [
            vec![],
            vec![null(0)],
            vec![null(0), null(1), RowTest::And],
            vec![null(0), null(1), null(1), RowTest::Or, RowTest::And],
            vec![RowTest::OneOf { column: 1, values: vec![vec![1]; VALUES_MAX], negated: true }],
        ] {
            RowTest::check(&good, 2).unwrap();
        }
    }

    #[test]
    fn steps_that_are_none_or_too_many_are_refused() {
        let large = RowTest::Compare { column: 0, by: Comparison::Equal, value: vec![0; VALUE_BYTES_MAX + 1] };
        for bad in [
            vec![null(2)],
            vec![null(u32::MAX)],
            vec![RowTest::And],
            vec![null(0), RowTest::Or],
            vec![null(0), RowTest::Or, null(0)],
            vec![null(0), null(1)],
            vec![null(0); ROW_TESTS_MAX + 1],
            vec![RowTest::OneOf { column: 1, values: vec![vec![1]; VALUES_MAX + 1], negated: false }],
            vec![large],
        ] {
            assert!(RowTest::check(&bad, 2).is_err(), "{} steps", bad.len());
        }
    }
}
