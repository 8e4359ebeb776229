//! Opens one table file of a scan: which of its row groups are left to read, and how many of them are under way at once.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::Count;
use forebay_table::{Table, Verified};
use futures::StreamExt;
use futures::stream::{self, TryStreamExt};
use object_store::ObjectStore;

use super::adapt::Adapted;
use super::metadata::{Opened, Tables};
use super::pruning::may_meet;
use super::scan::{FileScan, Filter};
use crate::paths::external;

/// Row groups of one file that are read at once: one is worked on while the next one comes.
const ROW_GROUPS_AT_ONCE: usize = 2;

/// Opens files for one partition of a scan.
pub(super) struct Opener {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) tables: Tables,
    /// Whether bytes that have verified once come from what verifies them itself from then on.
    pub(super) of_tiers: bool,
    /// The files' schema as the engine knows it.
    pub(super) schema: SchemaRef,
    /// Wanted columns of it.
    pub(super) columns: Vec<usize>,
    /// What rows have to meet.
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    /// What row groups have to meet, which may say more while the query runs.
    pub(super) pruning: Option<Arc<dyn PhysicalExpr>>,
    pub(super) batch_rows: usize,
    pub(super) row_groups_read: Count,
    pub(super) row_groups_pruned: Count,
}

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, tables, schema, columns) =
            (Arc::clone(&self.store), self.tables.clone(), Arc::clone(&self.schema), self.columns.clone());
        let (filter, pruning, batch_rows, of_tiers) = (self.filter.clone(), self.pruning.clone(), self.batch_rows, self.of_tiers);
        let (read, pruned) = (self.row_groups_read.clone(), self.row_groups_pruned.clone());
        Ok(Box::pin(async move {
            let meta = &file.object_meta;
            let Opened { table, verified } = tables.open(&store, meta).await?;
            let verified = if of_tiers { verified } else { Arc::new(Verified::none_of(&table)) };
            let here = row_groups(&table, file.range.as_ref())?;
            let candidates = here.len();
            let here = match &pruning {
                Some(pruning) => may_meet(pruning, &schema, &table, here)?,
                None => here,
            };
            pruned.add(candidates - here.len());
            let filter = filter.map(|filter| Filter::new(filter, &table, &schema)).transpose()?;
            let columns = Adapted::new(&table, &schema, &columns)?;
            let location = meta.location.clone();
            let scan = Arc::new(FileScan { store, location, table, verified, columns, filter, batch_rows });
            let batches = stream::iter(here)
                .map(move |row_group| {
                    read.add(1);
                    Arc::clone(&scan).read(row_group)
                })
                .buffered(ROW_GROUPS_AT_ONCE)
                .map_ok(stream::iter)
                .try_flatten();
            Ok(batches.boxed())
        }))
    }
}

/// The row groups that begin in a range of the file's bytes; all of them without one.
fn row_groups(table: &Table, range: Option<&FileRange>) -> Result<Vec<usize>> {
    let Some(range) = range else { return Ok((0..table.row_groups()).collect()) };
    let mut out = Vec::new();
    for row_group in 0..table.row_groups() {
        let mut start = None;
        for group in 0..table.groups().len() {
            let cell = table.cell(row_group, group).map_err(external)?;
            start = cell.ranges().map(|range| range.start).chain(start).min();
        }
        // A row group without a byte, of nulls only, counts as the file's first.
        let start = start.unwrap_or(0) as i64;
        if (range.start..range.end).contains(&start) {
            out.push(row_group);
        }
    }
    Ok(out)
}
