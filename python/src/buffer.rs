//! Bytes handed to Python where they lie, and taken from it, by the buffer protocol: the only unsafe code of this crate.

#![allow(unsafe_code, reason = "the buffer protocol hands addresses to Python; this module is the only place that does")]

use std::ffi::{c_int, c_void};

use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::errors::raised;
use crate::process::InProcess;

/// Bytes that stay where they are: in a worker's DRAM tier on the same host, under a pin that this object holds.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Buffer(InProcess<Bytes>);

impl Buffer {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(InProcess::new(bytes))
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.get().map_err(|error| raised(py, error))?.len())
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = slf.get().0.get().map_err(|error| PyBufferError::new_err(error.to_string()))?;
        let len = isize::try_from(bytes.len()).map_err(|_| PyBufferError::new_err("too many bytes for one buffer"))?;
        let start = bytes.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: Python gives a view to fill. The bytes stay where they are as long as this object lives, and the view
        // holds a reference to it; it is read-only, so nothing is written through the pointer.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Bytes as they are where Python can't change them, a copy of them elsewhere.
pub(crate) fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = data.extract::<PyBackedBytes>()
        && data.is_instance_of::<pyo3::types::PyBytes>()
    {
        return Ok(Bytes::from_owner(bytes));
    }
    let view = data.py().import("builtins")?.getattr("memoryview")?.call1((data,))?;
    // What has a shape without bytes is not cast.
    if view.getattr("nbytes")?.extract::<usize>()? == 0 {
        return Ok(Bytes::new());
    }
    if !view.getattr("c_contiguous")?.extract::<bool>()? {
        let message = "its bytes don't lie one after the other: copy them first, as numpy.ascontiguousarray does";
        return Err(PyTypeError::new_err(message));
    }
    let view = view.call_method1("cast", ("B",))?;
    Ok(Bytes::from(PyBuffer::<u8>::get(&view)?.to_vec(data.py())?))
}
