//! Rows for Python, of a statement or of a dataset of shards: they come one batch after the other, are kept, or go to any consumer of Arrow.

use std::sync::Arc;

use forebay_sql::arrow::array::{RecordBatch, RecordBatchIterator};
use forebay_sql::arrow::datatypes::SchemaRef;
use forebay_sql::arrow::error::ArrowError;
use forebay_sql::arrow::ffi::FFI_ArrowSchema;
use forebay_sql::arrow::ffi_stream::FFI_ArrowArrayStream;
use forebay_sql::output::{Form, Writer};
use forebay_sql::{Progress, Query, ShardBatches};
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::call::{Answer, run};
use crate::errors::{Failure, raised};
use crate::process::InProcess;
use crate::stream::{Batch, Source, Streaming};

/// Rows that are still to come, or all here.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Rows {
    schema: SchemaRef,
    state: InProcess<Arc<Mutex<State>>>,
}

pub(crate) enum State {
    /// None was given out yet.
    Coming(Source),
    /// Some were given out one by one; the rest is to come.
    Begun(Source),
    Here(Arc<Vec<RecordBatch>>, Option<Progress>),
    /// They were given out one by one, or a call was interrupted.
    Gone,
}

impl State {
    /// What all rows come from, out of its place: a call that is interrupted leaves none there.
    fn all(&mut self) -> Result<Source> {
        match std::mem::replace(self, Self::Gone) {
            Self::Coming(source) => Ok(source),
            other => {
                *self = other;
                Err(Error::closed(
                    "rows were given out already, or the call was interrupted: ask again, and call to_arrow() \
                     first to use its rows more than once",
                ))
            }
        }
    }

    /// What the rows that are left come from.
    fn rest(&mut self) -> Result<Source> {
        match std::mem::replace(self, Self::Gone) {
            Self::Begun(source) => Ok(source),
            other => {
                *self = other;
                self.all()
            }
        }
    }
}

impl Rows {
    /// The rows of a query, which come when they are asked for. A statement that writes runs to its end first: whoever only
    /// calls it means it to be done.
    pub(crate) async fn of(mut query: Query) -> Result<Self> {
        let schema = query.schema();
        let state = match query.writes() {
            true => State::Here(Arc::new(query.collect().await?), Some(query.progress())),
            false => State::Coming(Source::Statement(Box::new(query))),
        };
        Ok(Self { schema, state: InProcess::new(Arc::new(Mutex::new(state))) })
    }

    /// The rows of a dataset of shards, which come when they are asked for.
    pub(crate) fn of_shards(batches: ShardBatches) -> Self {
        let source = Source::Shards(Box::new(batches));
        Self { schema: source.schema(), state: InProcess::new(Arc::new(Mutex::new(State::Coming(source)))) }
    }

    fn state(&self, py: Python<'_>) -> PyResult<Arc<Mutex<State>>> {
        self.state.get().map(Arc::clone).map_err(|error| raised(py, error))
    }

    fn here(&self, py: Python<'_>) -> PyResult<Option<Arc<Vec<RecordBatch>>>> {
        Ok(match &*self.state(py)?.lock() {
            State::Here(batches, _) => Some(Arc::clone(batches)),
            State::Coming(_) | State::Begun(_) | State::Gone => None,
        })
    }
}

/// All rows; they stay.
async fn collect(state: Arc<Mutex<State>>) -> Result<Arc<Vec<RecordBatch>>> {
    if let State::Here(batches, _) = &*state.lock() {
        return Ok(Arc::clone(batches));
    }
    let mut source = state.lock().all()?;
    let batches = Arc::new(source.collect().await?);
    *state.lock() = State::Here(Arc::clone(&batches), source.progress());
    Ok(batches)
}

/// The next rows of those to come.
pub(crate) async fn next(state: Arc<Mutex<State>>) -> Result<Option<RecordBatch>> {
    let mut source = state.lock().rest()?;
    let batch = source.next_batch().await?;
    if batch.is_some() {
        *state.lock() = State::Begun(source);
    }
    Ok(batch)
}

#[pymethods]
impl Rows {
    /// Names and types of the columns.
    fn columns(&self) -> Vec<(String, String)> {
        self.schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }

    /// Waits for all rows, which stay; gives their number.
    #[pyo3(signature = (aio=false))]
    fn collect<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        let state = self.state(py)?;
        run(py, aio, async move {
            let batches = collect(state).await?;
            Ok(batches.iter().map(RecordBatch::num_rows).sum::<usize>())
        })
    }

    /// The next rows, of those to come; None at the end.
    #[pyo3(signature = (aio=false))]
    fn next<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        let state = self.state(py)?;
        run(py, aio, async move { Ok(next(state).await?.map(Batch)) })
    }

    /// The batches that are here; None when they are still to come.
    fn batches(&self, py: Python<'_>) -> PyResult<Option<Vec<Batch>>> {
        Ok(self.here(py)?.map(|batches| batches.iter().cloned().map(Batch).collect()))
    }

    /// The first rows as a table of text; all rows stay.
    #[pyo3(signature = (limit, aio=false))]
    fn text<'py>(&self, py: Python<'py>, limit: usize, aio: bool) -> Answer<'py> {
        let (state, schema) = (self.state(py)?, self.schema.clone());
        run(py, aio, async move {
            let batches = collect(state).await?;
            let mut left = limit;
            let mut writer = Writer::new(Form::Table, schema, Vec::new());
            for batch in batches.iter() {
                let rows = batch.num_rows().min(left);
                writer.write(&batch.slice(0, rows))?;
                left -= rows;
                if left == 0 {
                    break;
                }
            }
            let all = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
            Ok((String::from_utf8_lossy(&writer.finish()?).into_owned(), all))
        })
    }

    /// Bytes that the plan of a statement has said it will read, and that were read.
    fn progress(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let progress = match &*self.state(py)?.lock() {
            State::Coming(source) | State::Begun(source) => source.progress(),
            State::Here(_, progress) => *progress,
            State::Gone => None,
        };
        Ok(progress.map(|progress| (progress.bytes_planned, progress.bytes_read)))
    }

    /// The physical plan of a statement, while the rows are still to come.
    fn plan(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(match &*self.state(py)?.lock() {
            State::Coming(source) => source.plan_text(),
            State::Begun(_) | State::Here(..) | State::Gone => None,
        })
    }

    /// The columns in the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| defect(py, &error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows in the Arrow PyCapsule interface: as they come, or those that are here. Nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish that the interface lets a producer leave unfulfilled.
        let _ = requested_schema;
        let reader: Box<dyn forebay_sql::arrow::array::RecordBatchReader + Send> = match self.here(py)? {
            Some(batches) => {
                let batches: Vec<_> = batches.iter().cloned().map(Ok::<_, ArrowError>).collect();
                Box::new(RecordBatchIterator::new(batches, self.schema.clone()))
            }
            None => {
                let source = self.state(py)?.lock().all().map_err(|error| raised(py, error))?;
                Box::new(Streaming::new(source))
            }
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}

fn defect(py: Python<'_>, error: &ArrowError) -> PyErr {
    Failure::from(Error::internal(error.to_string())).raise(py)
}
