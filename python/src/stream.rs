//! Rows on their way to consumers of Arrow's C interface, batch by batch or as they come, with Ctrl-C heard.

use forebay_sql::Query;
use forebay_sql::arrow::array::{Array, RecordBatch, RecordBatchReader, StructArray};
use forebay_sql::arrow::datatypes::SchemaRef;
use forebay_sql::arrow::error::ArrowError;
use forebay_sql::arrow::ffi::to_ffi;
use forebay_types::Error;
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

/// Rows as they come, for a consumer that reads them from C, on whatever thread.
pub(crate) struct Streaming {
    schema: SchemaRef,
    query: Option<InProcess<parking_lot::Mutex<Query>>>,
}

impl Streaming {
    pub(crate) fn new(query: Query) -> Self {
        Self { schema: query.schema(), query: Some(InProcess::new(parking_lot::Mutex::new(query))) }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Some(query) = &self.query else { return Ok(None) };
        let mut query = query.get()?.lock();
        let heard = || if interrupted() { Err(Error::closed("the query was interrupted (Ctrl-C)")) } else { Ok(()) };
        until_interrupted(&runtime()?, query.next_batch(), heard)?.transpose()
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
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => {
                self.query = None;
                None
            }
            Err(error) => {
                self.query = None;
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
