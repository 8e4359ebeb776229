//! Where a worker is tested: shared storage and a coordinator around it, and a client that speaks the protocol by hand.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_protocol::{AdminRequest, ControlCall, ControlReply, DataReply, DataRequest, PeerRequest, RangeSpec, decode, encode};
use forebay_shared_storage::StorageSettings;
use forebay_testing::S3Server;
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, Key, Mount, MountId, MountOptions, ObjectInfo, ObjectVersion, OperationId, Result};
use forebay_worker::{Tuning, Worker, WorkerSettings};
use tempfile::TempDir;

pub const MIB: usize = 1 << 20;
pub const OPERATION: OperationId = OperationId(1);

/// Shared storage, a coordinator and one worker, with the bucket `lake` mounted as `lake`.
pub struct Bed {
    pub s3: S3Server,
    pub coordinator: Option<Coordinator>,
    pub coordinator_address: Address,
    pub mount: Mount,
    worker: Option<Worker>,
    pub folder: TempDir,
    store: StoreSettings,
}

pub struct Plan {
    pub dram_bytes: u64,
    pub disk_bytes: u64,
    pub options: MountOptions,
}

impl Default for Plan {
    fn default() -> Self {
        Self { dram_bytes: 64 << 20, disk_bytes: 0, options: MountOptions::default() }
    }
}

impl Bed {
    pub async fn new(plan: Plan) -> Self {
        let folder = TempDir::new().unwrap();
        let s3 = S3Server::of_bucket("lake").unwrap();
        let coordinator = start_coordinator(&folder, Address::Tcp("127.0.0.1:0".into())).await;
        let coordinator_address = coordinator.address();
        let options = MountOptions { endpoint: Some(s3.endpoint()), anonymous: true, ..plan.options };
        let mount = add_mount(&coordinator_address, "lake", "s3://lake", options).await;
        let store = StoreSettings::new(folder.path().join("worker"), plan.dram_bytes).with_disk(plan.disk_bytes);
        let worker = start_worker(&coordinator_address, store.clone(), Some(folder.path().join("worker.sock"))).await;
        s3.reset_counters();
        Self { s3, coordinator: Some(coordinator), coordinator_address, mount, worker: Some(worker), folder, store }
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

    pub async fn unix_client(&self) -> Client {
        Client::connect(&Address::Unix(self.folder.path().join("worker.sock")), self.mount.id).await
    }

    pub fn worker(&self) -> &Worker {
        self.worker.as_ref().expect("the worker runs")
    }

    pub async fn restart_worker(&mut self) {
        let worker = self.worker.take().unwrap();
        worker.shutdown().await;
        // The folder is free at once.
        drop(worker);
        let socket = self.folder.path().join("worker.sock");
        self.worker = Some(start_worker(&self.coordinator_address, self.store.clone(), Some(socket)).await);
    }
}

pub async fn start_coordinator(folder: &TempDir, listen: Address) -> Coordinator {
    let settings = CoordinatorSettings::new(listen, format!("sqlite:{}", folder.path().join("metadata.db").display()));
    Coordinator::start(settings).await.unwrap()
}

pub async fn start_worker(coordinator: &Address, store: StoreSettings, unix_socket: Option<PathBuf>) -> Worker {
    let listen = Address::Tcp("127.0.0.1:0".into());
    let settings = WorkerSettings { unix_socket, ..WorkerSettings::new(coordinator.clone(), listen, store) };
    let storage =
        StorageSettings { request_timeout: Duration::from_secs(5), deadline: Duration::from_secs(1), ..Default::default() };
    let tuning = Tuning { storage, beat: Duration::from_millis(100), ..Default::default() };
    Worker::start_with(settings, tuning).await.unwrap()
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
            reply => Ok((reply, answer.payload)),
        }
    }

    pub async fn send(&self, request: DataRequest, payload: Vec<Bytes>) -> Result<(DataReply, Bytes, Option<OwnedFd>)> {
        let answer = self.connection.call(encode(&request), payload).await?;
        match decode(&answer.meta)? {
            DataReply::Failed { kind, message } => Err(Error::new(kind, message)),
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

/// Waits until `holds`; panics after a minute.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < Duration::from_secs(60), "still not so after a minute: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
