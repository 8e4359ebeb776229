//! Stands for DataFusion's source of files in a plan that runs, and differs from it only in where columns come from.

use std::any::Any;
use std::collections::HashSet;
use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::MetricBuilder;
use object_store::ObjectStore;

use crate::hot::cells::Cells;
use crate::hot::far::Far;
use crate::hot::raw::Raw;
use crate::hot::text_scan::TextScan;
use crate::hot::{parquet, text_opener};

/// A source of files that reads decoded columns where they are. Made when a plan is ready to run, so that no optimizer sees
/// it: all that it says of itself is what the engine's own source says.
#[derive(Clone)]
pub(super) struct HotSource {
    own: Arc<dyn FileSource>,
    cells: Cells,
    of: Of,
}

/// What a source reads.
#[derive(Clone)]
pub(super) enum Of {
    /// With the filters of joins that look up the scan's rows as they come.
    Parquet(Arc<RuntimeEnv>, Arc<HashSet<u64>>),
    Text(Arc<TextScan>),
}

impl HotSource {
    pub(super) fn new(own: Arc<dyn FileSource>, cells: Cells, of: Of) -> Self {
        Self { own, cells, of }
    }
}

impl FileSource for HotSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let (own, cells) = (&self.own, self.cells.clone());
        let counter = |name: &'static str| MetricBuilder::new(self.metrics()).counter(name, partition);
        match (&self.of, (own.as_ref() as &dyn Any).downcast_ref::<ParquetSource>()) {
            (Of::Parquet(runtime, near), Some(parquet)) => Ok(Arc::new(parquet::ParquetOpener::new(parquet::Opener {
                raw: Raw::new(own.create_morselizer(object_store, base_config, partition)?),
                config: base_config.clone(),
                parquet: parquet.clone(),
                far: cells.from_afar.then(|| Far::new(counter)),
                cells,
                runtime: Arc::clone(runtime),
                near: Arc::clone(near),
                decoded: counter("row_groups_decoded"),
                dropped: counter("decoded_rows_dropped"),
            }))),
            (Of::Text(scan), _) => Ok(Arc::new(text_opener::TextOpener::new(text_opener::Opener {
                raw: own.create_file_opener(object_store, base_config, partition)?,
                scan: Arc::clone(scan),
                file_schema: Arc::clone(own.table_schema().file_schema()),
                far: cells.from_afar.then(|| Far::new(counter)),
                cells,
                has_limit: base_config.limit.is_some(),
                decoded: counter("chunks_decoded"),
            }))),
            _ => own.create_file_opener(object_store, base_config, partition),
        }
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { own: self.own.with_batch_size(batch_size), ..self.clone() })
    }

    forebay_types::handed_on! {
        [own]
        fn filter(&self) -> Option<Arc<dyn PhysicalExpr>>;
        fn fmt_extra(&self, t: DisplayFormatType, f: &mut Formatter) -> fmt::Result;
        fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile>;
    }

    crate::plan_nodes::as_own_source!(own);
}
