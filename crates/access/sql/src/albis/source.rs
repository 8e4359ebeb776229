//! Table files as DataFusion's scan sees them: which projections and filters are taken over from the plan above.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::{collect_columns, conjunction_opt};
use datafusion::physical_expr::{DynamicFilterTracking, PhysicalExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use object_store::ObjectStore;

use super::metadata::Tables;
use super::open::{Opener, Wanted};
use crate::location::SCHEME;

/// Table files in a physical plan.
#[derive(Clone)]
pub(super) struct TableSource {
    schema: TableSchema,
    projection: SplitProjection,
    /// Evaluated on each row: what the files' columns and constants decide.
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    /// What only grows while the query runs (the bounds of a join or of the best rows so far): row groups are left out
    /// by it, as it stands when their turn comes; rows are not.
    moving: Option<Arc<dyn PhysicalExpr>>,
    batch_rows: usize,
    tables: Tables,
    metrics: ExecutionPlanMetricsSet,
}

impl TableSource {
    pub(super) fn new(schema: TableSchema) -> Self {
        Self {
            projection: SplitProjection::unprojected(&schema),
            schema,
            filter: None,
            moving: None,
            batch_rows: 8192,
            tables: Tables::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same, with the metadata that other queries have opened.
    pub(super) fn with_tables(mut self, tables: Tables) -> Self {
        self.tables = tables;
        self
    }

    /// The same, whose rows have to meet this.
    pub(super) fn with_row_filter(mut self, filter: Option<Arc<dyn PhysicalExpr>>) -> Self {
        self.filter = filter;
        self
    }

    /// What is read of files.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            schema: Arc::clone(self.schema.file_schema()),
            columns: self.projection.file_indices.clone(),
            filter: self.filter.clone(),
            pruning: self.all_filters(),
        }
    }

    fn all_filters(&self) -> Option<Arc<dyn PhysicalExpr>> {
        conjunction_opt(self.filter.iter().chain(&self.moving).cloned())
    }

    /// Whether the files' columns decide the filter.
    pub(super) fn decides(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let columns = self.schema.file_schema();
        !is_volatile(filter) && collect_columns(filter).iter().all(|column| columns.index_of(column.name()).is_ok())
    }
}

impl FileSource for TableSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let count = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let opener = Opener {
            store,
            tables: self.tables.clone(),
            // Tiers verify what they keep; what comes from a disk or a wire of its own has only the file's checksums.
            of_tiers: config.object_store_url.as_str().starts_with(SCHEME),
            wanted: self.wanted(),
            batch_rows: self.batch_rows,
            row_groups_read: count("row_groups_read"),
            row_groups_pruned: count("row_groups_pruned"),
            row_groups_pruned_by_blooms: count("row_groups_pruned_bloom_filter"),
        };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows: batch_size.max(1), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.all_filters()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "albis"
    }

    fn fmt_extra(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(filter) = self.all_filters() { write!(f, ", predicate={filter}") } else { Ok(()) }
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let mut source = self.clone();
        let mut answers = Vec::with_capacity(filters.len());
        for filter in filters {
            let moves = DynamicFilterTracking::classify(&filter).contains_dynamic_filter();
            answers.push(match self.decides(&filter) {
                true if moves => {
                    source.moving = conjunction_opt(source.moving.into_iter().chain([filter]));
                    PushedDown::No
                }
                true => {
                    source.filter = conjunction_opt(source.filter.into_iter().chain([filter]));
                    PushedDown::Yes
                }
                false => PushedDown::No,
            });
        }
        let source: Arc<dyn FileSource> = Arc::new(source);
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(answers).with_updated_node(source))
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(Some(Arc::new(Self { projection: SplitProjection::new(self.schema.file_schema(), &merged), ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let projected = self.projection.source.iter().map(|projected| &projected.expr);
        datafusion::physical_plan::apply_expression_roots(self.filter.iter().chain(&self.moving).chain(projected), f)
    }
}
