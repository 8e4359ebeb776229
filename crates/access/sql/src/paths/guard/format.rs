//! The engine's formats of Arrow, Avro and Parquet files, whose files are read under guard.

use std::any::Any;
use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::avro::AvroFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::physical_plan::parquet::metadata::ordering_from_parquet_metadata;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore};

use super::decoded_bytes_max;
use super::source::{GuardedSource, guarded_of};
use super::{arrow, avro, names, parquet};
use crate::rules::{is_somewhere_required, of_one_file, somewhere_required};
use crate::scans::Footer;
use crate::sinks::{ArrowFiles, ArrowSink};

/// Footers of Parquet files that are read at once.
const AT_ONCE: usize = 32;

/// Makes the format of Arrow files.
#[derive(Debug)]
pub(crate) struct ArrowFormatFactory;

impl GetExt for ArrowFormatFactory {
    fn get_ext(&self) -> String {
        "arrow".to_string()
    }
}

impl FileFormatFactory for ArrowFormatFactory {
    fn create(&self, _: &dyn Session, _: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        Ok(self.default())
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        guarded(Arc::new(ArrowFormat))
    }
}

/// A reader of Arrow, Avro or Parquet files under guard in place of the engine's, any other as it is.
pub(in crate::paths) fn guarded(reader: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    let any = reader.as_ref() as &dyn Any;
    match any.is::<ArrowFormat>() || any.is::<AvroFormat>() || any.is::<ParquetFormat>() {
        true => Arc::new(Guarded(reader)),
        false => reader,
    }
}

/// The common schema of Arrow or Avro files, which are read for it under guard; none of another format. A file that can't be read is
/// named.
pub(in crate::paths) async fn schema(
    state: &dyn Session,
    format: &dyn FileFormat,
    store: &Arc<dyn ObjectStore>,
    files: &[ObjectMeta],
) -> Result<Option<SchemaRef>> {
    match (format as &dyn Any).downcast_ref::<Guarded>() {
        Some(guarded) if !guarded.is_parquet() => guarded.schema(state, store, files).await.map(Some),
        _ => Ok(None),
    }
}

/// The schema that somebody has declared of Parquet files, in which what these always have in a struct is told from other fields; any other
/// as it is. Of files whose columns don't go together as they are, all fields are told.
pub(in crate::paths) async fn with_required(
    state: &dyn Session,
    format: &dyn FileFormat,
    store: &Arc<dyn ObjectStore>,
    files: &[ObjectMeta],
    declared: SchemaRef,
) -> SchemaRef {
    let has_structs = declared.fields().iter().any(|field| has_structs(field.data_type()));
    let parquet = (format as &dyn Any).downcast_ref::<Guarded>().filter(|guarded| has_structs && guarded.is_parquet());
    let Some(parquet) = parquet else { return declared };
    let files: Vec<ObjectMeta> = files.iter().filter(|file| file.size > 0).cloned().collect();
    if files.is_empty() {
        return declared;
    }
    // Why they can't be read says who reads their rows.
    let found = parquet.infer_schema(state, store, &files).await.ok();
    let fields = declared.fields().iter().map(|field| match &found {
        Some(found) => match found.field_with_name(field.name()) {
            Ok(found) => Arc::new(with_required_of(field, found)),
            Err(_) => Arc::clone(field),
        },
        None => Arc::new(with_required_of(field, &required(field))),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), declared.metadata().clone()))
}

/// Whether values are structs, or lists of such.
fn has_structs(kind: &DataType) -> bool {
    match kind {
        DataType::Struct(_) => true,
        DataType::List(item) => has_structs(item.data_type()),
        _ => false,
    }
}

fn with_required_of(declared: &Field, found: &Field) -> Field {
    let kind = match (declared.data_type(), found.data_type()) {
        (DataType::Struct(fields), DataType::Struct(found)) => {
            let fields = fields.iter().map(|field| match found.find(field.name()) {
                Some((_, found)) => {
                    let own = with_required_of(field, found);
                    Arc::new(if field.is_nullable() && is_somewhere_required(found) { somewhere_required(own) } else { own })
                }
                None => Arc::clone(field),
            });
            DataType::Struct(fields.collect())
        }
        (DataType::List(item), DataType::List(found)) => DataType::List(Arc::new(with_required_of(item, found))),
        _ => return declared.clone(),
    };
    declared.clone().with_data_type(kind)
}

