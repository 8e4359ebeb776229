//! How many values of a nested column the rows of a batch have at most: a run of six bytes says that a row has 2^31 of them.

use std::collections::VecDeque;

/// Counts values row by row, and keeps where the last rows begin that may be decoded together.
#[derive(Debug)]
pub(super) struct Rows {
    together: u64,
    /// How many values are before the first one of each of them.
    starts: VecDeque<u64>,
    values: u64,
    /// Values of rows that are decoded together, at most.
    pub(super) most: u64,
}

impl Rows {
    /// Of which so many are decoded together.
    pub(super) fn new(together: u64) -> Self {
        Self { together: together.max(1), starts: VecDeque::new(), values: 0, most: 0 }
    }

    /// So many rows begin, the last of which may have more than the one value that each has.
    pub(super) fn begin(&mut self, rows: u64) {
        for _ in 0..rows.min(self.together) {
            if self.starts.len() as u64 == self.together {
                self.starts.pop_front();
            }
            self.starts.push_back(self.values);
            self.go_on(1);
        }
        if rows > self.together {
            // Of those that are left, as many as are decoded together have a value each.
            self.values += rows - self.together;
            self.starts = (self.values - self.together..self.values).collect();
        }
    }

    /// The last row has more values.
    pub(super) fn go_on(&mut self, values: u64) {
        self.values += values;
        let from = self.starts.front().copied().unwrap_or(0);
        self.most = self.most.max(self.values - from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_rows_that_are_decoded_together_have_more_values_than_are_counted(
            lengths in prop_oneof![
                proptest::collection::vec(1_u64..9, 1..80),
                proptest::collection::vec(prop_oneof![9 => Just(1_u64), 1 => 2_u64..1_000], 1..200),
            ],
            together in 1_usize..40,
            step in 1_u64..50,
        ) {
            let mut counted = Rows::new(together as u64);
            // A run of rows of one value each, as levels have them, and then what the last of them has more, in steps.
            let mut waiting = 0;
            for length in &lengths {
                waiting += 1;
                let mut left = length - 1;
                if left > 0 {
                    counted.begin(std::mem::take(&mut waiting));
                }
                while left > 0 {
                    counted.go_on(left.min(step));
                    left = left.saturating_sub(step);
                }
            }
            counted.begin(waiting);
            let windows = (0..lengths.len()).map(|from| lengths[from..].iter().take(together).sum::<u64>());
            prop_assert_eq!(Some(counted.most), windows.max());
            prop_assert!(counted.starts.len() <= together);
        }
    }

    #[test]
    fn a_run_of_many_rows_takes_no_more_steps_than_are_decoded_together() {
        let mut rows = Rows::new(8_192);
        for _ in 0..1_000 {
            rows.begin(u64::from(u32::MAX));
        }
        assert_eq!(rows.most, 8_192);
        rows.go_on(1 << 31);
        assert_eq!(rows.most, 8_192 + (1 << 31));
    }
}
