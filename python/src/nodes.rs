//! Temporary nodes for Python: their operations, and files or values that are opened and read in parts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{
    CreateOptions, NodeCondition, NodeError, NodeErrorKind, NodePlace, NodeResult, NodeSnapshot, NodeType, Nodes as Door,
};
use futures::TryStreamExt;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::buffer::{Buffer, bytes_of};
use crate::call::{Answer, Given, run};
use crate::errors::Failure;
use crate::live::Lazy;
use crate::process::InProcess;

/// What a file or value was when it was opened.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct NodeObject {
    path: String,
    snapshot: InProcess<Arc<NodeSnapshot>>,
}

#[pymethods]
impl NodeObject {
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.here(py)?.len())
    }

    /// Another one for other bytes.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("{:032x}", self.here(py)?.tag()))
    }

    /// Bytes from `start`, cut off at the end.
    #[pyo3(signature = (start, length, aio=false))]
    fn read<'py>(&self, py: Python<'py>, start: u64, length: u64, aio: bool) -> Answer<'py> {
        let (path, snapshot) = (self.path.clone(), Arc::clone(self.here(py)?));
        let end = start.saturating_add(length).min(snapshot.len());
        run(py, aio, async move {
            let read = async { snapshot.read(start.min(end)..end)?.read_all().await };
            read.await.map(Buffer::new).map_err(|error| Failure::Node(error, path))
        })
    }
}

impl NodeObject {
    fn here(&self, py: Python<'_>) -> PyResult<&Arc<NodeSnapshot>> {
        self.snapshot.get().map_err(|error| Failure::on(&Some(self.path.clone()))(error).raise(py))
    }
}

/// A value as one of several: None where there is no such node, else what was wrong with it, as an exception.
struct Value(NodeResult<Bytes>, String);

impl<'py> IntoPyObject<'py> for Value {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Ok(bytes) => Buffer::new(bytes).into_bound_py_any(py),
            Err(error) if error.kind == NodeErrorKind::NotFound => Ok(py.None().into_bound(py)),
            Err(error) => Refused(error, self.1).into_pyobject(py),
        }
    }
}

/// An error as an exception that is handed over, not raised.
struct Refused(NodeError, String);

impl<'py> IntoPyObject<'py> for Refused {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Failure::Node(self.0, self.1).raise(py).into_bound_py_any(py)
    }
}

/// Where a node is to lie, as words say it.
fn place(class: Option<&str>, location: Option<&str>) -> NodeResult<NodePlace> {
    Ok(NodePlace { class: class.map(str::parse).transpose()?, location: location.map(str::parse).transpose()? })
}

/// An offset in a file, which is counted from its beginning.
fn from_the_beginning(py: Python<'_>, path: &str, offset: i64) -> PyResult<u64> {
    let message = || format!("offset {offset} is before the beginning, which offsets of nodes count from");
    u64::try_from(offset).map_err(|_| wrong(py, path, message()))
}

/// The exception of an argument that fits no node.
fn wrong(py: Python<'_>, path: &str, message: String) -> PyErr {
    Failure::Node(NodeError::new(NodeErrorKind::Invalid, message), path.to_string()).raise(py)
}

/// Bytes of a file or value; fewer at its end.
async fn part(nodes: &Door, path: &str, offset: u64, length: u64) -> NodeResult<Bytes> {
    let error = match nodes.read(path, offset, length).await {
        Err(error) if error.kind == NodeErrorKind::WrongType => error,
        read => return read,
    };
    let Ok(value) = nodes.snapshot(path).await else { return Err(error) };
    let len = value.len();
    if offset > len {
        let message = format!("offset {offset} is behind its end: it has {len} bytes");
        return Err(NodeError::new(NodeErrorKind::Invalid, message));
    }
    value.read(offset..offset.saturating_add(length).min(len))?.read_all().await
}

/// What Python sees of a node: name, type, bytes.
type Entry = (String, &'static str, u64);

/// The temporary namespace of a cluster.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Nodes {
    lazy: Arc<Lazy>,
}

impl Nodes {
    pub(crate) fn new(lazy: Arc<Lazy>) -> Self {
        Self { lazy }
    }

