//! Coordinator, worker, client and gateway in one process, over an S3 server or a folder.

use std::net::SocketAddr;

use forebay_client::{Client, ClientSettings, Security};
use forebay_demo::{ACCESS_KEY, S3Server, S3Settings, SECRET_KEY};
use forebay_node::Node;
use forebay_s3::{AccessRule, GatewaySettings};
use forebay_shared_storage::{AccessKey, StorageSettings};
use forebay_testbed::add_mount;
pub use forebay_testbed::bytes;
use forebay_types::{MountOptions, Validate};

/// The access key of the gateway's tests; the store's is another.
pub const ID: &str = "AKIDFOREBAY";
pub const SECRET: &str = "gateway/secret+key";

pub struct Cluster {
    pub client: Client,
    pub node: Node,
    _folder: tempfile::TempDir,
}

#[allow(unsafe_code, reason = "the environment is set before any other thread of the tests reads it")]
fn set_env(name: &str, value: &str) {
    // SAFETY: called once, in the first test that starts a cluster; nothing here changes the environment afterwards.
    unsafe { std::env::set_var(name, value) }
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
            set.iter().for_each(|(name, value)| set_env(name, value));
        });
        let folder = tempfile::tempdir().unwrap();
        let mut node = Node::lead_in(folder.path(), Security::default()).await.unwrap();
        let worker = node.worker_in(folder.path(), 512 << 20);
        node.start_worker(worker).await.unwrap();
        let settings = ClientSettings { storage: store_key(), ..node.client_settings() };
        Self { client: Client::connect(settings).await.unwrap(), node, _folder: folder }
    }

    /// A cluster with the mount `lake` over the bucket `data` of a server of its own, and a gateway.
    pub async fn over_s3(change: impl FnOnce(&mut MountOptions), settings: GatewaySettings) -> (Self, S3Server) {
        let s3 = S3Server::start(S3Settings { buckets: vec!["data".into(), "other".into()], ..S3Settings::default() }).unwrap();
        let mut cluster = Self::start().await;
        cluster.mount("lake", "s3://data", &s3.endpoint(), change).await;
        cluster.serve(settings).await;
        (cluster, s3)
    }

    /// A mount over a folder, which lasts as long as it is kept.
    pub async fn over_files(settings: GatewaySettings) -> (tempfile::TempDir, Self) {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self::start().await;
        let options = MountOptions { validate: Validate::Always, ..MountOptions::default() };
        add_mount(&cluster.client, "nas", &format!("file://{}", folder.path().display()), options).await;
        cluster.serve(settings).await;
        (folder, cluster)
    }

    pub async fn mount(&self, name: &str, url: &str, endpoint: &str, change: impl FnOnce(&mut MountOptions)) {
        let mut options = MountOptions { endpoint: Some(endpoint.into()), validate: Validate::Always, ..MountOptions::default() };
        change(&mut options);
        add_mount(&self.client, name, url, options).await;
    }

    pub async fn serve(&mut self, settings: GatewaySettings) {
        self.node.serve_s3(self.client.clone(), settings).await.unwrap();
    }

    pub fn address(&self) -> SocketAddr {
        self.node.gateway.as_ref().unwrap().address()
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    pub fn at_hand(&self) -> u64 {
        self.client.counters().reads_at_hand
    }

    /// Bytes that the tiers hold.
    pub fn cached(&self) -> u64 {
        self.node.workers[0].report().dram.1
    }
}
