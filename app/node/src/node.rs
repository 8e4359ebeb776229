//! The roles of one process.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;

use forebay_block_store::StoreSettings;
use forebay_client::{Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_data_folder::{Announced, DataFolder};
use forebay_s3::{Gateway, GatewaySettings};
use forebay_transport::{Address, Security};
use forebay_types::Result;
use forebay_worker::{Tuning, Worker, WorkerSettings};

/// The roles of one process, all of one cluster. They end at once when it is dropped, and in good order by [`Self::shutdown`].
pub struct Node {
    /// The way in by S3.
    pub gateway: Option<Gateway>,
    /// In the order in which they were started. Who takes one out and drops it ends it at once.
    pub workers: Vec<Arc<Worker>>,
    /// None where it is another process's.
    pub coordinator: Option<Arc<Coordinator>>,
    coordinator_at: Address,
    security: Security,
    announced: Option<Announced>,
    // Last, so that the folders are free only when nothing uses them any more.
    folders: Vec<DataFolder>,
}

impl Node {
    /// Starts a coordinator, whose cluster the node's other roles are of. Errors of [`Coordinator::start`].
    pub async fn lead(settings: CoordinatorSettings) -> Result<Self> {
        let security = settings.security.clone();
        let coordinator = Coordinator::start(settings).await?;
        let node = Self::join(coordinator.address(), security);
        Ok(Self { coordinator: Some(Arc::new(coordinator)), ..node })
    }

    /// The same with [`Self::coordinator_in`].
    pub async fn lead_in(folder: &Path, security: Security) -> Result<Self> {
        Self::lead(Self::coordinator_in(folder, security)).await
    }

    /// Of the cluster of a coordinator elsewhere, which is not asked yet.
    pub fn join(coordinator_at: Address, security: Security) -> Self {
        let (workers, folders) = (Vec::new(), Vec::new());
        Self { gateway: None, workers, coordinator: None, coordinator_at, security, announced: None, folders }
    }

    /// A coordinator at any port of this machine, with its metadata in a folder that is there.
    pub fn coordinator_in(folder: &Path, security: Security) -> CoordinatorSettings {
        CoordinatorSettings { security, ..CoordinatorSettings::new(any_port(), DataFolder::metadata_url(folder)) }
    }

    /// A worker of this cluster at any port of this machine, with its socket and a tier in memory in a folder.
    pub fn worker_in(&self, folder: &Path, dram_bytes: u64) -> WorkerSettings {
        let store = StoreSettings::new(DataFolder::tiers_in(folder), dram_bytes);
        WorkerSettings {
            unix_socket: Some(DataFolder::socket_in(folder)),
            security: self.security.clone(),
            ..WorkerSettings::new(self.coordinator_at.clone(), any_port(), store)
        }
    }

    /// Starts a worker. Errors of [`Worker::start`].
    pub async fn start_worker(&mut self, settings: WorkerSettings) -> Result<&Arc<Worker>> {
        self.start_worker_with(settings, Tuning::default()).await
    }

    /// The same with other limits than the usual ones.
    pub async fn start_worker_with(&mut self, settings: WorkerSettings, tuning: Tuning) -> Result<&Arc<Worker>> {
        let worker = Worker::start_with(settings, tuning).await?;
        self.workers.push(Arc::new(worker));
        Ok(&self.workers[self.workers.len() - 1])
    }

    /// A client of this cluster that shows what its roles show.
    pub fn client_settings(&self) -> ClientSettings {
        ClientSettings { security: self.security.clone(), ..ClientSettings::new(self.coordinator_at.clone()) }
    }

    /// Connects one. Errors of [`Client::connect`].
    pub async fn client(&self) -> Result<Client> {
        Client::connect(self.client_settings()).await
    }

    /// Serves S3 over a client. Errors of [`Gateway::start`].
    pub async fn serve_s3(&mut self, client: Client, settings: GatewaySettings) -> Result<&Gateway> {
        let gateway = Gateway::start(client, settings).await?;
        Ok(&*self.gateway.insert(gateway))
    }

    /// Where the coordinator of the cluster listens.
    pub fn coordinator_at(&self) -> &Address {
        &self.coordinator_at
    }

    /// Tells commands of the same user that this cluster's data is in a folder, as long as the node runs.
    pub fn announce(&mut self, folder: &Path) {
        if let Address::Tcp(address) = &self.coordinator_at {
            self.announced = Announced::new(address, folder);
        }
    }

    /// Keeps a folder taken until all roles have ended.
    pub fn hold(&mut self, folder: DataFolder) {
        self.folders.push(folder);
    }

    /// Returns when the coordinator has ended by itself, with why; never without one.
    pub async fn ended(&self) -> Result<()> {
        if let Some(coordinator) = &self.coordinator { coordinator.stopped().await } else { pending().await }
    }

    /// Stops the way in, then the workers, the last one first, then the coordinator; what is cached is on disk afterwards.
    pub async fn shutdown(self) {
        if let Some(gateway) = self.gateway {
            gateway.shutdown().await;
        }
        for worker in self.workers.iter().rev() {
            worker.shutdown().await;
        }
        if let Some(coordinator) = &self.coordinator {
            coordinator.shutdown().await;
        }
    }
}

fn any_port() -> Address {
    Address::Tcp("127.0.0.1:0".to_string())
}
