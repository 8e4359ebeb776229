//! Reads row groups of one table file: the filter's columns first, and of the others only what its rows leave to be read.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{filter, filter_record_batch};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use forebay_table::{Batches, Chunk, Plan, Projection, Selection, Table, Verified};
use forebay_types::Error;
use object_store::ObjectStore;
use object_store::path::Path;

use super::adapt::Adapted;
use super::rows;
use crate::error::external;
use crate::location::shown;

/// A share of a row group's rows beyond which copying the survivors one by one no longer pays.
const GATHER_SHARE_MAX: f64 = 0.25;

/// What rows of a file have to meet.
pub(super) struct Filter {
    columns: Adapted,
    predicate: Arc<dyn PhysicalExpr>,
}

impl Filter {
    pub(super) fn new(predicate: Arc<dyn PhysicalExpr>, table: &Table, schema: &Schema) -> Result<Self> {
        let named = collect_columns(&predicate);
        let mut columns =
            named.iter().map(|column| schema.index_of(column.name())).collect::<std::result::Result<Vec<_>, _>>()?;
        columns.sort_unstable();
        columns.dedup();
        let columns = Adapted::new(table, schema, &columns)?;
        let predicate = reassign_expr_columns(predicate, &columns.schema)?;
        Ok(Self { columns, predicate })
    }

    /// What is read to tell.
    pub(super) fn projection(&self) -> &Projection {
        &self.columns.projection
    }

    /// Which rows pass of a row group that begins with row `first`, by the columns' batch.
    fn passes(&self, batch: &RecordBatch, first: i64, file: &Path) -> Result<BooleanArray> {
        let numbers = self.columns.has_numbers().then(|| rows::run(first, batch.num_rows()));
        let batch = self.columns.adapt(batch, numbers.as_ref(), file)?;
        let mask = self.predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
        Ok(as_boolean_array(&mask)?.clone())
    }
}

/// How the row groups of one file are read.
pub(super) struct FileScan {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) location: Path,
    pub(super) table: Table,
    /// Cells that need not be verified once more; those that are read are added.
    pub(super) verified: Arc<Verified>,
    /// What is wanted of each row.
    pub(super) columns: Adapted,
    pub(super) filter: Option<Filter>,
    pub(super) batch_rows: usize,
}

impl FileScan {
    /// One row group: the filter's columns first, then of the wanted ones what has passed.
    pub(super) async fn read(self: Arc<Self>, row_group: usize) -> Result<Rows> {
        let (mut fetched, first) = (HashMap::new(), rows::first(&self.table, row_group));
        let mask = match &self.filter {
            Some(filter) => {
                let tested = self.chunk(row_group, filter.projection(), &mut fetched).await?;
                Some(filter.passes(&tested.batch().map_err(|error| self.bad(error))?, first, &self.location)?)
            }
            None => None,
        };
        let passed = mask.as_ref().map(BooleanArray::true_count);
        if passed == Some(0) {
            return Ok(Rows { scan: self, first, left: Left::Nothing });
        }
        let chunk = self.chunk(row_group, &self.columns.projection, &mut fetched).await?;
        let rows = chunk.rows();
        let left = match mask.zip(passed) {
            Some((mask, passed)) if (passed as f64) <= GATHER_SHARE_MAX * rows as f64 => {
                let selection = Selection::of(&mask);
                let picked = chunk.gather(&selection).map_err(|error| self.bad(error))?;
                let numbers = self.columns.has_numbers().then(|| rows::of(first, &selection));
                Left::Picked(picked, numbers, 0)
            }
            other => {
                let mask = other.filter(|(_, passed)| *passed < rows).map(|(mask, _)| mask);
                Left::Batches(chunk.batches(self.batch_rows).map_err(|error| self.bad(error))?, mask, 0)
            }
        };
        Ok(Rows { scan: self, first, left })
    }

    /// No rows, of a row group that need not be read.
    pub(super) fn nothing(self: Arc<Self>) -> Rows {
        Rows { scan: self, first: 0, left: Left::Nothing }
    }

    async fn chunk(&self, row_group: usize, projection: &Projection, fetched: &mut HashMap<u64, Bytes>) -> Result<Chunk> {
        let plan: Plan = self.table.plan(row_group, projection).map_err(|error| self.bad(error))?;
        let ranges = plan.ranges();
        let missing = ranges.iter().filter(|range| !fetched.contains_key(&range.start)).cloned().collect::<Vec<_>>();
        if !missing.is_empty() {
            let bytes = self.store.get_ranges(&self.location, &missing).await?;
            fetched.extend(missing.iter().map(|range| range.start).zip(bytes));
        }
        let bytes = ranges.iter().map(|range| fetched.get(&range.start).cloned().unwrap_or_default()).collect();
        plan.open_once(bytes, &self.verified).map_err(|error| self.bad(error))
    }

    fn adapt(&self, batch: &RecordBatch, numbers: Option<&ArrayRef>) -> Result<RecordBatch> {
        self.columns.adapt(batch, numbers, &self.location)
    }

    fn bad(&self, error: Error) -> datafusion::error::DataFusionError {
        external(error.context(format!("'{}'", shown(self.location.as_ref()))))
    }
}

/// The rows of a row group that have passed, in batches.
pub(super) struct Rows {
    scan: Arc<FileScan>,
    /// The number of the row group's first row.
    first: i64,
    left: Left,
}

enum Left {
    Nothing,
    /// Copied already, with their numbers where these are wanted, from this row on.
    Picked(RecordBatch, Option<ArrayRef>, usize),
    /// In place, with what has passed, from this row on.
    Batches(Batches, Option<BooleanArray>, usize),
}

impl Rows {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.left {
            Left::Nothing => Ok(None),
            Left::Picked(batch, numbers, next) => {
                assert!(*next <= batch.num_rows(), "{next} rows of {} were given", batch.num_rows());
                let (start, rows) = (*next, self.scan.batch_rows.min(batch.num_rows() - *next));
                *next += rows;
                let numbers = numbers.as_ref().map(|numbers| numbers.slice(start, rows));
                (rows > 0).then(|| self.scan.adapt(&batch.slice(start, rows), numbers.as_ref())).transpose()
            }
            Left::Batches(batches, mask, next) => {
                for batch in batches {
                    let batch = batch.map_err(|error| self.scan.bad(error))?;
                    let (start, rows) = (*next, batch.num_rows());
                    *next += rows;
                    let numbers = self.scan.columns.has_numbers().then(|| rows::run(self.first + start as i64, rows));
                    let Some(mask) = mask else { return self.scan.adapt(&batch, numbers.as_ref()).map(Some) };
                    let mask = mask.slice(start, rows);
                    if mask.has_true() {
                        let numbers = numbers.map(|numbers| filter(&numbers, &mask)).transpose()?;
                        return self.scan.adapt(&filter_record_batch(&batch, &mask)?, numbers.as_ref()).map(Some);
                    }
                }
                Ok(None)
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
