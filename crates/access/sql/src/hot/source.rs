use std::collections::HashSet;
use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use object_store::ObjectStore;

use crate::hot::cells::Cells;
use crate::hot::opener::{HotOpener, Opener};
use crate::hot::raw::Raw;

/// A Parquet source that reads decoded columns where they are. Made when a plan is ready to run, so that no optimizer sees
/// it: all that it says of itself is what the Parquet source says.
#[derive(Clone)]
pub(super) struct HotSource {
    parquet: ParquetSource,
    cells: Cells,
    runtime: Arc<RuntimeEnv>,
    near: Arc<HashSet<u64>>,
}

impl HotSource {
    pub(super) fn new(parquet: ParquetSource, cells: Cells, runtime: Arc<RuntimeEnv>, near: Arc<HashSet<u64>>) -> Self {
        Self { parquet, cells, runtime, near }
    }
}

impl FileSource for HotSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let raw = Raw::new(self.parquet.create_morselizer(object_store, base_config, partition)?);
        Ok(Arc::new(HotOpener::new(Opener {
            raw,
            config: base_config.clone(),
            parquet: self.parquet.clone(),
            cells: self.cells.clone(),
            runtime: Arc::clone(&self.runtime),
            near: Arc::clone(&self.near),
            decoded: MetricBuilder::new(self.metrics()).counter("row_groups_decoded", partition),
            dropped: MetricBuilder::new(self.metrics()).counter("decoded_rows_dropped", partition),
        })))
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let sized = self.parquet.with_batch_size(batch_size);
        match sized.downcast_ref::<ParquetSource>() {
            Some(parquet) => Arc::new(Self { parquet: parquet.clone(), ..self.clone() }),
            None => sized,
        }
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        self.parquet.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut Formatter) -> fmt::Result {
        self.parquet.fmt_extra(t, f)
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.parquet.reorder_files(files)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.parquet.apply_expressions(f)
    }
}
