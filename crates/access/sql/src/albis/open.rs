//! Opens one table file of a scan: which of its row groups are left to read, and how many of them are under way at once.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result;
use datafusion::physical_expr::{DynamicFilterTracking, PhysicalExpr};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_plan::metrics::Count;
use forebay_table::{Projection, Table, Verified};
use futures::StreamExt;
use futures::stream::{self, TryStreamExt};
use object_store::ObjectStore;

use super::adapt::Adapted;
use super::metadata::{Opened, Tables};
use super::pruning::{Keys, keys, may_have, may_meet};
use super::scan::{FileScan, Filter};
use crate::error::external;

/// Row groups of one file that are read at once: one is worked on while the next one comes.
const ROW_GROUPS_AT_ONCE: usize = 2;

/// What is wanted of files, whichever they are.
#[derive(Clone)]
pub(super) struct Wanted {
    /// The files' schema as the engine knows it.
    pub(super) schema: SchemaRef,
    /// Wanted columns of it.
    pub(super) columns: Vec<usize>,
    /// What rows have to meet.
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    /// What row groups have to meet, which may say more while the query runs.
    pub(super) pruning: Option<Arc<dyn PhysicalExpr>>,
}

/// How one file is read.
pub(super) struct Reading {
    /// What is wanted of each row.
    pub(super) columns: Adapted,
    pub(super) filter: Option<Filter>,
    /// The row groups that are read.
    pub(super) row_groups: Vec<usize>,
    /// Of how many more it is known that no row of theirs is wanted.
    pub(super) pruned: usize,
}

impl Wanted {
    /// How a part of a file is read, by what its metadata says.
    pub(super) fn of(&self, table: &Table, range: Option<&FileRange>) -> Result<Reading> {
        let here = row_groups(table, range)?;
        let candidates = here.len();
        let row_groups = if let Some(pruning) = &self.pruning { may_meet(pruning, &self.schema, table, here)? } else { here };
        let filter = self.filter.clone().map(|filter| Filter::new(filter, table, &self.schema)).transpose()?;
        let columns = Adapted::new(table, &self.schema, &self.columns)?;
        assert!(row_groups.len() <= candidates, "pruning gave {} row groups of {candidates}", row_groups.len());
        Ok(Reading { columns, filter, pruned: candidates - row_groups.len(), row_groups })
    }

    /// The values that rows have to have in columns of a file that have bloom filters, by what is known now: a join tells its own when
    /// it has them.
    pub(super) fn keys(&self, table: &Table) -> Result<Vec<Keys>> {
        let Some(pruning) = &self.pruning else { return Ok(Vec::new()) };
        Ok(keys(&snapshot_physical_expr(Arc::clone(pruning))?, &self.schema, table))
    }
}

impl Reading {
    /// What is read of a row group, in this order.
    pub(super) fn projections(&self) -> impl Iterator<Item = &Projection> {
        self.filter.iter().map(Filter::projection).chain([&self.columns.projection])
    }
}

/// Row groups that are yet to be read, of which what moves while the query runs leaves ever fewer.
struct Left {
    table: Table,
    wanted: Wanted,
    moves: DynamicFilterTracking,
    row_groups: Vec<usize>,
}

impl Left {
    /// Whether a row group is still among them.
    fn has(&mut self, row_group: usize) -> Result<bool> {
        if self.moves.watcher().is_some_and(|moves| moves.changed())
            && let Some(pruning) = &self.wanted.pruning
        {
            let before = std::mem::take(&mut self.row_groups);
            let count = before.len();
            self.row_groups = may_meet(pruning, &self.wanted.schema, &self.table, before)?;
            assert!(self.row_groups.len() <= count, "row groups that a filter had ruled out came back");
        }
        debug_assert!(self.row_groups.is_sorted(), "row groups that are left stay in order: {:?}", self.row_groups);
        Ok(self.row_groups.binary_search(&row_group).is_ok())
    }
}

/// Opens files for one partition of a scan.
pub(super) struct Opener {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) tables: Tables,
    /// Whether bytes that have verified once come from what verifies them itself from then on.
    pub(super) of_tiers: bool,
    pub(super) wanted: Wanted,
    pub(super) batch_rows: usize,
    pub(super) row_groups_read: Count,
    pub(super) row_groups_pruned: Count,
    /// Those of the pruned ones that bloom filters ruled out.
    pub(super) row_groups_pruned_by_blooms: Count,
}

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, tables, wanted) = (Arc::clone(&self.store), self.tables.clone(), self.wanted.clone());
        let (batch_rows, of_tiers) = (self.batch_rows, self.of_tiers);
        let (read, pruned) = (self.row_groups_read.clone(), self.row_groups_pruned.clone());
        let pruned_by_blooms = self.row_groups_pruned_by_blooms.clone();
        Ok(Box::pin(async move {
            let meta = &file.object_meta;
            let Opened { table, verified } = tables.open(&store, meta).await?;
            let verified = if of_tiers { verified } else { Arc::new(Verified::none_of(&table)) };
            // Watched before it is looked at: what moves meanwhile is seen.
            let moves = wanted.pruning.as_ref().map_or(DynamicFilterTracking::Static, DynamicFilterTracking::classify);
            let reading = wanted.of(&table, file.range.as_ref())?;
            let Reading { columns, filter, row_groups, pruned: by_bounds } = reading;
            let candidates = row_groups.len();
            let row_groups = may_have(&store, &meta.location, &table, &wanted.keys(&table)?, row_groups).await?;
            assert!(row_groups.len() <= candidates, "blooms gave {} row groups of {candidates}", row_groups.len());
            pruned_by_blooms.add(candidates - row_groups.len());
            pruned.add(by_bounds + candidates - row_groups.len());
            let location = meta.location.clone();
            let mut left = Left { table: table.clone(), wanted, moves, row_groups: row_groups.clone() };
            let scan = Arc::new(FileScan { store, location, table, verified, columns, filter, batch_rows });
            let batches = stream::iter(row_groups)
                .map(move |row_group| {
                    let is_left = left.has(row_group);
                    match is_left {
                        Ok(false) => pruned.add(1),
                        _ => read.add(1),
                    }
                    let scan = Arc::clone(&scan);
                    async move { if is_left? { scan.read(row_group).await } else { Ok(scan.nothing()) } }
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
