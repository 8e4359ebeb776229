//! What benchmarks run against: an S3 server and a node, each a process of its own, so that their CPU time and memory
//! are their own too.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use forebay_bench_harness::{Served, security};
use forebay_client::{Client, ClientSettings};
use forebay_demo::{ACCESS_KEY, S3Counters, SECRET_KEY};
use forebay_protocol::AdminRequest;
use forebay_shared_storage::{PutCondition, Storage, StorageSettings};
use forebay_transport::Address;
use forebay_types::{BitRate, Error, ForebayPath, Key, Mount, MountId, MountOptions, ObjectInfo, Result};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// The bucket that everything is in.
pub const BUCKET: &str = "bench";
/// Its mount.
pub const MOUNT: &str = "lake";

/// How the two processes are set up.
#[derive(Clone, Debug)]
pub struct RigSettings {
    /// Of the S3 server, bytes a second.
    pub link: Option<u64>,
    /// Of the S3 server, a request.
    pub latency: Duration,
    /// The mount's bound, bytes a second.
    pub bound: Option<u64>,
    /// Capacity of the node's DRAM tier in bytes; 0 for a coordinator alone.
    pub dram_bytes: u64,
    /// Capacity of the node's disk tier in bytes; 0 for none.
    pub disk_bytes: u64,
    /// Where the node's worker listens, and where others are told that it does: behind a link.
    pub behind: Option<(String, String)>,
    /// A window of popularity, with polls of a third of it at most; as users have it when not set.
    pub window: Option<Duration>,
}

impl Default for RigSettings {
    fn default() -> Self {
        let (link, bound, behind, window) = (None, None, None, None);
        Self { link, latency: Duration::ZERO, bound, dram_bytes: 4 << 30, disk_bytes: 0, behind, window }
    }
}

/// [`S3Counters`] as they cross the pipe.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ServerCounts {
    /// GET requests of objects.
    pub gets: u64,
    /// HEAD requests.
    pub heads: u64,
    /// All requests.
    pub requests: u64,
    /// Bytes of bodies sent in answers to GETs of objects.
    pub bytes_out: u64,
}

impl From<S3Counters> for ServerCounts {
    fn from(counters: S3Counters) -> Self {
        Self { gets: counters.gets, heads: counters.heads, requests: counters.requests(), bytes_out: counters.bytes_out }
    }
}

/// An S3 server in a process of its own.
pub struct S3 {
    served: Served,
    endpoint: String,
    _folder: TempDir,
}

impl S3 {
    /// Starts one with an empty bucket.
    pub fn start(link: Option<u64>, latency: Duration) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (link, latency) = (link.unwrap_or(0).to_string(), latency.as_millis().to_string());
        let (served, endpoint) = Served::start(["serve-s3", &shown(&folder), &link, &latency])?;
        Ok(Self { served, endpoint, _folder: folder })
    }

    /// Its URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// CPU time that it took.
    pub fn cpu(&self) -> Result<Duration> {
        forebay_bench_harness::cpu::of_process(self.served.id())
    }

    /// What it was asked since the last call, and counts from zero again.
    pub fn take_counters(&mut self) -> Result<ServerCounts> {
        let line = self.served.ask("take")?;
        serde_json::from_str(&line).map_err(|error| Error::internal(format!("counters {line:?}: {error}")))
    }

    /// Sets the link's bandwidth (bytes a second, 0 for no limit) and latency.
    pub fn set_link(&mut self, bytes_per_sec: u64, latency: Duration) -> Result<()> {
        self.served.ask(&format!("link {bytes_per_sec} {}", latency.as_millis())).map(|_| ())
    }

    /// A door to its bucket that bypasses Forebay.
    pub fn storage(&self) -> Result<Storage> {
        door(self.endpoint.clone(), BUCKET)
    }

    /// Writes an object, past any limit of the link.
    pub async fn put(&mut self, key: &str, bytes: Bytes) -> Result<ObjectInfo> {
        self.storage()?.put(&Key::new(key)?, vec![bytes], PutCondition::Any).await
    }
}

/// A bucket of who speaks S3 at an endpoint.
fn door(endpoint: String, bucket: &str) -> Result<Storage> {
    let options = MountOptions { endpoint: Some(endpoint), ..MountOptions::default() };
    let mount = Mount { id: MountId(u64::MAX), name: "direct".parse()?, url: format!("s3://{bucket}"), options };
    Storage::open(&mount, StorageSettings::default())
}

/// A coordinator and a worker in a process of their own.
pub struct Node {
    served: Served,
    address: String,
    _folder: TempDir,
}

