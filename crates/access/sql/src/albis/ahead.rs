//! What a scan will read of table files, told before it runs.

use std::ops::Range;
use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use forebay_table::Table;
use object_store::ObjectStore;

use super::metadata::Tables;
use super::source::TableSource;
use crate::paths::external;

/// Byte ranges of a file, a list a row group.
type RowGroups = Vec<Vec<Range<u64>>>;

/// A scan of table files, for who brings what it reads.
pub(crate) struct TableInput<'a> {
    source: &'a TableSource,
    tables: Tables,
}

impl<'a> TableInput<'a> {
    /// None for a scan of other files.
    pub(crate) fn of(scan: &'a FileScanConfig, runtime: &RuntimeEnv) -> Option<Self> {
        let source = scan.file_source().downcast_ref::<TableSource>()?;
        Some(Self { source, tables: Tables::cached(runtime.cache_manager.get_file_metadata_cache()) })
    }

    /// What will be read of a file; nothing of one whose metadata is not known yet.
    pub(crate) fn known(&self, file: &PartitionedFile) -> Result<RowGroups> {
        match self.tables.known(&file.object_meta) {
            Some(opened) => self.row_groups(file, &opened.table),
            None => Ok(Vec::new()),
        }
    }

    /// The same, for which the metadata is read where it is not known.
    pub(crate) async fn read(&self, store: &Arc<dyn ObjectStore>, file: &PartitionedFile) -> Result<RowGroups> {
        let opened = self.tables.open(store, &file.object_meta).await?;
        self.row_groups(file, &opened.table)
    }

    /// The cells of the columns that the filter and the query need, of the row groups that the filter leaves over: as the reader
    /// asks for them. Where no row passes it leaves the query's columns alone, which only the filter's can tell.
    fn row_groups(&self, file: &PartitionedFile, table: &Table) -> Result<RowGroups> {
        let reading = self.source.wanted().of(table, file.range.as_ref())?;
        let mut row_groups = Vec::with_capacity(reading.row_groups.len());
        for &row_group in &reading.row_groups {
            let mut ranges: Vec<Range<u64>> = Vec::new();
            for projection in reading.projections() {
                let plan = table.plan(row_group, projection).map_err(external)?;
                for range in plan.ranges() {
                    if !ranges.contains(&range) {
                        ranges.push(range);
                    }
                }
            }
            row_groups.push(ranges);
        }
        Ok(row_groups)
    }
}