    /// Runs `call` with the namespace and the path that it is about.
    fn at<'py, T: Given, F>(
        &self,
        py: Python<'py>,
        aio: bool,
        path: String,
        call: impl FnOnce(Door, String) -> F + Send + 'static,
    ) -> Answer<'py>
    where
        F: Future<Output = NodeResult<T>> + Send + 'static,
    {
        let lazy = Arc::clone(&self.lazy);
        run(py, aio, async move {
            let live = lazy.get().await?;
            call(live.client.nodes(), path.clone()).await.map_err(|error| Failure::Node(error, path))
        })
    }

    /// The same with bytes that are to lie somewhere, in a storage class and at a location.
    fn lay<'py, T: Given, F>(
        &self,
        py: Python<'py>,
        aio: bool,
        path: String,
        data: &Bound<'py, PyAny>,
        (class, location): (Option<String>, Option<String>),
        call: impl FnOnce(Door, String, Bytes, NodePlace) -> F + Send + 'static,
    ) -> Answer<'py>
    where
        F: Future<Output = NodeResult<T>> + Send + 'static,
    {
        let bytes = bytes_of(data)?;
        self.at(py, aio, path, move |nodes, path| async move {
            call(nodes, path, bytes, place(class.as_deref(), location.as_deref())?).await
        })
    }
}

