//! Rows of one attribute's column, as conditions on it leave them: equalities, prefixes and ranges put together are rows again.

use std::ops::Range;

/// Rows of a column: intervals in order, with others between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowSet {
    pub(crate) intervals: Vec<Range<u32>>,
}

impl RowSet {
    /// All rows that lie in one of the intervals.
    pub(crate) fn union(intervals: impl IntoIterator<Item = Range<u32>>) -> Self {
        let mut intervals: Vec<_> = intervals.into_iter().filter(|rows| !rows.is_empty()).collect();
        intervals.sort_unstable_by_key(|rows| rows.start);
        let mut merged: Vec<Range<u32>> = Vec::with_capacity(intervals.len());
        for rows in intervals {
            match merged.last_mut() {
                Some(last) if rows.start <= last.end => last.end = last.end.max(rows.end),
                _ => merged.push(rows),
            }
        }
        debug_assert!(merged.windows(2).all(|two| two[0].end < two[1].start), "in order, with others between them");
        Self { intervals: merged }
    }

    /// The rows that lie in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let (mut these, mut those) = (self.intervals.iter().peekable(), other.intervals.iter().peekable());
        let mut both = Vec::new();
        while let (Some(this), Some(that)) = (these.peek(), those.peek()) {
            let rows = this.start.max(that.start)..this.end.min(that.end);
            if this.end <= that.end {
                these.next();
            } else {
                those.next();
            }
            if !rows.is_empty() {
                both.push(rows);
            }
        }
        debug_assert!(both.windows(2).all(|two| two[0].end < two[1].start), "in order, with others between them");
        Self { intervals: both }
    }

    /// The other rows of the column.
    pub(crate) fn complement(&self, column: Range<u32>) -> Self {
        let mut others = Vec::with_capacity(self.intervals.len() + 1);
        let mut from = column.start;
        for rows in &self.intervals {
            others.push(from..rows.start);
            from = rows.end;
        }
        others.push(from..column.end);
        Self::union(others)
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.intervals.iter().map(|rows| rows.len()).sum()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Whether a row is among them.
    pub(crate) fn contains(&self, row: u32) -> bool {
        let at = self.intervals.partition_point(|rows| rows.end <= row);
        self.intervals.get(at).is_some_and(|rows| rows.start <= row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMN: Range<u32> = 3..40;

    fn rows() -> impl Strategy<Value = RowSet> {
        let interval = (COLUMN, 0u32..6).prop_map(|(start, count)| start..(start + count).min(COLUMN.end));
        prop::collection::vec(interval, 0..6).prop_map(RowSet::union)
    }

    fn of(rows: &RowSet) -> Vec<u32> {
        COLUMN.filter(|row| rows.contains(*row)).collect()
    }

    proptest! {
        #[test]
        fn put_together_they_are_what_each_row_says(one in rows(), other in rows()) {
            prop_assert_eq!(of(&one).len(), one.len());
            prop_assert_eq!(one.is_empty(), of(&one).is_empty());
            prop_assert!(one.intervals.windows(2).all(|two| two[0].end < two[1].start));
            let union = RowSet::union(one.intervals.iter().chain(&other.intervals).cloned());
            let right: Vec<u32> = COLUMN.filter(|row| one.contains(*row) || other.contains(*row)).collect();
            prop_assert_eq!(of(&union), right);
            let right: Vec<u32> = COLUMN.filter(|row| one.contains(*row) && other.contains(*row)).collect();
            prop_assert_eq!(of(&one.intersection(&other)), right);
            let right: Vec<u32> = COLUMN.filter(|row| !one.contains(*row)).collect();
            prop_assert_eq!(of(&one.complement(COLUMN)), right);
        }
    }
}
