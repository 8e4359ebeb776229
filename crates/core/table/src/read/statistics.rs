//! Bounds of a column as Arrow values, and which row groups a range of values can't rule out.

use arrow_array::{Array, ArrayRef, Datum, UInt64Array};
use arrow_ord::cmp::{gt_eq, lt_eq};
use forebay_types::{Error, Result};

use super::Table;
use crate::cell::Builder;
use crate::metadata::{Bound, LeafStatistics};

/// What is known of a column's values, one entry a row group.
///
/// Bounds hold but need not be met: of strings and binary only a prefix is kept. They are null where nothing is known: all
/// values are null, the type has no order, or a floating-point value is not a number.
#[derive(Clone, Debug)]
pub struct ColumnStatistics {
    /// No value is below, in the column's type.
    pub min: ArrayRef,
    /// No value is above, in the column's type.
    pub max: ArrayRef,
    /// Number of nulls.
    pub nulls: UInt64Array,
    /// Number of rows.
    pub rows: UInt64Array,
    /// Whether all bounds are values that the column has.
    pub exact: bool,
}

impl Table {
    /// The statistics of a leaf, by its index in the schema's leaves.
    /// `Invalid` if there is no such leaf.
    pub fn statistics(&self, leaf: usize) -> Result<ColumnStatistics> {
        let block = self.block();
        let Some(column) = block.schema.leaves().get(leaf) else {
            return Err(Error::invalid(format!("the table has no leaf {leaf}")));
        };
        let of = || block.row_groups.iter().map(|info| &info.leaves[leaf]);
        let bounds = |bound: fn(&LeafStatistics) -> &Option<Bound>| {
            let mut out = Builder::new(column, block.row_groups.len());
            of().try_for_each(|leaf| out.push(bound(leaf).as_ref().map(|bound| bound.bytes.as_slice())))?;
            out.finish()
        };
        Ok(ColumnStatistics {
            min: bounds(|leaf| &leaf.min)?,
            max: bounds(|leaf| &leaf.max)?,
            nulls: of().map(|leaf| leaf.nulls as u64).collect::<Vec<_>>().into(),
            rows: block.row_groups.iter().map(|info| info.rows as u64).collect::<Vec<_>>().into(),
            exact: of().flat_map(|leaf| leaf.min.iter().chain(&leaf.max)).all(|bound| bound.exact),
        })
    }

    /// The row groups that may have a value of the leaf from `least` to `most`, both of the leaf's type and included.
    /// `Invalid` if there is no such leaf, or its type is another or has no order.
    pub fn row_groups_within(&self, leaf: usize, least: Option<&dyn Datum>, most: Option<&dyn Datum>) -> Result<Vec<usize>> {
        let statistics = self.statistics(leaf)?;
        let path = self.schema().leaves()[leaf].path();
        let bad = |error| Error::invalid(format!("column `{path}` can't be compared so: {error}"));
        let above = least.map(|least| gt_eq(&statistics.max, least)).transpose().map_err(bad)?;
        let below = most.map(|most| lt_eq(&statistics.min, most)).transpose().map_err(bad)?;
        let may = |row_group: usize| {
            let all_null = statistics.nulls.value(row_group) == statistics.rows.value(row_group);
            let passes = |met: &Option<arrow_array::BooleanArray>| {
                met.as_ref().is_none_or(|met| met.is_null(row_group) || met.value(row_group))
            };
            !all_null && passes(&above) && passes(&below)
        };
        Ok((0..self.row_groups()).filter(|&row_group| may(row_group)).collect())
    }
}
