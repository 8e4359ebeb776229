//! Avro files as a scan reads them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow_avro::reader::{Reader, ReaderBuilder};
use datafusion::catalog::Session;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::avro::AvroFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result as EngineResult;
use datafusion::physical_expr_adapter::{BatchAdapter, BatchAdapterFactory};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::header::Header;
use super::rows::{Part, Rows};
use super::schema::shape_of;
use crate::paths::guard::fault::{Fault, Result, caught, damage};
use crate::paths::guard::input::Input;

/// Opens Avro files.
pub(in crate::paths::guard) struct AvroOpener {
    store: Arc<dyn ObjectStore>,
    /// The columns that are read, or all where none is.
    columns: SchemaRef,
    batch_rows: usize,
    decoded_bytes_max: u64,
}

impl AvroOpener {
    pub(in crate::paths::guard) fn new(
        store: Arc<dyn ObjectStore>,
        table: &SchemaRef,
        columns: &[usize],
        batch_rows: usize,
        decoded_bytes_max: u64,
    ) -> Self {
        let fields: Vec<_> = columns.iter().map(|at| table.field(*at).clone()).collect();
        let columns = if fields.is_empty() { Arc::clone(table) } else { Arc::new(Schema::new(fields)) };
        Self { store, columns, batch_rows, decoded_bytes_max }
    }
}

impl FileOpener for AvroOpener {
    fn open(&self, part: PartitionedFile) -> EngineResult<FileOpenFuture> {
        let file = part.object_meta;
        let (input, columns) = (Input::all(&self.store, &file), Arc::clone(&self.columns));
        let (batch_rows, decoded_bytes_max) = (self.batch_rows, self.decoded_bytes_max);
        Ok(Box::pin(async move {
            let rows = opened(input, columns, batch_rows, decoded_bytes_max).await.map_err(|fault| fault.of(&file))?;
            Ok(rows.map_err(move |fault| fault.of(&file)).boxed())
        }))
    }
}

/// The schema of a file, as the engine has it of one with the same header.
pub(in crate::paths::guard) async fn schema(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    file: &ObjectMeta,
) -> Result<SchemaRef> {
    let header = Header::take(&mut Input::head(store, file)).await?;
    shape_of(header.schema_text()?)?;
    let (alone, written) = (InMemory::new(), header.file_of(0, &[]));
    let size = written.len() as u64;
    alone.put(&file.location, written.into()).await?;
    let (alone, file): (Arc<dyn ObjectStore>, _) = (Arc::new(alone), ObjectMeta { size, ..file.clone() });
    let schema = AssertUnwindSafe(AvroFormat.infer_schema(state, &alone, std::slice::from_ref(&file))).catch_unwind().await;
    caught(|| match schema {
        Ok(schema) => schema.map_err(|error| Fault::Damage(error.strip_backtrace())),
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

async fn opened(
    mut input: Input,
    columns: SchemaRef,
    batch_rows: usize,
    decoded_bytes_max: u64,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let header = Header::take(&mut input).await?;
    let shape = shape_of(header.schema_text()?)?;
    let written = caught(|| reader(&header, 0, &[], 1, None))?.schema();
    let projection = projection(&written, &columns);
    let read = caught(|| reader(&header, 0, &[], 1, projection.clone()))?.schema();
    let adapter = BatchAdapterFactory::new(columns).make_adapter(&read)?;
    let decode = Decode { projection, read, adapter };
    let rows = Rows::new(input, header, shape, decoded_bytes_max);
    let batches = stream::try_unfold((rows, decode), move |(mut rows, decode)| async move {
        let Some(part) = rows.next(batch_rows).await? else { return Ok(None) };
        let batch = decode.batch(&rows.header, part)?;
        Ok(Some((batch, (rows, decode))))
    });
    Ok(batches.boxed())
}

/// Where in the file the wanted columns are, by name; none where they are all of its own.
fn projection(written: &Schema, columns: &Schema) -> Option<Vec<usize>> {
    let at = columns.fields().iter().filter_map(|field| written.index_of(field.name()).ok());
    let projection: Vec<usize> = at.collect();
    (!projection.iter().copied().eq(0..written.fields().len())).then_some(projection)
}

/// The library's reader of a file that has these rows alone. It is full when it has them, and never asked again: with more bytes
/// than its rows take, it would go on for ever.
fn reader(
    header: &Header,
    rows: usize,
    bytes: &[u8],
    batch_rows: usize,
    projection: Option<Vec<usize>>,
) -> Result<Reader<std::io::Cursor<Vec<u8>>>> {
    let builder = ReaderBuilder::new().with_batch_size(batch_rows);
    let builder = if let Some(projection) = projection { builder.with_projection(projection) } else { builder };
    Ok(builder.build(std::io::Cursor::new(header.file_of(rows, bytes)))?)
}

/// Makes batches of rows.
struct Decode {
    projection: Option<Vec<usize>>,
    read: SchemaRef,
    adapter: BatchAdapter,
}

impl Decode {
    fn batch(&self, header: &Header, part: Part) -> Result<RecordBatch> {
        let batch = match part.bytes.is_empty() {
            true => nothing(&self.read, part.rows)?,
            false => {
                let decode = || match reader(header, part.rows, &part.bytes, part.rows, self.projection.clone())?.next() {
                    Some(batch) => Ok(batch?),
                    None => damage("its rows can't be decoded"),
                };
                caught(decode)?
            }
        };
        Ok(self.adapter.adapt_batch(&batch)?)
    }
}

/// Rows that take no bytes, which the library passes over.
fn nothing(schema: &SchemaRef, rows: usize) -> Result<RecordBatch> {
    if schema.fields().iter().any(|field| *field.data_type() != DataType::Null) {
        return Err(Fault::Unsupported("its rows take no bytes and are more than nulls".to_string()));
    }
    let columns = schema.fields().iter().map(|_| Arc::new(NullArray::new(rows)) as ArrayRef).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
