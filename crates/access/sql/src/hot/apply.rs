use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;

use crate::hot::cells::Cells;
use crate::hot::source::HotSource;
use crate::paths::SCHEME;
use crate::prefetch::{config, parquet_source};

/// The same plan, whose scans of Parquet files below mounts look for decoded columns first.
pub(crate) fn apply(plan: Arc<dyn ExecutionPlan>, cells: &Cells, runtime: &Arc<RuntimeEnv>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let wrapped = config(&node).and_then(|config| {
            let source = parquet_source(config)?;
            let is_mount = config.object_store_url.as_str().starts_with(SCHEME);
            // With filters inside the reader, the reader does what a scan of decoded columns does not.
            let filters_inside = source.table_parquet_options().global.pushdown_filters;
            let plain = source.table_schema().virtual_columns().is_empty() && !filters_inside;
            if !is_mount || !plain || !cells.may_have(config) {
                return None;
            }
            let mut config = config.clone();
            config.file_source = Arc::new(HotSource::new(source.clone(), cells.clone(), Arc::clone(runtime)));
            let scan = node.downcast_ref::<DataSourceExec>()?.clone();
            Some(Arc::new(scan.with_data_source(Arc::new(config))) as Arc<dyn ExecutionPlan>)
        });
        Ok(match wrapped {
            Some(wrapped) => Transformed::yes(wrapped),
            None => Transformed::no(node),
        })
    })
    .data()
}
