//! What most bars run against: a worker in a process of its own, and clients that reach it in a given way.

use std::ffi::OsStr;
use std::path::Path;

use forebay_bench_harness::{Served, cpu, security, until_input_ends};
use forebay_client::{Client, ClientSettings, Nodes};
use forebay_node::Node;

/// How a client's small calls go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Tcp,
    Unix,
    SharedMemory,
}

/// A worker in a process of its own.
pub struct Rig {
    served: Served,
    address: String,
    folder: tempfile::TempDir,
}

impl Rig {
    pub fn start() -> Self {
        Self::with_disk(0)
    }

    /// With a disk tier of so many bytes.
    pub fn with_disk(disk_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = format!("--disk-bytes={disk_bytes}");
        let arguments = [OsStr::new("--serve"), folder.path().as_os_str(), OsStr::new(&disk)];
        let (served, address) = Served::start(arguments).unwrap();
        Self { served, address, folder }
    }

    /// A client over TCP, or as one of the same host.
    pub async fn nodes(&self, same_host: bool) -> Nodes {
        self.nodes_by(if same_host { Way::SharedMemory } else { Way::Tcp }).await
    }

    /// A client that goes one way.
    pub async fn nodes_by(&self, way: Way) -> Nodes {
        let mut settings = ClientSettings::new(self.address.parse().unwrap());
        settings.security = security();
        settings.in_place = way != Way::Tcp;
        settings.ring = way == Way::SharedMemory;
        Client::connect(settings).await.unwrap().nodes()
    }

    /// Processor time that the worker's process has used, in seconds.
    pub fn processor_secs(&self) -> f64 {
        cpu::of_process(self.served.id()).unwrap().as_secs_f64()
    }

    /// A folder on the worker's disk.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Resident memory of the worker's process, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        cpu::status_bytes(self.served.id(), "VmRSS:").unwrap()
    }
}

/// Bytes of the DRAM tier.
const DRAM_BYTES: u64 = 2 << 30;

/// A coordinator and a worker on the one thread of this process; says where, and ends with its parent.
pub async fn serve(folder: &Path, disk_bytes: u64) {
    let mut node = Node::lead_in(folder, security()).await.unwrap();
    let mut worker = node.worker_in(folder, DRAM_BYTES);
    worker.store.disk_bytes = disk_bytes;
    worker.temporary_share = 0.9;
    node.start_worker(worker).await.unwrap();
    println!("{}", node.coordinator_at());
    until_input_ends().await;
    node.shutdown().await;
}
