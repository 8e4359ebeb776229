//! A coordinator of the test's own, and a connection to it.

use std::time::Duration;

use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_protocol::{
    AdminRequest, ClusterView, ControlCall, ControlReply, ControlRequest, Heartbeat, MemberRequest, MountShare, WorkerInfo,
    WorkerReport, decode, encode,
};
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, HostId, Mount, MountId, MountOptions, WorkerId};
use tempfile::TempDir;

/// A coordinator with a SQLite file in a folder of its own.
pub struct Cluster {
    pub folder: TempDir,
    pub coordinator: Coordinator,
    pub connection: Connection,
}

pub fn settings(metadata_url: String) -> CoordinatorSettings {
    let listen = Address::Tcp("127.0.0.1:0".into());
    CoordinatorSettings { lease: Duration::from_secs(2), ..CoordinatorSettings::new(listen, metadata_url) }
}

impl Cluster {
    pub async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap()).await
    }

    pub async fn start_in(folder: TempDir) -> Self {
        let coordinator = Coordinator::start(settings(url(&folder))).await.unwrap();
        let connection = Connection::connect(&coordinator.address(), &Security::default()).await.unwrap();
        Self { folder, coordinator, connection }
    }

    /// Stops the coordinator in order; the folder stays.
    pub async fn stop(self) -> TempDir {
        self.coordinator.shutdown().await;
        self.folder
    }

    pub async fn ask(&self, request: impl Into<ControlCall>) -> Result<ControlReply, Error> {
        ask(&self.connection, request).await
    }

    pub async fn view(&self) -> ClusterView {
        match self.ask(ControlRequest::View { have: 0 }).await.unwrap() {
            ControlReply::View(view) => view,
            other => panic!("{other:?} is no view"),
        }
    }

    pub async fn register(&self, worker: u64) -> ClusterView {
        match self.ask(MemberRequest::Register(info(worker))).await.unwrap() {
            ControlReply::View(view) => view,
            other => panic!("{other:?} is no view"),
        }
    }

    /// A heartbeat; the view, when the worker's was old, and its shares.
    pub async fn beat(&self, worker: u64, have: u64, demand: &[(MountId, u64)]) -> (Option<ClusterView>, Vec<MountShare>) {
        let report = WorkerReport { reads: 42, ..WorkerReport::default() };
        let heartbeat = Heartbeat { have, demand: demand.to_vec(), report, ..Heartbeat::silent(WorkerId(worker)) };
        match self.ask(MemberRequest::Heartbeat(heartbeat)).await.unwrap() {
            ControlReply::Beat { view, shares, .. } => (view, shares),
            other => panic!("{other:?} is no beat"),
        }
    }

    pub async fn add_mount(&self, name: &str, url: &str, options: MountOptions) -> Result<Mount, Error> {
        let request = AdminRequest::MountAdd { name: name.parse().unwrap(), url: url.into(), options };
        match self.ask(request).await? {
            ControlReply::Mount(mount) => Ok(mount),
            other => panic!("{other:?} is no mount"),
        }
    }

    /// The URL of a new folder beside the database.
    pub fn data(&self, name: &str) -> String {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        format!("file://{}", folder.display())
    }
}

pub fn url(folder: &TempDir) -> String {
    format!("sqlite:{}/metadata.db", folder.path().display())
}

pub fn info(worker: u64) -> WorkerInfo {
    let info = WorkerInfo::new(WorkerId(worker), HostId("this host".into()), format!("127.0.0.1:{}", 7000 + worker));
    WorkerInfo { dram_bytes: 1, disk_bytes: 2, turn: worker, location: "host".into(), ..info }
}

/// One request; what failed is the error.
pub async fn ask(connection: &Connection, request: impl Into<ControlCall>) -> Result<ControlReply, Error> {
    let answer = connection.call(encode(&request.into()), vec![]).await?;
    match decode(&answer.meta)? {
        ControlReply::Failed { kind, message } => Err(Error::new(kind, message)),
        reply => Ok(reply),
    }
}

/// Of who knows this secret, which is all of the cluster's.
pub fn owner(secret: &str) -> Security {
    Security::owner(secret).unwrap()
}
