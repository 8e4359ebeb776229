//! A file that Python writes piece by piece, which is there whole when it is finished and not at all before.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_client::PutCondition;
use forebay_types::{Error, ForebayPath};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::buffer::bytes_of;
use crate::call::{Answer, run};
use crate::errors::Failure;
use crate::process::InProcess;

/// Small writes are gathered up to this many bytes.
const GATHERED_BYTES: usize = 1 << 20;

/// An object that is being written. Nobody sees it before it is finished; dropping it leaves nothing behind.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Writer {
    path: String,
    condition: PutCondition,
    open: InProcess<Arc<Mutex<Option<Open>>>>,
}

struct Open {
    writer: forebay_client::Writer,
    gathered: BytesMut,
}

impl Writer {
    pub(crate) fn new(writer: forebay_client::Writer, path: ForebayPath, condition: PutCondition) -> Self {
        let open = Open { writer, gathered: BytesMut::new() };
        Self { path: path.to_string(), condition, open: InProcess::new(Arc::new(Mutex::new(Some(open)))) }
    }

    fn failure(&self, error: Error) -> Failure {
        Failure::Forebay(error, Some(self.path.clone()))
    }

    /// The writer, out of its place: a call that is interrupted leaves none there.
    fn take(&self, py: Python<'_>) -> PyResult<(Arc<Mutex<Option<Open>>>, Open)> {
        let place = self.open.get().map_err(|error| self.failure(error).raise(py))?;
        let open = place.lock().take();
        let gone = || Error::closed(format!("{}: the writer was finished, discarded or failed: begin anew", self.path));
        Ok((Arc::clone(place), open.ok_or_else(|| self.failure(gone()).raise(py))?))
    }
}

#[pymethods]
impl Writer {
    /// The next bytes; gives how many.
    #[pyo3(signature = (data, aio=false))]
    fn write<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>, aio: bool) -> Answer<'py> {
        let bytes = bytes_of(data)?;
        let (place, mut open) = self.take(py)?;
        let path = Some(self.path.clone());
        run(py, aio, async move {
            let len = bytes.len();
            let written = open.write(bytes).await;
            written.map_err(Failure::on(&path))?;
            *place.lock() = Some(open);
            Ok(len)
        })
    }

    /// Makes what was written the object.
    #[pyo3(signature = (aio=false))]
    fn finish<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        let (_, mut open) = self.take(py)?;
        let (path, condition) = (Some(self.path.clone()), self.condition.clone());
        run(py, aio, async move {
            let finished = async {
                open.flush().await?;
                open.writer.finish_if(condition).await
            };
            finished.await.map(|info| info.version.size).map_err(Failure::on(&path))
        })
    }

    /// Gives it up.
    fn discard(&self) {
        let Ok(place) = self.open.get() else { return };
        let open = place.lock().take();
        if open.is_some() {
            // What was begun is ended by tasks of the runtime.
            let runtime = crate::process::runtime();
            let _entered = runtime.as_ref().map(tokio::runtime::Handle::enter);
            drop(open);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.discard();
    }
}

impl Open {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        if self.gathered.len() + bytes.len() < GATHERED_BYTES {
            self.gathered.extend_from_slice(&bytes);
            return Ok(());
        }
        self.flush().await?;
        self.writer.write(bytes).await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        if self.gathered.is_empty() { Ok(()) } else { self.writer.write(self.gathered.split().freeze()).await }
    }
}