#[pymethods]
impl Nodes {
    #[pyo3(signature = (path, data, storage_class=None, location=None, aio=false))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        path: String,
        data: &Bound<'py, PyAny>,
        storage_class: Option<String>,
        location: Option<String>,
        aio: bool,
    ) -> Answer<'py> {
        self.lay(py, aio, path, data, (storage_class, location), |nodes, path, bytes, place| async move {
            nodes.put_at(&path, bytes, &place).await
        })
    }

    #[pyo3(signature = (path, aio=false))]
    fn get<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move { nodes.get(&path).await.map(Buffer::new) })
    }

    /// Several values in the order of their paths.
    #[pyo3(signature = (paths, aio=false))]
    fn get_many<'py>(&self, py: Python<'py>, paths: Vec<String>, aio: bool) -> Answer<'py> {
        let lazy = Arc::clone(&self.lazy);
        run(py, aio, async move {
            let nodes = lazy.get().await?.client.nodes();
            let got = {
                let asked: Vec<&str> = paths.iter().map(String::as_str).collect();
                nodes.get_each(&asked).await
            };
            Ok(got.into_iter().zip(paths).map(|(value, path)| Value(value, path)).collect::<Vec<_>>())
        })
    }

    /// Puts several values; gives those that were not put, by their path.
    #[pyo3(signature = (values, aio=false))]
    fn put_many<'py>(&self, py: Python<'py>, values: Vec<(String, Bound<'py, PyAny>)>, aio: bool) -> Answer<'py> {
        let values = values.into_iter().map(|(path, data)| Ok((path, bytes_of(&data)?))).collect::<PyResult<Vec<_>>>()?;
        let lazy = Arc::clone(&self.lazy);
        run(py, aio, async move {
            let nodes = lazy.get().await?.client.nodes();
            let put = {
                let asked: Vec<(&str, Bytes)> = values.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
                nodes.put_each(&asked).await
            };
            let refused = put.into_iter().zip(values).filter_map(|(put, (path, _))| put.err().map(|error| (path, error)));
            Ok(refused.map(|(path, error)| (path.clone(), Refused(error, path))).collect::<Vec<_>>())
        })
    }

    #[pyo3(signature = (path, kind, enumerable=true, storage_class=None, location=None, aio=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn create<'py>(
        &self,
        py: Python<'py>,
        path: String,
        kind: String,
        enumerable: bool,
        storage_class: Option<String>,
        location: Option<String>,
        aio: bool,
    ) -> Answer<'py> {
        self.at(py, aio, path, move |nodes, path| async move {
            let NodePlace { class, location } = place(storage_class.as_deref(), location.as_deref())?;
            let kind: NodeType = kind.parse()?;
            nodes.create(&path, CreateOptions { kind, enumerable, class, location }).await
        })
    }

    #[pyo3(signature = (path, data, storage_class=None, location=None, aio=false))]
    fn append<'py>(
        &self,
        py: Python<'py>,
        path: String,
        data: &Bound<'py, PyAny>,
        storage_class: Option<String>,
        location: Option<String>,
        aio: bool,
    ) -> Answer<'py> {
        self.lay(py, aio, path, data, (storage_class, location), |nodes, path, bytes, place| async move {
            nodes.append_at(&path, bytes, &place).await
        })
    }

    #[pyo3(signature = (path, offset, data, aio=false))]
    fn write<'py>(&self, py: Python<'py>, path: String, offset: i64, data: &Bound<'py, PyAny>, aio: bool) -> Answer<'py> {
        let (bytes, offset) = (bytes_of(data)?, from_the_beginning(py, &path, offset)?);
        self.at(py, aio, path, move |nodes, path| async move { nodes.write(&path, offset, bytes).await })
    }

    /// Bytes of a file or value; `length` None: to its end.
    #[pyo3(signature = (path, offset=0, length=None, aio=false))]
    fn read<'py>(&self, py: Python<'py>, path: String, offset: i64, length: Option<i64>, aio: bool) -> Answer<'py> {
        let offset = from_the_beginning(py, &path, offset)?;
        let length = length.map(u64::try_from).transpose();
        let length = length.map_err(|_| wrong(py, &path, "a length is 0 bytes or more".to_string()))?;
        self.at(py, aio, path, move |nodes, path| async move {
            let bytes = match length {
                Some(length) => part(&nodes, &path, offset, length).await?,
                None => nodes.reader(&path, offset).await?.read_all().await?,
            };
            Ok(Buffer::new(bytes))
        })
    }

    /// What a file or value is now, to be read in parts.
    #[pyo3(signature = (path, aio=false))]
    fn open<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move {
            let snapshot = nodes.snapshot(&path).await?;
            Ok(NodeObject { path, snapshot: InProcess::new(Arc::new(snapshot)) })
        })
    }

    /// All files of a bag, one after the other.
    #[pyo3(signature = (path, aio=false))]
    fn bag<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move { nodes.bag(&path).await?.read_all().await.map(Buffer::new) })
    }

    #[pyo3(signature = (path, aio=false))]
    fn list<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move {
            let mut entries: Vec<Entry> = Vec::new();
            let mut pages = std::pin::pin!(nodes.enumerate(&path));
            while let Some(page) = pages.try_next().await? {
                entries.extend(page.into_iter().map(|entry| (entry.name, entry.kind.as_str(), entry.bytes)));
            }
            Ok(entries)
        })
    }

    /// Type, bytes, the location that it asks for, and its storage class; None where there is no node.
    #[pyo3(signature = (path, aio=false))]
    fn stat<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move {
            let stat = nodes.stat(&path).await?;
            Ok(stat.map(|stat| {
                let location = (!stat.location.is_anywhere()).then(|| stat.location.to_string());
                (stat.kind.as_str(), stat.bytes, location, stat.class.as_str())
            }))
        })
    }

    #[pyo3(signature = (path, recursive=false, aio=false))]
    fn delete<'py>(&self, py: Python<'py>, path: String, recursive: bool, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, move |nodes, path| async move { nodes.delete(&path, recursive).await })
    }

    #[pyo3(signature = (path, to, aio=false))]
    fn rename<'py>(&self, py: Python<'py>, path: String, to: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move { nodes.rename(&path, &to).await })
    }

    /// A file or value takes the place of the one of another name in its container, or a free one, in one step; listings show it from then on.
    #[pyo3(signature = (path, name, if_absent=false, aio=false))]
    fn replace<'py>(&self, py: Python<'py>, path: String, name: String, if_absent: bool, aio: bool) -> Answer<'py> {
        let condition = if if_absent { NodeCondition::Absent } else { NodeCondition::Any };
        self.at(py, aio, path, move |nodes, path| async move { nodes.replace(&path, &name, condition).await })
    }

    /// What the files and values in a container may have at most, in bytes; None: as many as there is room for.
    #[pyo3(signature = (path, bytes, aio=false))]
    fn set_quota<'py>(&self, py: Python<'py>, path: String, bytes: Option<u64>, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, move |nodes, path| async move { nodes.set_quota(&path, bytes).await })
    }

    /// What the files and values in a container have, and may have, in bytes.
    #[pyo3(signature = (path, aio=false))]
    fn usage<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |nodes, path| async move {
            let usage = nodes.usage(&path).await?;
            Ok((usage.bytes, usage.quota))
        })
    }

    /// The node goes away unless this is said again within `seconds`; None: it stays.
    #[pyo3(signature = (path, seconds, aio=false))]
    fn lease<'py>(&self, py: Python<'py>, path: String, seconds: Option<f64>, aio: bool) -> Answer<'py> {
        let ttl = seconds.map(Duration::try_from_secs_f64).transpose();
        let ttl = ttl.map_err(|error| wrong(py, &path, format!("no time that a node could stay for: {error}")))?;
        self.at(py, aio, path, move |nodes, path| async move { nodes.lease(&path, ttl).await })
    }
}
