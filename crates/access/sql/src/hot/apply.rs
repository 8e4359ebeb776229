use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::hot::cells::Cells;
use crate::hot::source::HotSource;
use crate::paths::SCHEME;
use crate::prefetch::{config, parquet_source};

/// The same plan, whose scans of Parquet files below mounts look for decoded columns first.
pub(crate) fn apply(plan: Arc<dyn ExecutionPlan>, cells: &Cells, runtime: &Arc<RuntimeEnv>) -> Result<Arc<dyn ExecutionPlan>> {
    let near = Arc::new(near(&plan));
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
            config.file_source = Arc::new(HotSource::new(source.clone(), cells.clone(), Arc::clone(runtime), Arc::clone(&near)));
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

/// The filters of joins that look up a scan's rows as they come.
fn near(plan: &Arc<dyn ExecutionPlan>) -> HashSet<u64> {
    let mut near = HashSet::new();
    let _ = plan.apply(|node| {
        if let Some(join) = node.downcast_ref::<HashJoinExec>()
            && is_scan(join.right())
        {
            near.extend(join.dynamic_expressions_produced().iter().filter_map(|filter| filter.expression_id()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    near
}

/// Whether a plan gives a scan's rows in the batches that the scan gives, or parts of these.
fn is_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes = plan.downcast_ref::<FilterExec>().is_some()
        || plan.downcast_ref::<ProjectionExec>().is_some()
        || plan.downcast_ref::<CooperativeExec>().is_some();
    config(plan).is_some() || (passes && plan.children().into_iter().all(is_scan))
}
