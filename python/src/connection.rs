//! What Python's `Client` is a thin skin over: each method a call of the client or the engine, on one path or on many.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_client::{AdminRequest, PutCondition};
use forebay_transport::TlsSettings;
use forebay_types::{ForebayPath, Result};
use futures::{StreamExt, TryStreamExt, stream};
use pyo3::prelude::*;

use crate::buffer::{Buffer, bytes_of};
use crate::call::{Answer, Given, run};
use crate::errors::Failure;
use crate::live::{Lazy, Live, Place};
use crate::mounts;
use crate::nodes::Nodes;
use crate::objects::paths::{object, tree, versions};
use crate::objects::{Object, Writer};
use crate::rows::Rows;
use crate::shards::Shards;
use crate::{objects, parameters};

/// Calls of one batch under way at once.
const AT_ONCE: usize = 32;

/// A cluster, by its address.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Connection {
    lazy: Arc<Lazy>,
}

impl Connection {
    /// Runs `call` with the connection; `path` is the one that an error is about.
    fn call<'py, T: Given, F>(
        &self,
        py: Python<'py>,
        aio: bool,
        path: Option<String>,
        call: impl FnOnce(Arc<Live>) -> F + Send + 'static,
    ) -> Answer<'py>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let lazy = Arc::clone(&self.lazy);
        run(py, aio, async move {
            let outcome = async { call(lazy.get().await?).await }.await;
            outcome.map_err(Failure::on(&path))
        })
    }

    /// The same for a call about one path.
    fn at<'py, T: Given, F>(
        &self,
        py: Python<'py>,
        aio: bool,
        path: String,
        call: impl FnOnce(Arc<Live>, ForebayPath) -> F + Send + 'static,
    ) -> Answer<'py>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let parsed = path.parse::<ForebayPath>().map_err(|error| Failure::on(&Some(path.clone()))(error).raise(py))?;
        self.call(py, aio, Some(path), move |live| call(live, parsed))
    }
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (address, *, token=None, tls_ca=None, tls_cert=None, tls_key=None, in_place=true, memory=None, partitions=None))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of its own in Python")]
    fn new(
        address: String,
        token: Option<&str>,
        tls_ca: Option<PathBuf>,
        tls_cert: Option<PathBuf>,
        tls_key: Option<PathBuf>,
        in_place: bool,
        memory: Option<u64>,
        partitions: Option<usize>,
    ) -> Self {
        let token = token.map(Arc::from);
        let tls = tls_ca.map(|ca| TlsSettings { ca: Some(ca), cert: tls_cert, key: tls_key, client_ca: None });
        let place = Place { address, token, tls, in_place, memory_bytes: memory, partitions };
        Self { lazy: Arc::new(Lazy::new(place)) }
    }

    #[getter]
    fn address(&self) -> &str {
        &self.lazy.place.address
    }

    #[pyo3(signature = (aio=false))]
    fn connect<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.call(py, aio, None, |_| async { Ok(()) })
    }

    /// The temporary namespace.
    fn nodes(&self) -> Nodes {
        Nodes::new(Arc::clone(&self.lazy))
    }

    /// The dataset of shards in a folder of a mount.
    #[pyo3(signature = (path, aio=false))]
    fn shards<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move { Shards::open(live, path).await })
    }

    #[pyo3(signature = (for_good=false))]
    fn close(&self, py: Python<'_>, for_good: bool) {
        py.detach(|| self.lazy.close(for_good));
    }

    fn counters(&self) -> Option<(u64, u64, u64, u64)> {
        let counters = self.lazy.current()?.client.counters();
        let in_place = counters.reads_cached + counters.reads_in_place;
        Some((in_place, counters.bytes_in_place, counters.bytes_socket, counters.bytes_fallback))
    }

    #[pyo3(signature = (aio=false))]
    fn status<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.call(py, aio, None, |live| async move { mounts::status(&live.client).await })
    }

    #[pyo3(signature = (aio=false))]
    fn mounts<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.call(py, aio, None, |live| async move { mounts::all(&live.client).await })
    }

    #[pyo3(signature = (name, url, options, aio=false))]
    fn mount_add<'py>(&self, py: Python<'py>, name: String, url: String, options: String, aio: bool) -> Answer<'py> {
        let path = Some(format!("/{name}/"));
        self.call(py, aio, path, |live| async move { mounts::add(&live.client, name, url, options).await })
    }

    #[pyo3(signature = (name, options, aio=false))]
    fn mount_set<'py>(&self, py: Python<'py>, name: String, options: String, aio: bool) -> Answer<'py> {
        let path = Some(format!("/{name}/"));
        self.call(py, aio, path, |live| async move { mounts::set(&live.client, name, options).await })
    }

    #[pyo3(signature = (name, aio=false))]
    fn mount_remove<'py>(&self, py: Python<'py>, name: String, aio: bool) -> Answer<'py> {
        let path = Some(format!("/{name}/"));
        self.call(py, aio, path, |live| async move {
            let name = name.parse()?;
            live.client.control(AdminRequest::MountRemove { name }).await.map(|_| ())
        })
    }

    /// What is directly below a path, or with `recursive` all objects below it; the object itself when it is one.
    #[pyo3(signature = (path, recursive=false, aio=false))]
    fn list<'py>(&self, py: Python<'py>, path: String, recursive: bool, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, move |live, path| async move { objects::list(&live.client, &path, recursive).await })
    }

    /// The object at a path, or the folder that it is.
    #[pyo3(signature = (path, aio=false))]
    fn stat<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move { objects::stat(&live.client, &path).await })
    }

    /// Bytes of the version that is current under the mount's rule. `length` None: to the end; `offset` below 0: from the end.
    #[pyo3(signature = (path, offset=0, length=None, aio=false))]
    fn read<'py>(&self, py: Python<'py>, path: String, offset: i64, length: Option<u64>, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, move |live, path| async move { objects::read(&live.client, &path, offset, length).await })
    }

    /// Ranges of many objects at once, in order: (path, start, end). What can't be read is its error.
    #[pyo3(signature = (ranges, aio=false))]
    fn read_many<'py>(&self, py: Python<'py>, ranges: Vec<(String, i64, Option<u64>)>, aio: bool) -> Answer<'py> {
        self.call(py, aio, None, move |live| async move {
            let reads = ranges.into_iter().map(|(path, offset, length)| {
                let live = Arc::clone(&live);
                async move {
                    let bytes = match path.parse::<ForebayPath>() {
                        Ok(parsed) => objects::read(&live.client, &parsed, offset, length).await,
                        Err(error) => Err(error),
                    };
                    ReadOrNot(bytes.map_err(Failure::on(&Some(path))))
                }
            });
            Ok(stream::iter(reads).buffered(AT_ONCE).collect::<Vec<_>>().await)
        })
    }

    /// Opens the current version of an object; all reads of it are of that version.
    #[pyo3(signature = (path, aio=false))]
    fn open<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move {
            let info = live.client.open(&path).await?;
            Ok(Object::new(live, path, info))
        })
    }

    #[pyo3(signature = (path, data, if_absent=false, aio=false))]
    fn put<'py>(&self, py: Python<'py>, path: String, data: &Bound<'py, PyAny>, if_absent: bool, aio: bool) -> Answer<'py> {
        let bytes = bytes_of(data)?;
        self.at(py, aio, path, move |live, path| async move {
            let info = live.client.put(&path, bytes, condition(if_absent)).await?;
            Ok(object(&path, info))
        })
    }

    /// Begins to write an object piece by piece.
    #[pyo3(signature = (path, if_absent=false, aio=false))]
    fn writer<'py>(&self, py: Python<'py>, path: String, if_absent: bool, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, move |live, path| async move {
            let writer = live.client.writer(&path).await?;
            Ok(Writer::new(writer, path, condition(if_absent)))
        })
    }

    /// Deletes objects; those that are not there are no error.
    #[pyo3(signature = (paths, aio=false))]
    fn delete<'py>(&self, py: Python<'py>, paths: Vec<String>, aio: bool) -> Answer<'py> {
        let about = (paths.len() == 1).then(|| paths[0].clone());
        self.call(py, aio, about, |live| async move {
            let paths = paths.iter().map(|path| path.parse()).collect::<Result<Vec<ForebayPath>>>()?;
            let deletes = paths.into_iter().map(|path| {
                let live = Arc::clone(&live);
                async move { live.client.delete(&path).await.map_err(|error| error.context(path)) }
            });
            stream::iter(deletes).buffer_unordered(AT_ONCE).try_for_each(|()| std::future::ready(Ok(()))).await
        })
    }

    /// Copies an object, of one version, without its bytes passing through Python.
    #[pyo3(signature = (source, target, aio=false))]
    fn copy<'py>(&self, py: Python<'py>, source: String, target: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, source, |live, source| async move { objects::copy(&live.client, &source, &target.parse()?).await })
    }

    /// Brings everything below a path into the tiers, or what a query of columns and a condition would read of it: objects, bytes, and
    /// of these fetched now.
    #[pyo3(signature = (path, columns=None, condition=None, aio=false))]
    fn load<'py>(
        &self,
        py: Python<'py>,
        path: String,
        columns: Option<Vec<String>>,
        condition: Option<String>,
        aio: bool,
    ) -> Answer<'py> {
        self.at(py, aio, path, move |live, path| async move {
            let (path, objects) = tree(&live.client, &path).await?;
            let columns = columns.unwrap_or_default();
            let loaded = if columns.is_empty() && condition.is_none() {
                live.client.load(versions(&objects), false, |_| ()).await?
            } else {
                let reads = live.engine.reads_of(&path.to_string(), &columns, condition.as_deref()).await?;
                live.client.load_ranges(reads, |_| ()).await?
            };
            Ok((loaded.objects, loaded.bytes, loaded.bytes_fetched))
        })
    }

    /// Keeps everything below a path in the tiers from now on, and loads it unless told not to.
    #[pyo3(signature = (path, load=true, aio=false))]
    fn pin<'py>(&self, py: Python<'py>, path: String, load: bool, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, move |live, path| async move {
            let (path, objects) = tree(&live.client, &path).await?;
            let was_pinned = mounts::pins(&live.client).await?.contains(&path);
            live.client.control(AdminRequest::PinAdd { path: path.clone() }).await?;
            let loaded = if load { live.client.load(versions(&objects), true, |_| ()).await.map(|_| ()) } else { Ok(()) };
            let Err(error) = loaded else { return Ok(()) };
            // As before, there is no pin unless there was one.
            let lifted = !was_pinned
                && match live.client.unpin(&path).await {
                    Ok(()) => true,
                    Err(_) => mounts::pins(&live.client).await.is_ok_and(|pins| !pins.contains(&path)),
                };
            let left = match lifted {
                true => "is not pinned, since it could not be loaded (load=False pins it all the same)",
                false => "stays pinned, but could not be loaded",
            };
            Err(error.context(format!("{path} {left}")))
        })
    }

    /// Lifts the pin of a path, or of the folder of this name.
    #[pyo3(signature = (path, aio=false))]
    fn unpin<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move {
            let folder = path.as_folder()?;
            let pins = mounts::pins(&live.client).await?;
            let path = if !pins.contains(&path) && pins.contains(&folder) { folder } else { path };
            live.client.unpin(&path).await
        })
    }

    #[pyo3(signature = (aio=false))]
    fn pins<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.call(py, aio, None, |live| async move {
            let pins = mounts::pins(&live.client).await?;
            Ok(pins.iter().map(ToString::to_string).collect::<Vec<_>>())
        })
    }

    /// Drops what is held of everything below a path; gives the bytes.
    #[pyo3(signature = (path, aio=false))]
    fn free<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move {
            let (_, objects) = tree(&live.client, &path).await?;
            live.client.free(versions(&objects)).await
        })
    }

    /// Forgets versions and listings below a path, so that the next look asks shared storage.
    #[pyo3(signature = (path, aio=false))]
    fn refresh<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move { live.client.refresh(&path).await })
    }

    /// Objects below a path, their bytes, and of these in the tiers, in DRAM and on disk.
    #[pyo3(signature = (path, aio=false))]
    fn usage<'py>(&self, py: Python<'py>, path: String, aio: bool) -> Answer<'py> {
        self.at(py, aio, path, |live, path| async move {
            let (_, objects) = tree(&live.client, &path).await?;
            let held = live.client.held(versions(&objects)).await?;
            let bytes = objects.iter().map(|info| info.version.size).sum::<u64>();
            let sum = |of: fn(&forebay_client::Held) -> u64| held.iter().map(of).sum::<u64>();
            Ok((objects.len(), bytes, sum(|held| held.bytes), sum(|held| held.dram_bytes), sum(|held| held.disk_bytes)))
        })
    }

    /// Starts a statement. One that changes something is done when this is.
    #[pyo3(signature = (statement, parameters=None, aio=false))]
    fn sql<'py>(&self, py: Python<'py>, statement: String, parameters: Option<&Bound<'py, PyAny>>, aio: bool) -> Answer<'py> {
        let values = parameters.map(parameters::values).transpose()?;
        self.call(py, aio, None, move |live| async move {
            let query = match values {
                Some(values) => live.engine.execute_with(&statement, values).await?,
                None => live.engine.execute(&statement).await?,
            };
            Rows::of(query).await
        })
    }

    /// Splits a script into its statements.
    fn statements(&self, py: Python<'_>, script: String) -> PyResult<Vec<String>> {
        let lazy = Arc::clone(&self.lazy);
        crate::call::wait(py, async move { Ok(lazy.get().await?.engine.statements(&script).await?) })
    }
}

/// One of many reads: its bytes, or its exception as a value.
struct ReadOrNot(Result<Buffer, Failure>);

impl<'py> IntoPyObject<'py> for ReadOrNot {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0 {
            Ok(buffer) => Ok(Bound::new(py, buffer)?.into_any()),
            Err(failure) => Ok(failure.raise(py).into_value(py).into_bound(py).into_any()),
        }
    }
}

fn condition(if_absent: bool) -> PutCondition {
    if if_absent { PutCondition::Absent } else { PutCondition::Any }
}
