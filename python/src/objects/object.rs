//! A file that Python has opened: reads of any part, all of the version that it had then.

use std::sync::Arc;

use forebay_types::{ForebayPath, ObjectInfo, OperationId};
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::call::{Answer, run};
use crate::errors::Failure;
use crate::live::Live;
use crate::process::InProcess;

/// One version of an object, opened. All of its reads are one operation.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Object {
    live: InProcess<Arc<Live>>,
    operation: OperationId,
    path: ForebayPath,
    info: ObjectInfo,
}

impl Object {
    pub(crate) fn new(live: Arc<Live>, path: ForebayPath, info: ObjectInfo) -> Self {
        Self { operation: live.client.operation(), live: InProcess::new(live), path, info }
    }
}

#[pymethods]
impl Object {
    #[getter]
    fn path(&self) -> String {
        self.path.to_string()
    }

    #[getter]
    fn size(&self) -> u64 {
        self.info.version.size
    }

    #[getter]
    fn modified_ms(&self) -> i64 {
        self.info.modified_ms
    }

    #[getter]
    fn version(&self) -> &str {
        self.info.version.tag.as_str()
    }

    /// Bytes from `start`, cut off at the object's end.
    #[pyo3(signature = (start, length, aio=false))]
    fn read<'py>(&self, py: Python<'py>, start: u64, length: u64, aio: bool) -> Answer<'py> {
        let path = Some(self.path.to_string());
        let live = self.live.get().map_err(|error| Failure::on(&path)(error).raise(py))?;
        let (live, operation, version) = (Arc::clone(live), self.operation, self.info.version.clone());
        let end = start.saturating_add(length).min(version.size);
        run(py, aio, async move {
            let bytes = live.client.read(operation, &version, start.min(end)..end).await;
            bytes.map(Buffer::new).map_err(Failure::on(&path))
        })
    }
}
