//! Coordinator, worker, client and gateway in one process, over an S3 server or a folder.

use std::net::SocketAddr;
use std::path::Path;

use forebay_block_store::StoreSettings;
use forebay_client::{Address, AdminRequest, Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_s3::{AccessRule, Gateway, GatewaySettings};
use forebay_shared_storage::{AccessKey, StorageSettings};
use forebay_testing::{ACCESS_KEY, S3Server, S3Settings, SECRET_KEY};
use forebay_types::{MountOptions, Validate};
use forebay_worker::{Worker, WorkerSettings};

/// The access key of the gateway's tests; the store's is another.
pub const ID: &str = "AKIDFOREBAY";
pub const SECRET: &str = "gateway/secret+key";

pub struct Cluster {
    pub client: Client,
    pub gateway: Option<Gateway>,
    pub worker: Worker,
    _coordinator: Coordinator,
    _folder: tempfile::TempDir,
}

fn local() -> Address {
    Address::Tcp("127.0.0.1:0".into())
}

pub fn store_key() -> StorageSettings {
    let access_key = Some(AccessKey { id: ACCESS_KEY.into(), secret: SECRET_KEY.into() });
    StorageSettings { max_retries: 2, access_key, ..StorageSettings::default() }
}

pub fn gateway_settings() -> GatewaySettings {
    let mut settings = GatewaySettings::new("127.0.0.1:0");
    settings.keys.push(AccessRule::new(ID, SECRET));
    settings
}

impl Cluster {
    /// Starts all but the gateway and the mounts.
    pub async fn start() -> Self {
        // The worker takes the store's keys from the environment, as in life.
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let set = [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)];
            set.iter().for_each(|(name, value)| super::store::set_env(name, value));
        });
        let folder = tempfile::tempdir().unwrap();
        let metadata_url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let settings = CoordinatorSettings::new(local(), metadata_url);
        let coordinator = Coordinator::start(settings).await.unwrap();
        let store = StoreSettings::new(folder.path().join("tiers"), 512 << 20);
        let mut settings = WorkerSettings::new(coordinator.address(), local(), store);
        settings.unix_socket = Some(folder.path().join("worker.sock"));
        let worker = Worker::start(settings).await.unwrap();
        let mut settings = ClientSettings::new(coordinator.address());
        settings.storage = store_key();
        let client = Client::connect(settings).await.unwrap();
        Self { client, gateway: None, worker, _coordinator: coordinator, _folder: folder }
    }

    /// A cluster with the mount `lake` over the bucket `data` of a server of its own, and a gateway.
    pub async fn over_s3(change: impl FnOnce(&mut MountOptions), settings: GatewaySettings) -> (Self, S3Server) {
        let s3 = S3Server::start(S3Settings { buckets: vec!["data".into(), "other".into()], ..S3Settings::default() }).unwrap();
        let mut cluster = Self::start().await;
        cluster.mount("lake", "s3://data", &s3.endpoint(), change).await;
        cluster.serve(settings).await;
        (cluster, s3)
    }

    /// A mount over a folder.
    pub async fn over_files(folder: &Path) -> Self {
        let mut cluster = Self::start().await;
        let (name, url) = ("nas".parse().unwrap(), format!("file://{}", folder.display()));
        let options = MountOptions { validate: Validate::Always, ..MountOptions::default() };
        cluster.client.control(AdminRequest::MountAdd { name, url, options }).await.unwrap();
        cluster.serve(gateway_settings()).await;
        cluster
    }

    pub async fn mount(&self, name: &str, url: &str, endpoint: &str, change: impl FnOnce(&mut MountOptions)) {
        let mut options = MountOptions { endpoint: Some(endpoint.into()), validate: Validate::Always, ..MountOptions::default() };
        change(&mut options);
        let add = AdminRequest::MountAdd { name: name.parse().unwrap(), url: url.into(), options };
        self.client.control(add).await.unwrap();
    }

    pub async fn serve(&mut self, settings: GatewaySettings) {
        self.gateway = Some(Gateway::start(self.client.clone(), settings).await.unwrap());
    }

    pub fn address(&self) -> SocketAddr {
        self.gateway.as_ref().unwrap().address()
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Bytes that the tiers hold.
    pub fn cached(&self) -> u64 {
        self.worker.report().dram.1
    }
}

/// Bytes that a seed says.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
