//! Rewrites files of any readable format as one file of another: rows in their order, there whole or not at all.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use forebay_types::{Error, Result};
use futures::stream;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;

use crate::engine::Engine;
use crate::engine::query::Query;
use crate::engine::session::QuerySession;
use crate::error::{external, from_engine};
use crate::location::Location;
use crate::paths::Format;

/// Files to be written once more, as one file of another format.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Files, folders and patterns of any readable format, one after the other.
    pub inputs: Vec<String>,
    /// The file to write; its name tells the format.
    pub output: String,
    /// Options of the output's format, as after `OPTIONS` in a `COPY`.
    pub options: Vec<(String, String)>,
}

/// How far a conversion is.
#[derive(Debug, Default)]
pub struct ConversionProgress {
    bytes_read: AtomicU64,
    rows: AtomicU64,
}

impl ConversionProgress {
    /// Bytes read of the inputs.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Rows read of the inputs.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// Tells names of conversions of one process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Engine {
    /// Writes the inputs' rows to one file, in their order when the engine has one partition. Rows stream through; the file is
    /// there whole or not at all, and what was there stays until then. Returns the rows.
    /// `Invalid` for a name that tells no format, inputs whose columns don't go together, and columns that the output's
    /// format can't hold; `NotFound`; those of reading and writing.
    pub async fn convert(&self, conversion: &Conversion, progress: Arc<ConversionProgress>) -> Result<u64> {
        let output = &conversion.output;
        let format = Format::of_name(output).ok_or_else(|| {
            Error::invalid(format!(
                "'{output}': the name tells no format: end it with .albis, .parquet, .csv, .json, .ndjson or .arrow"
            ))
        })?;
        let Some((first, rest)) = conversion.inputs.split_first() else {
            return Err(Error::invalid("there is nothing to convert: name a file, a folder or a pattern"));
        };
        let session = QuerySession::open(self, "select 1").await?;
        let target = Location::parse_target(output, session.namespace.as_ref())?;
        if target.is_folder() {
            return Err(Error::invalid(format!("'{output}' is a folder: name a file in it")));
        }
        for input in &conversion.inputs {
            if session.resolver.location(input).map_err(from_engine)?.url == target.url {
                return Err(Error::invalid(format!("'{output}' is an input too: write to another name, and move it then")));
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let first = Input::open(self, first, None).await?;
        let schema = first.query.schema();
        let inputs = Inputs {
            schema: Arc::clone(&schema),
            state: Mutex::new(Some(State { engine: self.clone(), now: Some(first), rest: rest.to_vec(), progress })),
        };
        let table = StreamingTable::try_new(schema, vec![Arc::new(inputs)]).map_err(from_engine)?;
        let name = format!("conversion input {number}");
        self.inner.session.register_table(name.clone(), Arc::new(table)).map_err(from_engine)?;
        let written = self.write(conversion, format, &name, number, &session.context, &target).await;
        let _ = self.inner.session.deregister_table(&name);
        written
    }

    async fn write(
        &self,
        conversion: &Conversion,
        format: Format,
        table: &str,
        number: u64,
        context: &SessionContext,
        target: &Location,
    ) -> Result<u64> {
        if format.is_table() {
            // Its writer shows a file only when all rows have come.
            return self.copy(conversion, format, table, &conversion.output).await;
        }
        // The engine's own writers end a file wherever the rows do, be it with an error: it gets its name at the end.
        let part = part_name(&conversion.output, number);
        let url = datafusion::datasource::listing::ListingTableUrl::try_new(target.url.clone(), None).map_err(from_engine)?;
        let store: Arc<dyn ObjectStore> = context.runtime_env().object_store(&url).map_err(from_engine)?;
        let to = target.path()?;
        let file = part_name(to.as_ref(), number);
        let from = object_store::path::Path::parse(&file).map_err(|error| Error::invalid(format!("'{part}': {error}")))?;
        let written = self.copy(conversion, format, table, &part).await;
        let shown = match written {
            Ok(rows) => store.rename(&from, &to).await.map(|()| rows).map_err(|error| from_engine(error.into())),
            failed => failed,
        };
        if shown.is_err() {
            // It may not even be there.
            let _ = store.delete(&from).await;
        }
        shown
    }

    async fn copy(&self, conversion: &Conversion, format: Format, table: &str, target: &str) -> Result<u64> {
        let own = format.options().into_iter().filter(|(key, _)| !conversion.options.iter().any(|(known, _)| known == key));
        let options = own.chain(conversion.options.iter().cloned());
        let options = options.map(|(key, value)| format!("{} {}", quoted(&key), quoted(&value))).collect::<Vec<_>>().join(", ");
        let options = if options.is_empty() { String::new() } else { format!(" OPTIONS ({options})") };
        let sql = format!("COPY \"{table}\" TO {} STORED AS {}{options}", quoted(target), format.name());
        let batches = self.execute(&sql).await?.collect().await?;
        let count =
            batches.first().and_then(|batch| batch.column(0).as_any().downcast_ref::<datafusion::arrow::array::UInt64Array>());
        Ok(count.filter(|count| !count.values().is_empty()).map_or(0, |count| count.value(0)))
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name in the same folder that listings leave out, with the same ending.
fn part_name(name: &str, number: u64) -> String {
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let slash = if name.contains('/') { "/" } else { "" };
    format!("{folder}{slash}.part-{}-{number}-{file}", std::process::id())
}

/// One input, being read.
struct Input {
    name: String,
    query: Query,
    /// Bytes that are counted already.
    bytes: u64,
}

impl Input {
    /// Plans the reading of all rows. With a schema, the input's columns have to be among that one's.
    async fn open(engine: &Engine, name: &str, schema: Option<&SchemaRef>) -> Result<Self> {
        let query = engine.execute(&format!("SELECT * FROM {}", quoted(name))).await?;
        if let Some(schema) = schema {
            let own = query.schema();
            let extra = own.fields().iter().find(|field| schema.index_of(field.name()).is_err());
            if let Some(field) = extra {
                return Err(Error::invalid(format!(
                    "'{name}' has a column `{}` that the first input does not have: convert it to a file of its own",
                    field.name()
                )));
            }
        }
        Ok(Self { name: name.to_string(), query, bytes: 0 })
    }

    /// A batch with the columns of the first input.
    fn fit(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        if batch.schema_ref() == schema {
            return Ok(batch.clone());
        }
        let rows = batch.num_rows();
        let options = CastOptions { safe: false, ..Default::default() };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            columns.push(match batch.column_by_name(field.name()) {
                Some(column) => cast_with_options(column, field.data_type(), &options)
                    .map_err(|error| Error::invalid(format!("'{}', column `{}`: {error}", self.name, field.name())))?,
                None => new_null_array(field.data_type(), rows),
            });
        }
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
            .map_err(|error| Error::invalid(format!("'{}' does not go with the first input: {error}", self.name)))
    }
}

/// All inputs as one table, which can be read once.
struct Inputs {
    schema: SchemaRef,
    state: Mutex<Option<State>>,
}

struct State {
    engine: Engine,
    now: Option<Input>,
    rest: Vec<String>,
    progress: Arc<ConversionProgress>,
}

impl State {
    async fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        loop {
            let input = match &mut self.now {
                Some(input) => input,
                None if self.rest.is_empty() => return Ok(None),
                None => self.now.insert(Input::open(&self.engine, &self.rest.remove(0), Some(schema)).await?),
            };
            let batch = input.query.next_batch().await;
            let read = input.query.progress().bytes_read;
            self.progress.bytes_read.fetch_add(read.saturating_sub(input.bytes), Ordering::Relaxed);
            // One that is planned again counts from the beginning.
            input.bytes = read;
            match batch {
                Some(batch) => {
                    let batch = input.fit(&batch?, schema)?;
                    self.progress.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                    return Ok(Some(batch));
                }
                None => self.now = None,
            }
        }
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inputs")
    }
}

impl PartitionStream for Inputs {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (state, schema) = (self.state.lock().take(), Arc::clone(&self.schema));
        let batches = stream::unfold((state, Arc::clone(&schema)), |(state, schema)| async move {
            let mut state = state?;
            match state.next(&schema).await {
                Ok(batch) => batch.map(|batch| (Ok(batch), (Some(state), schema))),
                Err(error) => Some((Err::<_, DataFusionError>(external(error)), (None, schema))),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

#[cfg(test)]
mod tests {
    use super::part_name;

    #[test]
    fn a_part_stays_in_its_folder_and_keeps_its_ending() {
        let id = std::process::id();
        assert_eq!(part_name("/lake/a/x.parquet", 3), format!("/lake/a/.part-{id}-3-x.parquet"));
        assert_eq!(part_name("x.csv.gz", 0), format!(".part-{id}-0-x.csv.gz"));
    }
}