/// A field with all that its structs have as if they always had it.
fn required(field: &Field) -> Field {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| Arc::new(required(field))).collect()),
        DataType::List(item) => DataType::List(Arc::new(required(item))),
        other => other.clone(),
    };
    field.clone().with_data_type(kind).with_nullable(false)
}

/// Columns of files, and of how many in a row: a folder may have very many, mostly with the same.
type Schemas = Vec<(SchemaRef, usize)>;

fn add(schemas: &mut Schemas, schema: SchemaRef) {
    match schemas.last_mut() {
        Some((last, files)) if *last == schema => *files += 1,
        _ => schemas.push((schema, 1)),
    }
}

/// The columns of all files. One that is in some of them only is null in others, whatever those say that have it.
fn merged(schemas: &[(SchemaRef, usize)]) -> Result<Schema> {
    let whole = Schema::try_merge(schemas.iter().map(|(schema, _)| schema.as_ref().clone()))?;
    let all: usize = schemas.iter().map(|(_, files)| *files).sum();
    let mut files_with = HashMap::<&str, usize>::new();
    for (schema, files) in schemas {
        for field in schema.fields() {
            *files_with.entry(field.name()).or_default() += *files;
        }
    }
    let fields = whole.fields().iter().map(|field| {
        let lacks = files_with.get(field.name().as_str()).is_none_or(|files| *files < all);
        let found = schemas.iter().filter_map(|(schema, _)| schema.field_with_name(field.name()).ok());
        match field.data_type() {
            kind if has_structs(kind) => {
                Arc::new(within(field, &found.collect::<Vec<_>>()).with_nullable(lacks || field.is_nullable()))
            }
            _ if lacks => Arc::new(field.as_ref().clone().with_nullable(true)),
            _ => Arc::clone(field),
        }
    });
    Ok(Schema::new_with_metadata(fields.collect::<Vec<_>>(), whole.metadata().clone()))
}

/// A struct, or a list of such, of all files, by those that have it: a field in it that some of them lack is null there, and one that only
/// some say that the struct always has is told from others.
fn within(whole: &Field, files: &[&Field]) -> Field {
    let kind = match whole.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| Arc::new(field_within(field, files))).collect()),
        DataType::List(item) => {
            let items = files.iter().filter_map(|file| match file.data_type() {
                DataType::List(item) => Some(item.as_ref()),
                _ => None,
            });
            DataType::List(Arc::new(within(item, &items.collect::<Vec<_>>())))
        }
        _ => return whole.clone(),
    };
    whole.clone().with_data_type(kind)
}

/// A field of the structs that files have.
fn field_within(field: &Field, files: &[&Field]) -> Field {
    let (mut found, mut lacks) = (Vec::new(), false);
    for file in files {
        if let DataType::Struct(fields) = file.data_type() {
            if let Some((_, field)) = fields.find(field.name()) { found.push(field.as_ref()) } else { lacks = true }
        }
    }
    let may_lack = lacks || field.is_nullable();
    let own = within(field, &found);
    if may_lack && found.iter().any(|field| !field.is_nullable()) { somewhere_required(own) } else { own }
}

#[derive(Debug)]
struct Guarded(Arc<dyn FileFormat>);

impl Guarded {
    fn is_parquet(&self) -> bool {
        (self.0.as_ref() as &dyn Any).is::<ParquetFormat>()
    }

    async fn schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<SchemaRef> {
        let mut schemas = Schemas::new();
        for file in files {
            let schema = match (self.0.as_ref() as &dyn Any).is::<AvroFormat>() {
                true => avro::schema(state, store, file).await,
                false => arrow::schema(store, file).await,
            };
            add(&mut schemas, schema.and_then(names::distinct).map_err(|fault| fault.of(file))?);
        }
        let merged = Arc::new(merged(&schemas)?);
        // Of Arrow files nothing is told of fields: what lies in a struct that is null becomes null when it is read, and columns stay as
        // files have them.
        Ok(if (self.0.as_ref() as &dyn Any).is::<ArrowFormat>() { of_one_file(merged) } else { merged })
    }
}

#[async_trait]
impl FileFormat for Guarded {
    crate::plan_nodes::names_of_own!(0);

