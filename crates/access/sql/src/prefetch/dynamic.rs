//! Decides whether a scan's ranges are fetched at once, after a join's filter has its values, or not ahead at all.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::arrow::{ProjectionMask, parquet_to_arrow_schema_by_columns};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::scalar::ScalarValue;

use crate::albis::TableInput;
use crate::scans::{Footer, dynamic_filters, parquet_source};

/// When a scan's ranges are worth fetching.
pub(crate) enum When {
    /// At once: what is known now is what will be read.
    Now,
    /// When these filters have got their values: they may leave little of the scan.
    After(Vec<Arc<dyn PhysicalExpr>>),
    /// Not ahead of the reader: a filter narrows while the scan runs.
    Never,
}

/// Rows of a join's build side above which its keys are taken to cover the probe side's whole range. A smaller build
/// side is read soon, so that waiting for it costs little, and it may leave nothing of the probe side, being empty; a
/// larger one takes long, and its filter rarely prunes. What is fetched for nothing then is at most the window.
const BUILD_ROWS_MANY: usize = 100_000;

/// Row groups looked at to see whether a column is clustered.
const GROUPS_MAX: usize = 256;

/// The filters that hash joins make while they run, with the rows that the build side is estimated to have.
pub(crate) fn join_filters(plan: &Arc<dyn ExecutionPlan>) -> HashMap<u64, Option<usize>> {
    let mut filters = HashMap::new();
    let statistics = StatisticsContext::new();
    let _ = plan.apply(|node| {
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            let rows = statistics.compute(join.left().as_ref(), &StatisticsArgs::new()).ok();
            let rows = rows.and_then(|statistics| statistics.num_rows.get_value().copied());
            let produced = join.dynamic_expressions_produced();
            filters.extend(produced.iter().filter_map(|filter| filter.expression_id()).map(|id| (id, rows)));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    filters
}

/// Decides for one scan. A join's filter is waited for when its build side is small. One that narrows while the scan
/// runs (of a TOP-K) can spare row groups only where its column is clustered in the file, row groups holding different
/// ranges of it; else all of them will be read, filter or not.
pub(crate) fn when(config: &FileScanConfig, runtime: &RuntimeEnv, joins: &HashMap<u64, Option<usize>>) -> When {
    let Some(predicate) = config.file_source().filter() else { return When::Now };
    let mut waiting = Vec::new();
    for filter in dynamic_filters(&predicate) {
        match filter.expression_id().and_then(|id| joins.get(&id)) {
            Some(Some(rows)) if *rows > BUILD_ROWS_MANY => {}
            Some(_) => waiting.push(filter),
            None if collect_columns(&filter).iter().any(|column| is_clustered(config, runtime, column.name())) => {
                return When::Never;
            }
            None => {}
        }
    }
    if waiting.is_empty() { When::Now } else { When::After(waiting) }
}

/// Waits until filters have their values.
pub(crate) async fn complete(filters: &[Arc<dyn PhysicalExpr>]) {
    for filter in filters {
        if let Some(filter) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
            filter.wait_complete().await;
        }
    }
}

/// Whether at least half of the neighbouring row groups of a scan's files hold ranges of the column that don't overlap.
fn is_clustered(config: &FileScanConfig, runtime: &RuntimeEnv, column: &str) -> bool {
    let tables = TableInput::of(config, runtime);
    if parquet_source(config).is_none() && tables.is_none() {
        return false;
    }
    let mut bounds: Vec<(ScalarValue, ScalarValue)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for file in config.file_groups.iter().flat_map(|group| group.files()) {
        if bounds.len() >= GROUPS_MAX || !seen.insert(&file.object_meta.location) {
            continue;
        }
        let known = match &tables {
            Some(tables) => tables.bounds(file, column),
            None => Footer::cached(runtime, &file.object_meta).and_then(|footer| of_file(&footer, column)),
        };
        bounds.extend(known.unwrap_or_default());
    }
    let pairs = bounds.windows(2);
    let count = pairs.len();
    let apart = pairs.filter(|pair| pair[0].1 < pair[1].0 || pair[1].1 < pair[0].0).count();
    count > 0 && apart * 2 >= count
}

fn of_file(footer: &Footer, column: &str) -> Option<Vec<(ScalarValue, ScalarValue)>> {
    let descriptor = footer.0.file_metadata().schema_descr();
    let leaf = descriptor.columns().iter().position(|leaf| leaf.path().parts() == [column])?;
    // As the file has the column: of a table's narrower decimals its bounds would be no values, which the library gives up at.
    let schema = parquet_to_arrow_schema_by_columns(descriptor, ProjectionMask::leaves(descriptor, [leaf]), None).ok()?;
    let converter = StatisticsConverter::from_column_index(leaf, schema.fields().first()?, descriptor).ok()?;
    let mins = converter.row_group_mins(footer.0.row_groups()).ok()?;
    let maxes = converter.row_group_maxes(footer.0.row_groups()).ok()?;
    let at = |row| Some((ScalarValue::try_from_array(&mins, row).ok()?, ScalarValue::try_from_array(&maxes, row).ok()?));
    (0..mins.len()).map(at).collect()
}
