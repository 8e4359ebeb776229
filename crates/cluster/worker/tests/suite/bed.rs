//! Where a worker is tested: shared storage and a coordinator around it, and a client that speaks the protocol by hand.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_demo::S3Server;
use forebay_node::Node;
use forebay_protocol::{AdminRequest, ControlCall, ControlReply, DataReply, DataRequest, PeerRequest, RangeSpec, decode, encode};
use forebay_shared_storage::StorageSettings;
pub use forebay_testbed::until_asked as until;
use forebay_transport::{Address, Connection, Security};
use forebay_types::{
    Error, Key, Mount, MountId, MountOptions, ObjectInfo, ObjectVersion, OperationId, Result, SegmentId, Standing,
};
use forebay_worker::{Tuning, Worker, WorkerSettings};
use tempfile::TempDir;

pub const MIB: usize = 1 << 20;
pub const OPERATION: OperationId = OperationId(1);

/// Shared storage, a coordinator and one worker, with the bucket `lake` mounted as `lake`.
pub struct Bed {
    pub s3: S3Server,
    pub node: Node,
    pub mount: Mount,
    pub folder: TempDir,
    store: StoreSettings,
    patience: Duration,
    judged_within: Duration,
}

pub struct Plan {
    pub dram_bytes: u64,
    pub disk_bytes: u64,
    pub options: MountOptions,
    /// For so long the worker tries shared storage again.
    pub patience: Duration,
    /// How long readers wait for large objects that are held to their checksum.
    pub judged_within: Duration,
}

/// Of who does not wait for storage that is away.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longer than any test takes.
const JUDGED_WITHIN: Duration = Duration::from_secs(300);

impl Default for Plan {
    fn default() -> Self {
        Self {
            dram_bytes: 64 << 20,
            disk_bytes: 0,
            options: MountOptions::default(),
            patience: PATIENCE,
            judged_within: JUDGED_WITHIN,
        }
    }
}

impl Bed {
    pub async fn new(plan: Plan) -> Self {
        let folder = TempDir::new().unwrap();
        let s3 = S3Server::of_bucket("lake").unwrap();
        let mut node = Node::lead_in(folder.path(), Security::default()).await.unwrap();
        let options = MountOptions { endpoint: Some(s3.endpoint()), anonymous: true, ..plan.options };
        let mount = add_mount(node.coordinator_at(), "lake", "s3://lake", options).await;
        let store = StoreSettings::new(folder.path().join("worker"), plan.dram_bytes).with_disk(plan.disk_bytes);
        let socket = folder.path().join("worker.sock");
        add_worker(&mut node, store.clone(), Some(socket), (plan.patience, plan.judged_within)).await;
        s3.reset_counters();
        Self { s3, node, mount, folder, store, patience: plan.patience, judged_within: plan.judged_within }
    }

    /// Puts random bytes into shared storage, past the worker.
    pub fn object(&self, key: &str, bytes: usize) -> Vec<u8> {
        let data = noise(key, bytes);
        self.s3.put("lake", key, &data).unwrap();
        data
    }

    pub async fn client(&self) -> Client {
        Client::connect(&self.worker().address(), self.mount.id).await
    }

    /// Such an object, a client, and the version that it has opened.
    pub async fn opened(&self, key: &str, bytes: usize) -> (Vec<u8>, Client, ObjectVersion) {
        let (data, client) = (self.object(key, bytes), self.client().await);
        let version = client.version(key).await;
        (data, client, version)
    }

    pub async fn unix_client(&self) -> Client {
        Client::connect(&Address::Unix(self.folder.path().join("worker.sock")), self.mount.id).await
    }

    pub fn worker(&self) -> &Worker {
        self.node.workers.first().expect("the worker runs")
    }

    pub async fn restart_worker(&mut self) {
        self.stop_worker().await;
        self.start_worker().await;
    }

    pub async fn stop_worker(&mut self) {
        let worker = self.node.workers.pop().unwrap();
        worker.shutdown().await;
        // The folder is free at once.
        drop(worker);
    }

    /// In its folder, again.
    pub async fn start_worker(&mut self) {
        let socket = self.folder.path().join("worker.sock");
        add_worker(&mut self.node, self.store.clone(), Some(socket), (self.patience, self.judged_within)).await;
    }
}

/// A worker in a node of its own.
pub async fn start_worker(coordinator: &Address, store: StoreSettings, unix_socket: Option<PathBuf>) -> Arc<Worker> {
    let mut node = Node::join(coordinator.clone(), Security::default());
    add_worker(&mut node, store, unix_socket, (PATIENCE, JUDGED_WITHIN)).await
}

async fn add_worker(
    node: &mut Node,
    store: StoreSettings,
    unix_socket: Option<PathBuf>,
    (deadline, judged_within): (Duration, Duration),
) -> Arc<Worker> {
    let settings = node.worker_in(&store.folder, 0);
    let settings = WorkerSettings { store, unix_socket, ..settings };
    let storage = StorageSettings { request_timeout: Duration::from_secs(5), deadline, ..Default::default() };
    let tuning = Tuning { storage, judged_within, beat: Duration::from_millis(100), ..Default::default() };
    Arc::clone(node.start_worker_with(settings, tuning).await.unwrap())
}