    async fn infer_schema(&self, state: &dyn Session, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<SchemaRef> {
        match self.is_parquet() {
            true if files.len() < 2 => {
                let schema = self.0.infer_schema(state, store, files).await?;
                names::check(state, files)?;
                return Ok(of_one_file(schema));
            }
            true => {}
            false => return self.schema(state, store, files).await,
        }
        // In the order in which the engine goes through them.
        let mut sorted: Vec<&ObjectMeta> = files.iter().collect();
        sorted.sort_by(|one, other| one.location.cmp(&other.location));
        let mut asked = Vec::with_capacity(sorted.len());
        for file in sorted {
            asked.push(self.0.infer_schema(state, store, slice::from_ref(file)));
        }
        let (mut schemas, mut found) = (Schemas::new(), stream::iter(asked).buffered(AT_ONCE));
        while let Some(schema) = found.try_next().await? {
            add(&mut schemas, of_one_file(schema));
        }
        names::check(state, files)?;
        Ok(Arc::new(merged(&schemas)?))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        match self.is_parquet() {
            true => Footer::read(state.runtime_env(), store.as_ref(), object).await?.statistics(&table_schema),
            false => self.0.infer_stats(state, store, table_schema, object).await,
        }
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.0.infer_ordering(state, store, table_schema, object).await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        if !self.is_parquet() {
            return self.0.infer_stats_and_ordering(state, store, table_schema, object).await;
        }
        let footer = Footer::read(state.runtime_env(), store.as_ref(), object).await?;
        let ordering = ordering_from_parquet_metadata(&footer.0, &table_schema)?;
        Ok(FileMeta::new(footer.statistics(&table_schema)?).with_ordering(ordering))
    }

    async fn create_physical_plan(&self, state: &dyn Session, scan: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        // The engine's Arrow format chooses another source, by what the first file is.
        let plan = self.0.create_physical_plan(state, scan).await?;
        let most = decoded_bytes_max(state.runtime_env());
        let batch_rows = state.config().batch_size();
        let filters_inside = state.config().options().execution.parquet.pushdown_filters;
        Ok(parquet::checked(&plan, most, batch_rows, filters_inside).unwrap_or_else(|| guarded_of(plan, most)))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        sink: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (self.0.as_ref() as &dyn Any).is::<ArrowFormat>() && sink.insert_op == InsertOp::Append {
            true => Ok(Arc::new(DataSinkExec::new(input, Arc::new(ArrowSink::new(sink, ArrowFiles)), order))),
            false => self.0.create_writer_physical_plan(input, state, sink, order).await,
        }
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        let own = self.0.file_source(table_schema);
        // How much a scan may take is known when it is planned.
        if self.is_parquet() { own } else { GuardedSource::over(own, 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_files_that_are_alike_are_held_once() {
        let files: [&[&str]; 4] = [&["a", "b"], &["a", "b"], &["b"], &["a", "b"]];
        let mut schemas = Schemas::new();
        for names in files {
            let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Int64, false)).collect();
            add(&mut schemas, Arc::new(Schema::new(fields)));
        }
        assert_eq!(schemas.iter().map(|(_, files)| *files).collect::<Vec<_>>(), [2, 1, 1]);
        let whole = merged(&schemas).unwrap();
        let nullable: Vec<_> = whole.fields().iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(nullable, [("a", true), ("b", false)]);
    }

    #[test]
    fn what_structs_in_lists_always_have_in_some_files_is_told() {
        let of = |always: bool| {
            let s = DataType::Struct(vec![Field::new("a", DataType::Int64, !always)].into());
            let lists = DataType::List(Arc::new(Field::new("item", s, true)));
            Arc::new(Schema::new(vec![Field::new("l", lists, true)]))
        };
        // Whether it may be null, and whether some files always have it.
        let told = |lists: &Field| {
            let DataType::List(item) = lists.data_type() else { panic!("{lists:?}") };
            let DataType::Struct(fields) = item.data_type() else { panic!("{item:?}") };
            (fields[0].is_nullable(), is_somewhere_required(&fields[0]))
        };
        let (always, never) = (of(true), of(false));
        let both = merged(&[(Arc::clone(&always), 1), (Arc::clone(&never), 1)]).unwrap();
        assert_eq!(told(both.field(0)), (true, true));
        assert_eq!(told(merged(&[(Arc::clone(&always), 2)]).unwrap().field(0)), (false, true));
        assert_eq!(told(merged(&[(Arc::clone(&never), 2)]).unwrap().field(0)), (true, false));
        let declared = never.field(0);
        for found in [both.field(0), always.field(0), &required(declared)] {
            assert_eq!(told(&with_required_of(declared, found)), (true, true), "{found:?}");
        }
        assert_eq!(told(&with_required_of(declared, declared)), (true, false));
        // As it is read of a file that these were written to.
        assert_eq!(of_one_file(Arc::new(both)), never);
    }
}
