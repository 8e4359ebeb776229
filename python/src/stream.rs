//! Rows on their way to consumers of Arrow's C interface, batch by batch or as they come, with Ctrl-C heard.

use forebay_sql::arrow::array::{Array, RecordBatch, RecordBatchReader, StructArray};
use forebay_sql::arrow::datatypes::SchemaRef;
use forebay_sql::arrow::error::ArrowError;
use forebay_sql::arrow::ffi::to_ffi;
use forebay_sql::{Progress, Query, ShardBatches};
use forebay_types::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::call::until_interrupted;
use crate::errors::raised;
use crate::process::{InProcess, runtime};

/// Some rows in the Arrow PyCapsule interface.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Batch(pub(crate) RecordBatch);

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // A wish that the interface lets a producer leave unfulfilled.
        let _ = requested_schema;
        let rows = StructArray::from(self.0.clone()).into_data();
        let (array, schema) = to_ffi(&rows).map_err(|error| raised(py, Error::internal(error.to_string())))?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }
}

/// Where rows come from.
pub(crate) enum Source {
    Statement(Box<Query>),
    Shards(Box<ShardBatches>),
}

impl Source {
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            Self::Statement(query) => query.schema(),
            Self::Shards(batches) => batches.schema(),
        }
    }

    /// The next rows; none at the end.
    pub(crate) async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Statement(query) => query.next_batch().await.transpose(),
            Self::Shards(batches) => batches.next_batch().await,
        }
    }

    /// All rows.
    pub(crate) async fn collect(&mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch().await? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// How far a statement is.
    pub(crate) fn progress(&self) -> Option<Progress> {
        match self {
            Self::Statement(query) => Some(query.progress()),
            Self::Shards(_) => None,
        }
    }

    /// The physical plan of a statement.
    pub(crate) fn plan_text(&self) -> Option<String> {
        match self {
            Self::Statement(query) => Some(query.plan_text()),
            Self::Shards(_) => None,
        }
    }
}

/// Rows as they come, for a consumer that reads them from C, on whatever thread.
pub(crate) struct Streaming {
    schema: SchemaRef,
    source: Option<InProcess<parking_lot::Mutex<Source>>>,
}

impl Streaming {
    pub(crate) fn new(source: Source) -> Self {
        Self { schema: source.schema(), source: Some(InProcess::new(parking_lot::Mutex::new(source))) }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let Some(source) = &self.source else { return Ok(None) };
        let mut source = source.get()?.lock();
        let heard = || if interrupted() { Err(Error::closed("the query was interrupted (Ctrl-C)")) } else { Ok(()) };
        until_interrupted(&runtime()?, source.next_batch(), heard)?
    }
}

/// Whether Ctrl-C was pressed. Only the main thread hears of it, and only there is asking safe: another thread may be
/// waited for by one that has the interpreter.
fn interrupted() -> bool {
    on_main_thread() && Python::try_attach(|py| py.check_signals().is_err()).unwrap_or(false)
}

fn on_main_thread() -> bool {
    // Linux gives the first thread the number of the process.
    std::fs::read_link("/proc/thread-self").is_ok_and(|task| {
        task.file_name()
            .is_some_and(|thread| thread.to_str().and_then(|thread| thread.parse::<u32>().ok()) == Some(std::process::id()))
    })
}

impl Iterator for Streaming {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => {
                self.source = None;
                None
            }
            Err(error) => {
                self.source = None;
                Some(Err(ArrowError::ExternalError(Box::new(error))))
            }
        }
    }
}

impl RecordBatchReader for Streaming {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
