//! What the engine's Parquet reader will do with a file: its footer, and which rows and columns are read.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::{CachedParquetMetaData, DFParquetMetadata};
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetFileMetrics, RowGroupAccessPlanFilter,
    apply_file_schema_type_coercions,
};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use object_store::{ObjectMeta, ObjectStore};

use super::nan::with_nan;
use super::told::known;
use crate::settings::FOOTER_HINT_BYTES;

/// A file's footer, as planning has left it in the cache.
pub(crate) struct Footer(pub(crate) Arc<ParquetMetaData>);

impl Footer {
    pub(crate) fn cached(runtime: &RuntimeEnv, meta: &ObjectMeta) -> Option<Self> {
        let cached = runtime.cache_manager.get_file_metadata_cache().get(&meta.location)?;
        if !cached.is_valid_for(meta) {
            return None;
        }
        // The engine has two types of this name; its cache holds the one of `metadata`.
        let footer = cached.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()?;
        Some(Self(Arc::clone(footer.parquet_metadata())))
    }

    /// Reads it, for the cache as well.
    pub(crate) async fn read(runtime: &RuntimeEnv, store: &dyn ObjectStore, meta: &ObjectMeta) -> Result<Self> {
        let read = DFParquetMetadata::new(store, meta)
            .with_metadata_size_hint(Some(FOOTER_HINT_BYTES))
            .with_file_metadata_cache(Some(runtime.cache_manager.get_file_metadata_cache()));
        let read = read.fetch_metadata().await?;
        // What is kept of it was made to hold of NaN.
        let read = Self::cached(runtime, meta).map_or(read, |kept| kept.0);
        Ok(Self(with_nan(read)?))
    }

    /// What the optimizer is to know of a file whose table has these columns.
    pub(crate) fn statistics(&self, schema: &SchemaRef) -> Result<Statistics> {
        let found = DFParquetMetadata::statistics_from_parquet_metadata(&self.0, schema)?;
        Ok(known(found, schema, &self.0))
    }

    /// Whether it has a page index, and where pages are.
    pub(crate) fn has_pages(&self) -> bool {
        self.0.column_index().is_some() && self.0.offset_index().is_some()
    }
}

/// How the engine's own reader will read a file: follows its steps with its own functions, since every byte that differs is
/// fetched for nothing, and every row that differs is wrong.
pub(crate) struct Reading {
    /// The file's columns with the types that the reader gives them.
    pub(crate) physical: SchemaRef,
    /// Of the file's columns.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Of the file's columns; none for all of them.
    pub(crate) projection: Option<ProjectionExprs>,
    /// The row groups (and pages, where the file has a page index) that the predicate leaves over.
    pub(crate) access: ParquetAccessPlan,
}

impl Reading {
    pub(crate) fn of(config: &FileScanConfig, source: &ParquetSource, file: &PartitionedFile, footer: &Footer) -> Result<Self> {
        let file_name = file.object_meta.location.to_string();
        let options = &source.table_parquet_options().global;
        let metadata = &footer.0;
        let logical = Arc::clone(source.table_schema().file_schema());
        let reader = ArrowReaderMetadata::try_new(Arc::clone(metadata), ArrowReaderOptions::new())?;
        let physical = match apply_file_schema_type_coercions(&logical, reader.schema()) {
            Some(coerced) => Arc::new(coerced),
            None => Arc::clone(reader.schema()),
        };

        let literals = literals(source, file, &logical);
        let adapter = match &config.expr_adapter_factory {
            Some(factory) => factory.create(Arc::clone(&logical), Arc::clone(&physical))?,
            None => DefaultPhysicalExprAdapterFactory.create(Arc::clone(&logical), Arc::clone(&physical))?,
        };
        let of_file = |expr: Arc<dyn PhysicalExpr>| -> Result<Arc<dyn PhysicalExpr>> {
            let expr = replace_columns_with_literals(expr, &literals)?;
            PhysicalExprSimplifier::new(&physical).simplify(adapter.rewrite(expr)?)
        };
        let predicate = source.filter().map(of_file).transpose()?;
        let projection = source.projection().map(|projection| projection.clone().try_map_exprs(of_file)).transpose()?;

        let mut groups = RowGroupAccessPlanFilter::new(ParquetAccessPlan::new_all(metadata.num_row_groups()));
        if let Some(range) = &file.range {
            groups.prune_by_range(metadata.row_groups(), range);
        }
        let metrics = ParquetFileMetrics::new(0, &file_name, &ExecutionPlanMetricsSet::new());
        let descriptor = metadata.file_metadata().schema_descr();
        if let Some(predicate) = &predicate
            && options.pruning
        {
            let pruning = PruningPredicateBuilder::new()
                .with_file_schema(Arc::clone(&physical))
                .with_error_counter(&Count::new())
                .with_max_in_list_size(source.max_in_list_size())
                .build(Arc::clone(predicate));
            if let Some(pruning) = pruning {
                groups.prune_by_statistics(&physical, descriptor, metadata.row_groups(), &pruning, &metrics);
            }
        }
        let mut access = groups.build();
        if let Some(predicate) = &predicate
            && options.enable_page_index
            && footer.has_pages()
        {
            let pages = PagePruningAccessPlanFilter::new(predicate, Arc::clone(&physical));
            if pages.filter_number() > 0 {
                access = pages.prune_plan_with_page_index(access, &physical, descriptor, metadata, &metrics);
            }
        }
        Ok(Self { physical, predicate, projection, access })
    }
}

/// Columns of which the file has only one value, which the reader therefore does not read: the partition's, and those
/// whose statistics say so.
fn literals(source: &ParquetSource, file: &PartitionedFile, logical: &SchemaRef) -> HashMap<String, ScalarValue> {
    let partitions = source.table_schema().table_partition_cols();
    let mut literals: HashMap<String, ScalarValue> =
        partitions.iter().zip(&file.partition_values).map(|(field, value)| (field.name().clone(), value.clone())).collect();
    if let Some(statistics) = file.statistics.as_deref() {
        literals.extend(constants(statistics, logical));
    }
    literals
}

fn constants(statistics: &Statistics, logical: &SchemaRef) -> Vec<(String, ScalarValue)> {
    let columns = statistics.column_statistics.iter().zip(logical.fields());
    columns
        .filter_map(|(column, field)| {
            let value = match (&column.min_value, &column.max_value, &column.null_count) {
                (Precision::Exact(min), Precision::Exact(max), Precision::Exact(0)) if min == max && !min.is_null() => {
                    min.cast_to(field.data_type()).ok()?
                }
                (_, _, Precision::Exact(nulls)) if statistics.num_rows == Precision::Exact(*nulls) => {
                    ScalarValue::try_new_null(field.data_type()).ok()?
                }
                _ => return None,
            };
            Some((field.name().clone(), value))
        })
        .collect()
}
