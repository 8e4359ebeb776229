//! The rows that a filter has left, as places to gather.

use arrow_array::{Array, BooleanArray};
use forebay_types::{Error, Result};

/// Rows of a row group that have passed a filter, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    rows: Vec<u32>,
}

impl Selection {
    /// The rows where the mask is true; where it is null it is not.
    pub fn of(mask: &BooleanArray) -> Self {
        let count = mask.true_count();
        let mut rows = Vec::with_capacity(count);
        let values = mask.values().bit_chunks();
        match mask.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => push_rows(values.iter_padded(), &mut rows),
            Some(nulls) => {
                let valid = nulls.inner().bit_chunks();
                push_rows(values.iter_padded().zip(valid.iter_padded()).map(|(value, valid)| value & valid), &mut rows);
            }
        }
        assert!(rows.last().is_none_or(|last| (*last as usize) < mask.len()), "a row of {} was selected", mask.len());
        assert_eq!(rows.len(), count, "each row that is true is selected once");
        Self { rows }
    }

    /// These rows.
    /// `Invalid` if they are not ascending.
    pub fn of_rows(rows: Vec<u32>) -> Result<Self> {
        if !rows.is_sorted() {
            return Err(Error::invalid("rows of a selection have to be ascending; sort them"));
        }
        Ok(Self { rows })
    }

    /// The rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Whether no row has passed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Appends the places of the ones, a word at a time: where few rows pass most words are passed over at once.
fn push_rows(words: impl Iterator<Item = u64>, rows: &mut Vec<u32>) {
    let mut first = 0u32;
    for word in words {
        let mut left = word;
        while left != 0 {
            rows.push(first + left.trailing_zeros());
            left &= left - 1;
        }
        first += 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_true_and_no_null_are_selected() {
        let value = |row: usize| if row % 5 == 2 { None } else { Some(row.is_multiple_of(3)) };
        let of = |mask: &BooleanArray| Selection::of(mask).rows;
        for rows in [0, 1, 63, 64, 65, 200] {
            let mask = (0..rows).map(value).collect::<BooleanArray>();
            let right = |from: usize| (from..rows).filter(|row| value(*row) == Some(true)).map(move |row| (row - from) as u32);
            assert!(of(&mask).into_iter().eq(right(0)), "{rows}");
            if rows > 7 {
                assert!(of(&mask.slice(7, rows - 7)).into_iter().eq(right(7)), "{rows} from 7 on");
            }
            let plain = BooleanArray::new(mask.values().clone(), None);
            assert!(of(&plain).into_iter().eq((0..rows as u32).filter(|row| plain.value(*row as usize))), "{rows} without nulls");
        }
    }
}
