//! The engine's sources of Arrow and Avro files, whose files are opened under guard.

use std::fmt;
use std::sync::Arc;

use datafusion::datasource::physical_plan::{
    ArrowSource, AvroSource, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use object_store::ObjectStore;

use super::arrow::{ArrowOpener, Asked};
use super::avro::AvroOpener;
use super::decoded_bytes_max;
use crate::scans::config;

/// The engine's source, for all but opening its files. It has no serialised form, so that none is read without the guard: who
/// sends plans sends the [bare scan](bare_scan) and [guards](guarded_scan) it where it comes to.
pub(super) struct GuardedSource {
    own: Arc<dyn FileSource>,
    decoded_bytes_max: u64,
    batch_rows: usize,
}

impl GuardedSource {
    pub(super) fn over(own: Arc<dyn FileSource>, decoded_bytes_max: u64) -> Arc<dyn FileSource> {
        Arc::new(Self { own, decoded_bytes_max, batch_rows: 8_192 })
    }
}

/// A scan of Arrow or Avro files as the engine has it, of one that is guarded; none of any other node.
pub fn bare_scan(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = config(node)?;
    let own = Arc::clone(&scan.file_source().downcast_ref::<GuardedSource>()?.own);
    Some(DataSourceExec::from_data_source(FileScanConfigBuilder::from(scan.clone()).with_source(own).build()))
}

/// A [bare scan](bare_scan) under guard again, where it is to run.
pub fn guarded_scan(scan: Arc<dyn ExecutionPlan>, context: &TaskContext) -> Arc<dyn ExecutionPlan> {
    guarded_of(scan, decoded_bytes_max(&context.runtime_env()))
}

pub(super) fn guarded_of(node: Arc<dyn ExecutionPlan>, decoded_bytes_max: u64) -> Arc<dyn ExecutionPlan> {
    let Some(scan) = config(&node) else { return node };
    let source = scan.file_source();
    let own = match source.downcast_ref::<GuardedSource>() {
        Some(guarded) => Arc::clone(&guarded.own),
        None if source.is::<ArrowSource>() || source.is::<AvroSource>() => Arc::clone(source),
        None => return node,
    };
    let source = GuardedSource::over(own, decoded_bytes_max);
    DataSourceExec::from_data_source(FileScanConfigBuilder::from(scan.clone()).with_source(source).build())
}

impl FileSource for GuardedSource {
    fn create_file_opener(&self, store: Arc<dyn ObjectStore>, _: &FileScanConfig, _: usize) -> Result<Arc<dyn FileOpener>> {
        let table = self.own.table_schema();
        let projection = match self.own.projection() {
            Some(projection) => SplitProjection::new(table.file_schema(), projection),
            None => SplitProjection::unprojected(table),
        };
        let (columns, decoded_bytes_max) = (projection.file_indices.clone(), self.decoded_bytes_max);
        let opener: Arc<dyn FileOpener> = match self.own.is::<AvroSource>() {
            true => Arc::new(AvroOpener::new(store, table.file_schema(), &columns, self.batch_rows, decoded_bytes_max)),
            false => {
                let fields = table.file_schema().fields();
                let fields = columns.iter().filter_map(|place| fields.get(*place).cloned()).collect();
                Arc::new(ArrowOpener { store, asked: Asked { places: columns, fields }, decoded_bytes_max })
            }
        };
        ProjectionOpener::try_new(projection, opener, table.file_schema())
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let own = self.own.with_batch_size(batch_size);
        Arc::new(Self { own, batch_rows: batch_size.max(1), ..*self })
    }

    forebay_types::handed_on! {
        [own]
        fn fmt_extra(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result;
        fn supports_repartitioning(&self) -> bool;
        fn repartitioned(
            &self,
            partitions: usize,
            file_bytes_min: usize,
            ordering: Option<LexOrdering>,
            scan: &FileScanConfig
        ) -> Result<Option<FileScanConfig>>;
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let own = self.own.try_pushdown_projection(projection)?;
        Ok(own.map(|own| Arc::new(Self { own, ..*self }) as Arc<dyn FileSource>))
    }

    crate::plan_nodes::as_own_source!(own);
}