impl Node {
    /// Starts one without mounts.
    pub fn start(settings: &RigSettings) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (dram_bytes, disk_bytes) = (settings.dram_bytes.to_string(), settings.disk_bytes.to_string());
        let mut arguments = vec!["serve-node".to_string(), shown(&folder), dram_bytes, disk_bytes];
        if let Some((listen, advertise)) = &settings.behind {
            arguments.extend([listen.clone(), advertise.clone()]);
        }
        arguments.extend(settings.window.map(|window| format!("--window-ms={}", window.as_millis())));
        let (served, address) = Served::start(&arguments)?;
        Ok(Self { served, address, _folder: folder })
    }

    /// Bytes of its live heap.
    pub fn live_bytes(&mut self) -> Result<u64> {
        self.number("heap")
    }

    /// Bytes that its worker has read from the sockets of shared storage.
    pub fn socket_bytes_in(&mut self) -> Result<u64> {
        self.number("sockets")
    }

    /// Has it serve S3 from now on; a door to the mount through that.
    pub fn gateway(&mut self) -> Result<Storage> {
        door(format!("http://127.0.0.1:{}", self.number("gateway")?), MOUNT)
    }

    fn number(&mut self, request: &str) -> Result<u64> {
        let line = self.served.ask(request)?;
        line.parse().map_err(|error| Error::internal(format!("{request} answered {line:?}: {error}")))
    }

    /// A client of it.
    pub async fn client(&self, in_place: bool) -> Result<Client> {
        client(&self.address, in_place).await
    }

    /// Where its coordinator listens.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Another worker, in a process of its own; dropping it kills it.
pub struct Worker {
    served: Served,
    _folder: TempDir,
}

impl Worker {
    /// Starts one that joins the coordinator, and returns when it has.
    pub fn start(coordinator: &str, dram_bytes: u64) -> Result<Self> {
        Self::with(coordinator, dram_bytes, &[])
    }

    /// The same of one that sends so many bytes a second at most, and that nobody reads in place.
    pub fn paced(coordinator: &str, dram_bytes: u64, bytes_per_sec: u64) -> Result<Self> {
        let sends = format!("--sends={bytes_per_sec}");
        Self::with(coordinator, dram_bytes, &[sends.as_str()])
    }

    /// From now on it sends so many bytes a second at most.
    pub fn sends(&mut self, bytes_per_sec: u64) -> Result<()> {
        self.served.ask(&format!("sends {bytes_per_sec}")).map(|_| ())
    }

    fn with(coordinator: &str, dram_bytes: u64, more: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (shown, dram_bytes) = (shown(&folder), dram_bytes.to_string());
        let always = ["serve-worker", shown.as_str(), coordinator, dram_bytes.as_str()];
        let (served, _) = Served::start([&always[..], more].concat())?;
        Ok(Self { served, _folder: folder })
    }
}

fn shown(folder: &TempDir) -> String {
    folder.path().display().to_string()
}

/// A client of the coordinator at `address`.
pub async fn client(address: &str, in_place: bool) -> Result<Client> {
    let coordinator = Address::Tcp(address.to_string());
    Client::connect(ClientSettings { in_place, security: security(), ..ClientSettings::new(coordinator) }).await
}

/// Both, with the bucket mounted.
pub struct Rig {
    /// The S3 server.
    pub s3: S3,
    /// The node.
    pub node: Node,
    /// A client that reads in place.
    pub client: Client,
}

impl Rig {
    /// Starts both and mounts the bucket.
    pub async fn start(settings: RigSettings) -> Result<Self> {
        let s3 = S3::start(settings.link, settings.latency)?;
        let node = Node::start(&settings)?;
        let client = node.client(true).await?;
        mount(&client, s3.endpoint(), settings.bound).await?;
        Ok(Self { s3, node, client })
    }
}

/// Mounts the bucket at `endpoint`.
pub async fn mount(client: &Client, endpoint: &str, bound: Option<u64>) -> Result<()> {
    let options = MountOptions {
        endpoint: Some(endpoint.to_string()),
        bandwidth: bound.map(BitRate::from_bytes_per_sec),
        ..MountOptions::default()
    };
    client.control(AdminRequest::MountAdd { name: MOUNT.parse()?, url: format!("s3://{BUCKET}"), options }).await?;
    client.refresh_view().await.map(|_| ())
}

/// The path of `key` in the mount.
pub fn path(key: &str) -> Result<ForebayPath> {
    format!("/{MOUNT}/{key}").parse()
}

/// The mount as SQL names it, without a slash at its end.
pub fn mounted() -> String {
    format!("/{MOUNT}")
}

/// Runs this program again with the S3 server's credentials in the environment, unless they are there.
pub fn with_credentials() -> Result<()> {
    if std::env::var("AWS_SECRET_ACCESS_KEY").as_deref() == Ok(SECRET_KEY) {
        return Ok(());
    }
    use std::os::unix::process::CommandExt;
    let error = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_SESSION_TOKEN")
        .exec();
    Err(error.into())
}
