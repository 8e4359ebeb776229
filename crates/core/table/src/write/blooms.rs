//! Which columns get bloom filters, and what goes into them.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use forebay_types::{Error, Result};

use super::cut::bytes;
use super::values::{Values, view};
use crate::bloom::{BLOCK_BYTES, blocks_for, build, hash};
use crate::metadata::LeafStatistics;
use crate::schema::{Kind, TableSchema};

/// Different values below which a row group's are quickly read.
const MANY: usize = 1024;
/// Numbers that a row group's bounds hold for each value of it, below which the bounds tell enough.
const SPARSE: i128 = 8;

/// Which columns have a bloom filter in each row group. With any of them a table is of a version that programs read which know of
/// such filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Blooms {
    /// None.
    #[default]
    None,
    /// These, by path.
    Of(Vec<String>),
    /// Each where it pays, row group by row group: there are 1,024 different values or more, half of the values are different, the
    /// bounds of whole numbers hold eight or more numbers for each of them, and the filter is at most half as large as the values.
    WherePays,
}

/// What is wanted for one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    No,
    IfPays,
    Always,
}

impl Blooms {
    /// What is wanted for each leaf.
    pub(super) fn resolve(&self, schema: &TableSchema) -> Result<Vec<Wish>> {
        let leaves = schema.leaves();
        let if_pays = |data_type: &DataType| if has_keys(data_type) { Wish::IfPays } else { Wish::No };
        let mut wishes = vec![Wish::No; leaves.len()];
        match self {
            Self::None => (),
            Self::WherePays => wishes = leaves.iter().map(|leaf| if_pays(leaf.data_type())).collect(),
            Self::Of(columns) => {
                for column in columns {
                    let leaf = schema.leaf(column)?;
                    let data_type = leaves[leaf].data_type();
                    if !has_keys(data_type) {
                        let what = "there are bloom filters of whole numbers, decimals, dates, times, strings and binary";
                        return Err(Error::invalid(format!("column `{column}` has the type {data_type}; {what}: leave it out")));
                    }
                    wishes[leaf] = Wish::Always;
                }
            }
        }
        Ok(wishes)
    }
}

/// Whether two values of a type are equal where their bytes are, and only there.
fn has_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::Interval(_) => false,
        other => matches!(Kind::plain(other), Some(Kind::Fixed(_) | Kind::Bytes { .. } | Kind::View)),
    }
}

/// The hashes by which bloom filters know the values of an array, those of nulls left out; none for a type that has no such
/// filters.
pub fn key_hashes(array: &ArrayRef) -> Option<Vec<u64>> {
    if !has_keys(array.data_type()) {
        return None;
    }
    let there = (0..array.len()).filter(|&row| array.is_valid(row));
    match Values::of(array, Kind::plain(array.data_type())?) {
        Values::Fixed { bytes, width } => Some(there.map(|row| hash(&bytes[row * width..(row + 1) * width])).collect()),
        Values::Bytes { starts, data } => Some(there.map(|row| hash(&data[starts.range(row)])).collect()),
        Values::View(views) => Some(there.map(|row| hash(view(&views, row))).collect()),
        Values::Nothing | Values::Bit(_) | Values::List { .. } => None,
    }
}

/// The bloom filter of a column in one row group, where it is wanted. A column of nulls needs none.
pub(super) fn bloom(wish: Wish, array: &ArrayRef, known: &LeafStatistics) -> Option<Vec<u8>> {
    if wish == Wish::No {
        return None;
    }
    let mut hashes = key_hashes(array)?;
    let values = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    let is_wanted = wish == Wish::Always || pays(array, known, values, hashes.len());
    (is_wanted && values > 0).then(|| build(&hashes))
}

fn pays(array: &ArrayRef, known: &LeafStatistics, values: usize, different: usize) -> bool {
    let Some(kind) = Kind::plain(array.data_type()) else { return false };
    let is_large = (blocks_for(different) * BLOCK_BYTES * 2) as u64 > bytes(array, kind).1;
    let is_dense = matches!(kind, Kind::Fixed(_))
        && numbers_within(array.data_type(), known).is_some_and(|numbers| numbers / SPARSE < different as i128);
    different >= MANY && different * 2 >= values && !is_large && !is_dense
}

/// How many whole numbers the bounds hold, where they are some.
fn numbers_within(data_type: &DataType, known: &LeafStatistics) -> Option<i128> {
    let is_signed = !data_type.is_unsigned_integer();
    let least = whole(&known.min.as_ref()?.bytes, is_signed)?;
    let most = whole(&known.max.as_ref()?.bytes, is_signed)?;
    most.checked_sub(least)
}

/// A little-endian number of at most 16 bytes.
fn whole(bytes: &[u8], is_signed: bool) -> Option<i128> {
    let is_negative = is_signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut all = [if is_negative { 0xff } else { 0 }; 16];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(all))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryArray, Int16Array, Int64Array, LargeStringArray, StringArray, StringViewArray, UInt64Array};

    use super::super::measure::statistics;
    use super::*;

    fn has_one(array: ArrayRef) -> bool {
        bloom(Wish::IfPays, &array, &statistics(&array)).is_some()
    }

    /// Numbers that lie far from each other.
    fn spread(rows: i64) -> impl Iterator<Item = i64> {
        (0..rows).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64))
    }

    #[test]
    fn filters_are_made_where_they_pay() {
        assert!(has_one(Arc::new(Int64Array::from_iter_values(spread(5000)))));
        assert!(has_one(Arc::new(UInt64Array::from_iter_values(spread(5000).map(|value| value as u64)))));
        assert!(has_one(Arc::new(StringArray::from_iter_values((0..5000).map(|row| format!("row-{row}"))))));
        assert!(!has_one(Arc::new(Int64Array::from_iter_values(spread(1000)))), "there are few");
        let again = spread(2000).chain(spread(2000)).chain(spread(2000));
        assert!(!has_one(Arc::new(Int64Array::from_iter_values(again))), "each is there three times");
        assert!(!has_one(Arc::new(Int64Array::from_iter_values((0..5000).map(|row| row * 7)))), "the bounds tell");
        let small = (0..5000).map(|row: i16| row.wrapping_mul(12_347));
        assert!(!has_one(Arc::new(Int16Array::from_iter_values(small))), "the values themselves are hardly larger");
    }

    #[test]
    fn a_filter_that_was_asked_for_is_made_unless_all_is_null() {
        let some = Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef;
        assert_eq!(bloom(Wish::Always, &some, &statistics(&some)).map(|bytes| bytes.len()), Some(BLOCK_BYTES));
        let nulls = Arc::new(Int64Array::new_null(2)) as ArrayRef;
        assert_eq!(bloom(Wish::Always, &nulls, &statistics(&nulls)), None);
    }

    #[test]
    fn a_value_has_one_hash_in_all_arrays_of_bytes() {
        let texts = ["", "short", "longer than a view holds"];
        let arrays: [ArrayRef; 4] = [
            Arc::new(StringArray::from_iter_values(texts)),
            Arc::new(LargeStringArray::from_iter_values(texts)),
            Arc::new(StringViewArray::from_iter_values(texts)),
            Arc::new(BinaryArray::from_iter_values(texts)),
        ];
        let expected = texts.map(|text| hash(text.as_bytes())).to_vec();
        for array in arrays {
            assert_eq!(key_hashes(&array), Some(expected.clone()));
            assert_eq!(key_hashes(&array.slice(1, 2)), Some(expected[1..].to_vec()));
        }
    }
}
