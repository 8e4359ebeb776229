//! Puts scans of decoded columns into a plan that is ready to run, where files below mounts may have them.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::hot::cells::{Cells, any_file};
use crate::hot::source::{HotSource, Of};
use crate::hot::text_scan::TextScan;
use crate::location::SCHEME;
use crate::scans::{config, parquet_source};

/// The same plan, whose scans of Parquet and text files below mounts look for decoded columns first.
pub(crate) fn apply(plan: Arc<dyn ExecutionPlan>, cells: &Cells, runtime: &Arc<RuntimeEnv>) -> Result<Arc<dyn ExecutionPlan>> {
    apply_to_part(at_chunks(plan, cells)?, cells, runtime)
}

/// The same plan, whose text files are cut where chunks begin. Who has others run its parts does this first, once for all of them: each
/// process may know something else of the mount, and of parts that were moved apart rows would be read twice or not at all.
pub(crate) fn at_chunks(plan: Arc<dyn ExecutionPlan>, cells: &Cells) -> Result<Arc<dyn ExecutionPlan>> {
    with_scans(plan, |config| {
        let scan = TextScan::of(config).filter(|scan| scan.may_have(config, cells))?;
        let mut config = config.clone();
        config.file_groups = scan.moved(&config.file_groups, cells);
        Some(config)
    })
}

/// The plan, or a part of it, with scans that look for decoded columns first; text files only where they are cut as chunks are.
pub(crate) fn apply_to_part(
    plan: Arc<dyn ExecutionPlan>,
    cells: &Cells,
    runtime: &Arc<RuntimeEnv>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let near = Arc::new(near(&plan));
    with_scans(plan, |config| match parquet_source(config) {
        Some(source) => of_parquet(config, source, cells, Of::Parquet(Arc::clone(runtime), Arc::clone(&near))),
        None => of_text(config, cells),
    })
}

/// A plan with other scans of files below mounts, where there are others.
fn with_scans(
    plan: Arc<dyn ExecutionPlan>,
    other: impl Fn(&FileScanConfig) -> Option<FileScanConfig>,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let of_mount = config(&node).filter(|config| config.object_store_url.as_str().starts_with(SCHEME));
        let changed = of_mount.and_then(|config| {
            let config = other(config)?;
            let scan = node.downcast_ref::<DataSourceExec>()?.clone();
            Some(Arc::new(scan.with_data_source(Arc::new(config))) as Arc<dyn ExecutionPlan>)
        });
        Ok(if let Some(changed) = changed { Transformed::yes(changed) } else { Transformed::no(node) })
    })
    .data()
}

fn of_parquet(config: &FileScanConfig, source: &ParquetSource, cells: &Cells, of: Of) -> Option<FileScanConfig> {
    // With filters inside the reader, the reader does what a scan of decoded columns does not.
    let filters_inside = source.table_parquet_options().global.pushdown_filters;
    let plain = source.table_schema().virtual_columns().is_empty() && !filters_inside;
    if !plain || !any_file(config, |file| cells.parquet(&file.object_meta).is_some()) {
        return None;
    }
    let mut config = config.clone();
    config.file_source = Arc::new(HotSource::new(config.file_source, cells.clone(), of));
    Some(config)
}

fn of_text(config: &FileScanConfig, cells: &Cells) -> Option<FileScanConfig> {
    let scan = TextScan::of(config).filter(|scan| scan.may_have(config, cells))?;
    let mut config = config.clone();
    config.file_source = Arc::new(HotSource::new(config.file_source, cells.clone(), Of::Text(Arc::new(scan))));
    Some(config)
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
