//! CSV files whose columns are found by what their first lines call them: the engine's reader takes them by their places in the first
//! file, and where they stand in another order it swaps them without a word.

mod layout;
mod lines;
mod read;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::CsvOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Constraints, ScalarValue, Statistics};
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{DEFAULT_SCHEMA_INFER_MAX_RECORD, FileFormat};
use datafusion::datasource::physical_plan::{
    CsvSource, FileGroup, FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexRequirement, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::union::UnionExec;
use forebay_types::Error;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use parking_lot::Mutex;

use self::layout::{Layout, Names, check_akin, check_distinct, distinct, further, is_renamed, layouts};
use self::lines::lines;
use self::read::header;
use crate::error::external;
use crate::location::shown;

/// First lines that are read at once.
const AT_ONCE: usize = 64;
/// Files whose first lines are remembered of a table.
const REMEMBERED_MAX: usize = 1 << 16;

/// Who has named a table's columns.
#[derive(Clone, Debug)]
pub(super) enum NamedBy {
    /// Its files.
    Files,
    /// Who declared it; and its first file, if there is one.
    Declaration(Option<ObjectMeta>),
}

/// A reader of CSV that finds columns by their names in place of the engine's, any other as it is.
pub(super) fn by_name(reader: Arc<dyn FileFormat>, named_by: NamedBy) -> Arc<dyn FileFormat> {
    let options = (reader.as_ref() as &dyn Any).downcast_ref::<CsvFormat>().map(|csv| csv.options().clone());
    match options {
        Some(options) => {
            let (options, breaks) = (Arc::new(options), AtomicBool::new(false));
            Arc::new(ByName { reader, options, named_by, known: Mutex::default(), breaks })
        }
        None => reader,
    }
}

/// The engine's format, whose scans have a part for each order of columns.
#[derive(Debug)]
struct ByName {
    reader: Arc<dyn FileFormat>,
    options: Arc<CsvOptions>,
    named_by: NamedBy,
    /// What was read of which version of a file.
    known: Mutex<HashMap<Path, (ObjectMeta, Names)>>,
    /// Whether a value was seen that goes on after the end of a line.
    breaks: AtomicBool,
}

impl ByName {
    fn has_header(&self, state: &dyn Session) -> bool {
        self.options.has_header.unwrap_or_else(|| state.config_options().catalog.has_header)
    }

    /// What the engine finds in the first rows of some files.
    async fn found(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, objects: &[ObjectMeta]) -> Result<SchemaRef> {
        let csv = CsvFormat::default().with_options(self.options.as_ref().clone());
        let mut left = self.options.schema_infer_max_rec.unwrap_or(DEFAULT_SCHEMA_INFER_MAX_RECORD);
        let mut schemas = Vec::new();
        for object in objects {
            let rows = lines(store, object, &self.options, &self.breaks).await?;
            let (schema, rows) = csv.infer_schema_from_stream(state, left, rows).await?;
            if self.has_header(state) {
                check_distinct(schema.fields()).map_err(external)?;
            }
            schemas.push(schema);
            left = left.saturating_sub(rows);
            if left == 0 {
                break;
            }
        }
        Ok(Arc::new(Schema::try_merge(schemas)?))
    }

    /// The engine's reader. Files with values that go on after the end of a line it would cut there for several readers, as if they ended.
    fn reader(&self) -> Arc<dyn FileFormat> {
        match self.options.newlines_in_values.is_none() && self.breaks.load(Ordering::Relaxed) {
            true => {
                let whole = CsvOptions { newlines_in_values: Some(true), ..self.options.as_ref().clone() };
                Arc::new(CsvFormat::default().with_options(whole))
            }
            false => Arc::clone(&self.reader),
        }
    }

    /// The first lines of some files, each read once.
    async fn headers(&self, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<Vec<Names>> {
        let known: Vec<Option<Names>> = {
            let known = self.known.lock();
            let of = |file: &ObjectMeta| known.get(&file.location).filter(|(meta, _)| meta == file);
            files.iter().map(|file| of(file).map(|(_, names)| Arc::clone(names))).collect()
        };
        let mut asked = Vec::new();
        for (file, known) in files.iter().zip(&known) {
            if known.is_none() {
                asked.push(header(Arc::clone(store), Arc::clone(&self.options), file.clone()));
            }
        }
        // Of lines that are the same one is kept: there may be many files, and many columns.
        let mut lines: HashSet<Names> = known.iter().flatten().cloned().collect();
        let mut read = stream::iter(asked).buffered(AT_ONCE);
        let mut found = Vec::with_capacity(files.len());
        for known in known {
            let names = match known {
                Some(names) => names,
                None => {
                    let (names, breaks) = read.try_next().await?.unwrap_or_default();
                    self.breaks.fetch_or(breaks, Ordering::Relaxed);
                    Arc::new(names)
                }
            };
            match lines.get(&names) {
                Some(same) => found.push(Arc::clone(same)),
                None => {
                    lines.insert(Arc::clone(&names));
                    found.push(names);
                }
            }
        }
        self.remember(files, &found);
        Ok(found)
    }

    fn remember(&self, files: &[ObjectMeta], names: &[Names]) {
        debug_assert_eq!(files.len(), names.len(), "each file has its names");
        let mut known = self.known.lock();
        if known.len() + files.len() > REMEMBERED_MAX {
            known.clear();
        }
        for (file, names) in files.iter().zip(names).take(REMEMBERED_MAX) {
            known.insert(file.location.clone(), (file.clone(), Arc::clone(names)));
        }
    }

    /// The columns of all files, in the order of the first one that has them.
    async fn all_columns(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, objects: &[ObjectMeta]) -> Result<SchemaRef> {
        let found = self.found(state, store, objects).await?;
        if !self.has_header(state) {
            return Ok(found);
        }
        if let [_] = objects {
            let names = found.fields().iter().map(|field| field.name().clone()).collect();
            self.remember(objects, &[Arc::new(names)]);
            return Ok(found);
        }
        let headers = self.headers(store, objects).await?;
        let mut seen = HashSet::new();
        let (objects, lines): (Vec<&ObjectMeta>, Vec<Names>) =
            objects.iter().zip(headers).filter(|(_, names)| seen.insert(Arc::clone(names))).unzip();
        check_akin(&objects.iter().map(|object| &object.location).zip(&lines).collect::<Vec<_>>()).map_err(external)?;
        let mut fields = distinct(found.fields(), &lines);
        for (object, names) in objects.into_iter().zip(&lines) {
            let further = further(&fields, names);
            if further.is_empty() {
                continue;
            }
            // The engine has looked at the first thousand rows.
            let more = self.found(state, store, slice::from_ref(object)).await?;
            fields.extend(more.fields().iter().filter(|field| further.contains(field.name())).cloned());
        }
        Ok(Arc::new(Schema::new_with_metadata(fields, found.metadata().clone())))
    }

    /// The first line of the table's first file, whichever files a scan has, where who declared the table may have renamed its columns.
    async fn first_line(&self, store: &Arc<dyn ObjectStore>) -> Result<Option<Names>> {
        let NamedBy::Declaration(Some(first)) = &self.named_by else { return Ok(None) };
        match self.headers(store, slice::from_ref(first)).await {
            Ok(lines) => Ok(lines.into_iter().next()),
            // A view may know of files that are gone.
            Err(DataFusionError::ObjectStore(error)) if matches!(*error, object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The scan of the files of one order of columns, with the columns of the whole scan.
    async fn part(&self, state: &dyn Session, scan: &FileScanConfig, layout: &Layout) -> Result<Arc<dyn ExecutionPlan>> {
        let table = scan.file_source.table_schema();
        let own = Arc::new(layout.schema(table.file_schema()));
        let partitions = table.table_partition_cols().iter().cloned();
        let table = TableSchema::builder(own).with_table_partition_cols(partitions.collect::<Vec<_>>()).build();
        let mut groups = Vec::new();
        for group in &scan.file_groups {
            let files = group.files().iter().filter(|file| layout.files.contains(&file.object_meta.location));
            let mut files: Vec<_> = files.cloned().collect();
            // By the places of the table's columns.
            files.iter_mut().for_each(|file| file.statistics = None);
            if !files.is_empty() {
                groups.push(FileGroup::new(files));
            }
        }
        // What is known of the scan's columns is not of those of its files.
        let config = FileScanConfigBuilder::from(scan.clone())
            .with_statistics(Statistics::new_unknown(table.table_schema()))
            .with_source(Arc::new(CsvSource::new(table)))
            .with_file_groups(groups)
            .with_constraints(Constraints::default())
            .with_output_ordering(Vec::new())
            .with_output_partitioning(None)
            .build();
        let projected = projected(scan, layout)?;
        let plan = self.reader().create_physical_plan(state, config).await?;
        Ok(Arc::new(ProjectionExec::try_new(projected, plan)?))
    }
}

/// The same, with text for columns that had no value in the rows that the engine has looked at: it would take all later ones for nulls.
fn with_values(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// What a scan gives, of the columns where one order has them.
fn projected(scan: &FileScanConfig, layout: &Layout) -> Result<Vec<ProjectionExpr>> {
    let file = Arc::clone(scan.file_source.table_schema().file_schema());
    let own = layout.schema(&file);
    let places = &layout.places;
    debug_assert_eq!(places.len(), file.fields().len(), "an order says where each column of the table is");
    let moved = |expression: Arc<dyn PhysicalExpr>| {
        let column = expression.downcast_ref::<Column>().map(|column| (column.name().to_string(), column.index()));
        let Some((name, index)) = column else { return Ok(Transformed::no(expression)) };
        let moved: Arc<dyn PhysicalExpr> = match (file.fields().get(index), places.get(index)) {
            (Some(_), Some(Some(place))) => Arc::new(Column::new(&name, *place)),
            (Some(field), _) if field.is_nullable() => Arc::new(Literal::new(ScalarValue::try_new_null(field.data_type())?)),
            (Some(_), _) => {
                let file = layout.files.iter().min().map(|path| shown(path.as_ref())).unwrap_or_default();
                return Err(external(Error::invalid(format!(
                    "{file} has no column '{name}', which is declared NOT NULL: declare it without, or leave the file out with a pattern"
                ))));
            }
            // Partition columns come after those of the file.
            (None, _) => Arc::new(Column::new(&name, index - file.fields().len() + own.fields().len())),
        };
        Ok(Transformed::yes(moved))
    };
    let of = |each: &ProjectionExpr| {
        let expression = Arc::clone(&each.expr).transform_up(moved).data()?;
        Ok(ProjectionExpr::new(expression, each.alias.clone()))
    };
    match scan.file_source.projection() {
        Some(projection) => projection.iter().map(of).collect(),
        None => {
            let all: Vec<usize> = (0..scan.file_source.table_schema().table_schema().fields().len()).collect();
            let all = ProjectionExprs::from_indices(&all, scan.file_source.table_schema().table_schema());
            all.iter().map(of).collect()
        }
    }
}

#[async_trait]
impl FileFormat for ByName {
    crate::plan_nodes::names_of_own!(reader);

    async fn infer_schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, objects: &[ObjectMeta]) -> Result<SchemaRef> {
        let found = self.all_columns(state, store, objects).await?;
        // A row has a byte or more, and another one ends it.
        let rows = self.options.schema_infer_max_rec.unwrap_or(DEFAULT_SCHEMA_INFER_MAX_RECORD) as u64;
        let bytes: u64 = objects.iter().map(|object| object.size).sum();
        let is_all_seen = bytes <= rows.saturating_mul(2) && !FileCompressionType::from(self.options.compression).is_compressed();
        Ok(if is_all_seen { found } else { with_values(&found) })
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.reader.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(&self, state: &dyn Session, scan: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.has_header(state) {
            let files = scan.file_groups.iter().flat_map(FileGroup::files).map(|file| &file.object_meta);
            let first = files.filter(|meta| meta.size > 0).min_by(|a, b| a.location.cmp(&b.location));
            if let (NamedBy::Declaration(_), Some(first)) = (&self.named_by, first) {
                let store = state.runtime_env().object_store(&scan.object_store_url)?;
                // Nobody has looked for values yet that go on after the end of a line. Why it can't be read, who reads its rows says.
                drop(self.headers(&store, slice::from_ref(first)).await);
            }
            return self.reader().create_physical_plan(state, scan).await;
        }
        let files: Vec<_> = scan.file_groups.iter().flat_map(FileGroup::files).map(|file| file.object_meta.clone()).collect();
        let store = state.runtime_env().object_store(&scan.object_store_url)?;
        let headers = self.headers(&store, &files).await?;
        let first = match &self.named_by {
            NamedBy::Files => None,
            NamedBy::Declaration(_) => {
                let line = self.first_line(&store).await?;
                let of_scan = files.iter().zip(&headers).min_by(|(a, _), (b, _)| a.location.cmp(&b.location));
                let line = line.or_else(|| of_scan.map(|(_, names)| Arc::clone(names)));
                // A column of the folders that is one of the files as well is not another one's new name.
                let partitions = scan.file_source.table_schema().table_partition_cols();
                line.filter(|names| !partitions.iter().any(|field| names.contains(field.name())))
            }
        };
        let named: Vec<_> = files.into_iter().map(|file| file.location).zip(headers).collect();
        let table = scan.file_source.table_schema().file_schema();
        let columns: Vec<_> = table.fields().iter().map(|field| field.name().clone()).collect();
        let shorter = self.options.truncated_rows.unwrap_or(false);
        let Some(layouts) = layouts(&columns, first.as_deref().map(Vec::as_slice), &named, shorter).map_err(external)? else {
            return self.reader().create_physical_plan(state, scan).await;
        };
        let mut parts = Vec::with_capacity(layouts.len());
        for layout in &layouts {
            parts.push(self.part(state, &scan, layout).await?);
        }
        UnionExec::try_new(parts)
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.has_header(state)
            && let Some(line) = self.first_line(&state.runtime_env().object_store(&conf.object_store_url)?).await?
        {
            let is_partition = |name: &String| conf.table_partition_cols.iter().any(|(known, _)| known == name);
            let names = conf.output_schema().fields().iter().map(|field| field.name().clone());
            let columns: Vec<_> = names.filter(|name| !is_partition(name)).collect();
            if is_renamed(&columns, &line) {
                return Err(external(Error::invalid(format!(
                    "the columns of this table have other names than its files, '{}', and INSERT would write another file with the table's: \
                     declare it with the names that stand in the files",
                    line.join("', '")
                ))));
            }
        }
        self.reader.create_writer_physical_plan(input, state, conf, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.reader.file_source(table_schema)
    }
}
