//! What the engine's own readers will do for a scan, told from its plan: which files, rows and columns they read.

mod nan;
mod parquet;
mod told;

use std::any::Any;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use nan::with_nan;
pub(crate) use parquet::{Footer, Reading};

/// How much is told of what a scan may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What it most likely reads: for who brings it ahead, to whom a byte too many is worse than one that is read on demand.
    Likely,
    /// All that it may read.
    Whole,
}

/// The configuration of a scan of files.
pub(crate) fn config(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

/// The Parquet source of a scan.
pub(crate) fn parquet_source(config: &FileScanConfig) -> Option<&ParquetSource> {
    (config.file_source().as_ref() as &dyn Any).downcast_ref::<ParquetSource>()
}

/// The filters in a predicate that get their values while the query runs.
pub(crate) fn dynamic_filters(predicate: &Arc<dyn PhysicalExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    let mut filters = Vec::new();
    let _ = predicate.apply(|expr| {
        if expr.downcast_ref::<DynamicFilterPhysicalExpr>().is_some() {
            filters.push(Arc::clone(expr));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    filters
}
