//! What runs on the hosts: Forebay as it is in production, and a store that speaks S3.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_client::{Address, Client, ClientSettings, Security};
use forebay_coordinator::CoordinatorSettings;
use forebay_demo::S3Server;
use forebay_node::Node;
use forebay_protocol::WorkerState;
use forebay_runtime::net::Listener;
use forebay_runtime::time::sleep;
use forebay_s3::Holding;
use forebay_transport::ServerLimits;
use forebay_worker::{Tuning, WorkerSettings};
use parking_lot::Mutex;

/// What processes of the cluster show each other.
const SECRET: &str = "what the processes of a world know";
pub(super) const BUCKET: &str = "data";
pub(super) const STORE_ADDRESS: &str = "store:9000";
pub(super) const COORDINATOR_ADDRESS: &str = "coordinator:7400";
pub(super) const STANDBY_ADDRESS: &str = "standby:7400";
/// Less than what is read: the disk is read too.
const DRAM_BYTES: u64 = 2 << 20;
const DISK_BYTES: u64 = 16 << 20;
/// Verified of the tiers in a second.
const SCRUB_BYTES: u64 = 256 << 10;
const REQUEST_BYTES: u64 = 64 << 20;
/// A process that has ended is started again by whoever looks after it.
const STARTED_AGAIN_AFTER: Duration = Duration::from_secs(1);
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// What is looked at when all workers have had the time of two leases to come back.
const LIVE_TOLD_EVERY: Duration = Duration::from_secs(1);
/// What a worker's administrator looks at when all is at rest.
const PINS_TOLD_EVERY: Duration = Duration::from_secs(1);

/// What the world sees of its processes, as their administrator would.
#[derive(Default)]
pub(super) struct Seen {
    /// Workers that the coordinator counts as live.
    pub(super) live: Mutex<usize>,
    /// Bytes under pins, by worker.
    pub(super) pinned: Mutex<Vec<u64>>,
    /// What the gateway holds.
    pub(super) held: Mutex<Holding>,
}

pub(super) fn security() -> Security {
    Security::owner(SECRET).expect("long enough")
}

fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

/// Where whichever coordinator leads is.
fn coordinators(has_standby: bool) -> Address {
    if has_standby { address(&format!("{COORDINATOR_ADDRESS},{STANDBY_ADDRESS}")) } else { address(COORDINATOR_ADDRESS) }
}

/// Of the first one.
pub(super) fn coordinator_address() -> Address {
    address(COORDINATOR_ADDRESS)
}

pub(super) fn worker_address(number: usize) -> Address {
    address(&format!("worker{number}:7411"))
}

/// The store, as long as it is asked.
pub(super) async fn store(server: Arc<S3Server>) {
    let listener = Listener::bind(STORE_ADDRESS).await.expect("the host is there for it");
    server.serve(listener).await;
}

/// A coordinator, started again whenever it ends. One that stands by is started when it leads.
pub(super) async fn coordinator(listen: &'static str, metadata_url: String, seen: Arc<Seen>) {
    loop {
        let mut settings = CoordinatorSettings::new(address(listen), metadata_url.clone());
        settings.security = security();
        match Node::lead(settings).await {
            Ok(node) => {
                let telling = async {
                    loop {
                        let workers = node.coordinator.as_ref().expect("it leads").status().workers;
                        *seen.live.lock() = workers.iter().filter(|(_, state, _)| *state == WorkerState::Live).count();
                        sleep(LIVE_TOLD_EVERY).await;
                    }
                };
                tokio::select! {
                    biased;
                    ended = node.ended() => tracing::warn!(?ended, "coordinator ended"),
                    () = telling => {}
                }
            }
            Err(error) => tracing::warn!(%error, "coordinator not started"),
        }
        sleep(STARTED_AGAIN_AFTER).await;
    }
}

/// A process without a role yet.
pub(super) fn joined(has_standby: bool) -> Node {
    Node::join(coordinators(has_standby), security())
}

/// A worker, started until it is there.
pub(super) async fn worker(number: usize, folder: PathBuf, seen: Arc<Seen>, has_standby: bool) {
    let store = StoreSettings::new(folder, DRAM_BYTES).with_disk(DISK_BYTES);
    let mut node = joined(has_standby);
    let settings = WorkerSettings {
        listen: worker_address(number),
        location: Some(format!("host{number}")),
        // Without a socket: who is in the same process is beside it.
        unix_socket: Some(PathBuf::from(format!("/worker{number}/socket"))),
        ..node.worker_in(&store.folder, DRAM_BYTES)
    };
    let settings = WorkerSettings { store, ..settings };
    let limits = ServerLimits { request_bytes: Some(REQUEST_BYTES), ..ServerLimits::default() };
    let tuning = Tuning { limits, scrub_bytes_per_sec: SCRUB_BYTES, ..Tuning::default() };
    loop {
        match node.start_worker_with(settings.clone(), tuning.clone()).await {
            Ok(worker) => loop {
                seen.pinned.lock()[number] = worker.report().dram.2;
                sleep(PINS_TOLD_EVERY).await;
            },
            Err(error) => tracing::warn!(number, %error, "worker not started"),
        }
        sleep(STARTED_AGAIN_AFTER).await;
    }
}

/// A client, as soon as there is a coordinator.
pub(super) async fn client(has_standby: bool) -> Client {
    connected(has_standby, false).await
}

/// The same of a program that reads the worker of its host in place.
pub(super) async fn client_beside(has_standby: bool) -> Client {
    connected(has_standby, true).await
}

async fn connected(has_standby: bool, in_place: bool) -> Client {
    let node = joined(has_standby);
    let settings = ClientSettings { in_place, ring: false, ..node.client_settings() };
    loop {
        match Client::connect(settings.clone()).await {
            Ok(client) => return client,
            Err(error) => tracing::debug!(%error, "client not connected"),
        }
        sleep(TOLD_EVERY).await;
    }
}
