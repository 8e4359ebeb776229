//! Leaves out the row groups of a table file in which no row can meet the query's predicate, by their cells' statistics.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use forebay_table::{ColumnStatistics, Table};

use crate::albis::rows;
use crate::albis::statistics::leaf;

/// The row groups among `candidates` that may have a row that meets the predicate, by the statistics of their cells.
pub(in crate::albis) fn may_meet(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    table: &Table,
    candidates: Vec<usize>,
) -> Result<Vec<usize>> {
    let built = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).build(Arc::clone(predicate));
    let Some(built) = built else { return Ok(candidates) };
    let may = built.prune(&RowGroups { table, schema })?;
    Ok(candidates.into_iter().filter(|&row_group| may[row_group]).collect())
}

/// The statistics of all row groups, as the engine asks for them.
struct RowGroups<'a> {
    table: &'a Table,
    schema: &'a SchemaRef,
}

impl RowGroups<'_> {
    fn of(&self, column: &Column) -> Option<ColumnStatistics> {
        self.table.statistics(leaf(self.table, self.schema, &column.name)?).ok()
    }

    /// The first and the last row of each row group, if that is what the column has.
    fn numbers(&self, column: &Column) -> Option<Vec<(i64, i64)>> {
        self.schema.field_with_name(&column.name).ok().filter(|field| rows::is_number(field))?;
        let mut next = 0;
        let bounds = (0..self.table.row_groups()).map(|row_group| {
            let first = next;
            next += self.table.row_group_rows(row_group) as i64;
            (first, next - 1)
        });
        Some(bounds.collect())
    }
}

impl PruningStatistics for RowGroups<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        match self.numbers(column) {
            Some(numbers) => Some(Arc::new(Int64Array::from_iter_values(numbers.iter().map(|(first, _)| *first)))),
            None => Some(self.of(column)?.min),
        }
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        match self.numbers(column) {
            Some(numbers) => Some(Arc::new(Int64Array::from_iter_values(numbers.iter().map(|(_, last)| *last)))),
            None => Some(self.of(column)?.max),
        }
    }

    fn num_containers(&self) -> usize {
        self.table.row_groups()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        match self.numbers(column) {
            Some(numbers) => Some(Arc::new(UInt64Array::from_iter_values(numbers.iter().map(|_| 0)))),
            None => Some(Arc::new(self.of(column)?.nulls)),
        }
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = (0..self.table.row_groups()).map(|row_group| self.table.row_group_rows(row_group) as u64);
        Some(Arc::new(UInt64Array::from_iter_values(rows)))
    }

    /// Of the rows' numbers it is known which row groups have none of these.
    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        let numbers = self.numbers(column)?;
        let number = |value: &ScalarValue| match value {
            ScalarValue::Int64(number) => *number,
            _ => None,
        };
        let mut wanted = values.iter().map(number).collect::<Option<Vec<_>>>()?;
        wanted.sort_unstable();
        let has_any = |(first, last): (i64, i64)| {
            let next = wanted.get(wanted.partition_point(|wanted| *wanted < first));
            if next.is_some_and(|next| *next <= last) { None } else { Some(false) }
        };
        Some(numbers.into_iter().map(has_any).collect())
    }
}
