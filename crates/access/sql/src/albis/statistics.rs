//! Rows, sizes, nulls and bounds of a table file for the optimizer, exact only where the file says that they are.

use std::cmp::Ordering;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use forebay_table::Table;

use crate::error::external;

/// What a table's metadata tells the optimizer, for the columns of the engine's schema.
pub(super) fn of_table(table: &Table, schema: &SchemaRef) -> Result<Statistics> {
    let mut statistics = Statistics::new_unknown(schema);
    statistics.num_rows = Precision::Exact(table.rows() as usize);
    let mut bytes = 0;
    for row_group in 0..table.row_groups() {
        for group in 0..table.groups().len() {
            bytes += table.cell(row_group, group).map_err(external)?.bytes();
        }
    }
    statistics.total_byte_size = Precision::Inexact(bytes as usize);
    for (field, out) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        if let Some(leaf) = leaf(table, schema, field.name()) {
            *out = column(table, leaf)?;
        }
    }
    Ok(statistics)
}

/// The leaf that is the column of that name, when the file has it in the type that the engine's schema says.
pub(super) fn leaf(table: &Table, schema: &Schema, name: &str) -> Option<usize> {
    let leaf = table.schema().leaf(name).ok()?;
    let own = table.schema().arrow().field_with_name(name).ok()?;
    let wanted = schema.field_with_name(name).ok()?;
    (own.data_type() == wanted.data_type() && table.schema().leaves()[leaf].data_type() == wanted.data_type()).then_some(leaf)
}

fn column(table: &Table, leaf: usize) -> Result<ColumnStatistics> {
    let known = table.statistics(leaf).map_err(external)?;
    let nulls = known.nulls.values().iter().sum::<u64>() as usize;
    let mut out = ColumnStatistics::new_unknown();
    out.null_count = Precision::Exact(nulls);
    let (mut min, mut max): (Option<ScalarValue>, Option<ScalarValue>) = (None, None);
    for row_group in 0..table.row_groups() {
        if known.nulls.value(row_group) == known.rows.value(row_group) {
            continue;
        }
        let least = ScalarValue::try_from_array(&known.min, row_group)?;
        let most = ScalarValue::try_from_array(&known.max, row_group)?;
        if least.is_null() || most.is_null() {
            return Ok(out);
        }
        if min.as_ref().is_none_or(|min| least.partial_cmp(min) == Some(Ordering::Less)) {
            min = Some(least);
        }
        if max.as_ref().is_none_or(|max| most.partial_cmp(max) == Some(Ordering::Greater)) {
            max = Some(most);
        }
    }
    // Bounds of floats have the sign of zero turned outwards, so they may be no value of the column.
    let exact = known.exact && !known.min.data_type().is_floating();
    let precise = |value: Option<ScalarValue>| match value {
        Some(value) if exact => Precision::Exact(value),
        Some(value) => Precision::Inexact(value),
        None => Precision::Absent,
    };
    (out.min_value, out.max_value) = (precise(min), precise(max));
    Ok(out)
}
