//! A whole cluster in the Python process, for work without `forebay up`: started, and stopped in order.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_client::{Address, Admission, Credential, Security};
use forebay_coordinator::CoordinatorSettings;
use forebay_data_folder::{DataFolder, default_disk_bytes, default_dram_bytes, owner_secret};
use forebay_node::Node;
use forebay_transport::random_secret;
use forebay_types::Result;
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::call::{Answer, run};
use crate::errors::Failure;
use crate::process::InProcess;

/// A coordinator and a worker in this process, on a data folder of their own.
#[pyclass(frozen, weakref, module = "forebay._forebay")]
pub(crate) struct Embedded {
    address: String,
    running: InProcess<Arc<Mutex<Option<Node>>>>,
}

struct Settings {
    data_dir: PathBuf,
    listen: String,
    dram_bytes: Option<u64>,
    disk_bytes: Option<u64>,
    token: Option<Arc<str>>,
    in_place: bool,
}

#[pymethods]
impl Embedded {
    /// Starts them. The coordinator listens at `listen`, the worker at any port of this machine.
    #[staticmethod]
    #[pyo3(signature = (data_dir, *, listen, dram=None, disk=None, token=None, in_place=true, aio=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn start<'py>(
        py: Python<'py>,
        data_dir: PathBuf,
        listen: String,
        dram: Option<u64>,
        disk: Option<u64>,
        token: Option<&str>,
        in_place: bool,
        aio: bool,
    ) -> Answer<'py> {
        let token = token.map(Arc::from);
        let settings = Settings { data_dir, listen, dram_bytes: dram, disk_bytes: disk, token, in_place };
        run(py, aio, async move {
            let running = settings.start().await?;
            let address = running.coordinator_at().to_string();
            Ok(Self { address, running: InProcess::new(Arc::new(Mutex::new(Some(running)))) })
        })
    }

    /// host:port of the coordinator.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Stops them in order; what is cached is on disk afterwards. In another process than theirs it does nothing.
    #[pyo3(signature = (aio=false))]
    fn close<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        let running = self.running.get().ok().and_then(|running| running.lock().take());
        run(py, aio, async move {
            if let Some(running) = running {
                running.shutdown().await;
            }
            Ok::<_, Failure>(())
        })
    }

    /// Whether they run in this process.
    fn is_running(&self) -> bool {
        self.running.get().is_ok_and(|running| running.lock().is_some())
    }
}

/// One that is forgotten stops in order too, in the background.
impl Drop for Embedded {
    fn drop(&mut self) {
        let running = self.running.get().ok().and_then(|running| running.lock().take());
        if let (Some(running), Ok(runtime)) = (running, crate::process::runtime()) {
            runtime.spawn(running.shutdown());
        }
    }
}

impl Settings {
    async fn start(self) -> Result<Node> {
        let taken = DataFolder::take(&self.data_dir, &["coordinator", "worker"])?;
        // Who starts it is its owner, here and in other processes of the same user.
        let owner = Credential::owner(&owner_secret(&self.data_dir, random_secret)?)?;
        let token = self.token.as_deref().map(Credential::token).transpose()?;
        let admits = Arc::new(Admission::of([Some(&owner), token.as_ref()].into_iter().flatten()));
        let security = Security { shows: Some(owner), admits, tls: None, ..Security::default() };
        let coordinator = Node::coordinator_in(&self.data_dir, security);
        let mut node = Node::lead(CoordinatorSettings { listen: Address::Tcp(self.listen), ..coordinator }).await?;
        node.hold(taken);
        node.announce(&self.data_dir);
        let mut worker = node.worker_in(&self.data_dir, self.dram_bytes.unwrap_or_else(default_dram_bytes));
        worker.store.disk_bytes = self.disk_bytes.unwrap_or_else(|| default_disk_bytes(&self.data_dir));
        if !self.in_place {
            worker.unix_socket = None;
        }
        node.start_worker(worker).await?;
        Ok(node)
    }
}