pub async fn control(coordinator: &Address, request: impl Into<ControlCall>) -> Result<ControlReply> {
    let connection = Connection::connect(coordinator, &Security::default()).await?;
    match decode(&connection.call(encode(&request.into()), Vec::new()).await?.meta)? {
        ControlReply::Failed { kind, message } => Err(Error::new(kind, message)),
        reply => Ok(reply),
    }
}

pub async fn add_mount(coordinator: &Address, name: &str, url: &str, options: MountOptions) -> Mount {
    let request = AdminRequest::MountAdd { name: name.parse().unwrap(), url: url.into(), options };
    match control(coordinator, request).await.unwrap() {
        ControlReply::Mount(mount) => mount,
        other => panic!("{other:?}"),
    }
}

/// Asks for ranges ahead, for as long as `hold_ms` says or to be kept.
pub fn prefetch(version: &ObjectVersion, ranges: Vec<(u64, u32)>, keep: bool, urgent: bool, hold_ms: u32) -> DataRequest {
    let (operation, version, standing) = (OPERATION, version.clone(), Standing::default());
    DataRequest::Prefetch { operation, version, ranges, keep, urgent, hold_ms, standing }
}

/// A raw connection to a worker.
pub struct Client {
    pub connection: Connection,
    pub mount: MountId,
}

impl Client {
    pub async fn connect(address: &Address, mount: MountId) -> Self {
        Self { connection: Connection::connect(address, &Security::default()).await.unwrap(), mount }
    }

    pub async fn call(&self, request: DataRequest) -> Result<(DataReply, Bytes)> {
        self.send(request, Vec::new()).await.map(|(reply, payload, _)| (reply, payload))
    }

    /// As another worker asks.
    pub async fn ask_peer(&self, request: PeerRequest) -> Result<(DataReply, Bytes)> {
        let answer = self.connection.call(request.encode(), Vec::new()).await?;
        match decode(&answer.meta)? {
            DataReply::Failed { kind, message } => Err(Error::new(kind, message)),
            DataReply::InVain { message } => Err(Error::retry(message).in_vain()),
            reply => Ok((reply, answer.payload)),
        }
    }

    pub async fn send(&self, request: DataRequest, payload: Vec<Bytes>) -> Result<(DataReply, Bytes, Option<OwnedFd>)> {
        let answer = self.connection.call(encode(&request), payload).await?;
        match decode(&answer.meta)? {
            DataReply::Failed { kind, message } => Err(Error::new(kind, message)),
            DataReply::InVain { message } => Err(Error::retry(message).in_vain()),
            reply => Ok((reply, answer.payload, answer.descriptor)),
        }
    }

    pub async fn open(&self, key: &str) -> Result<ObjectInfo> {
        match self.call(DataRequest::Open { mount: self.mount, key: Key::new(key)? }).await?.0 {
            DataReply::Info(info) => Ok(info),
            other => panic!("{other:?}"),
        }
    }

    pub async fn version(&self, key: &str) -> ObjectVersion {
        self.open(key).await.unwrap().version
    }

    pub async fn read(&self, version: &ObjectVersion, start: u64, len: usize) -> Result<Bytes> {
        let version = version.clone();
        let request = DataRequest::Read { operation: OPERATION, version, start, len: len as u32, in_place: false };
        let (reply, payload) = self.call(request).await?;
        assert!(matches!(reply, DataReply::Read { in_place: None, .. }), "{reply:?}");
        Ok(payload)
    }

    pub async fn latest(&self, key: &str, range: RangeSpec) -> Result<(ObjectInfo, u64, Bytes)> {
        let request =
            DataRequest::ReadLatest { operation: OPERATION, mount: self.mount, key: Key::new(key)?, range, in_place: false };
        let (reply, payload) = self.call(request).await?;
        let DataReply::ReadLatest { info, start, len, in_place: None, .. } = reply else { panic!("{reply:?}") };
        assert_eq!(len as usize, payload.len());
        Ok((info, start, payload))
    }

    /// The first bytes of an object, as a client of S3 reads all of it and is told its checksum.
    pub async fn object(&self, key: &str, first: usize) -> Result<Bytes> {
        let (operation, mount, key, range) = (OPERATION, self.mount, Key::new(key)?, RangeSpec::From { start: 0 });
        let request =
            DataRequest::ReadObject { operation, mount, key, range, first: first as u32, complete: true, in_place: false };
        let (reply, payload) = self.call(request).await?;
        assert!(matches!(reply, DataReply::ReadObject { start: 0, in_place: None, .. }), "{reply:?}");
        Ok(payload)
    }

    /// Bytes of a version's first segment that are in the tiers.
    pub async fn held(&self, version: &ObjectVersion) -> u64 {
        match self.call(DataRequest::Held { segments: vec![SegmentId::of(version, 0)] }).await.unwrap().0 {
            DataReply::Held(held) => held[0].bytes,
            other => panic!("{other:?}"),
        }
    }

    pub async fn refresh(&self, prefix: &str) {
        self.call(DataRequest::Refresh { mount: self.mount, prefix: Key::new(prefix).unwrap() }).await.unwrap();
    }
}

/// Bytes that differ everywhere and are the same for the same name.
pub fn noise(name: &str, bytes: usize) -> Vec<u8> {
    let mut state =
        name.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut data = Vec::with_capacity(bytes + 8);
    while data.len() < bytes {
        data.extend_from_slice(&next(&mut state).to_le_bytes());
    }
    data.truncate(bytes);
    data
}

/// The next number of a sequence that looks random (xorshift64*).
pub fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}
