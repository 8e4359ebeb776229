//! The live cluster that the bars run against, with all objects loaded and a known order of their popularity.

use std::time::{Duration, Instant};

use forebay_client::{AdminRequest, Client, ClientSettings};
use forebay_coordinator::{CoordinatorSettings, PlacementSettings};
use forebay_demo::{S3Server, S3Settings};
use forebay_node::Node;
use forebay_placement::holder;
use forebay_transport::Security;
use forebay_types::{Error, ForebayPath, MountOptions, ObjectVersion, Result, RouteKey, Validate, WorkerId};
use forebay_worker::Tuning;
use tempfile::TempDir;

use super::LiveSettings;

const BUCKET: &str = "lake";

/// A cluster in this process over an S3 server, with everything loaded.
pub(super) struct Rig {
    pub(super) client: Client,
    pub(super) versions: Vec<ObjectVersion>,
    /// Objects by popularity, the most popular first.
    pub(super) ranks: Vec<usize>,
    node: Node,
    _s3: S3Server,
    _folder: TempDir,
}

impl Rig {
    pub(super) async fn start(workers: usize, settings: LiveSettings, placement: PlacementSettings) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let buckets = vec![BUCKET.to_string()];
        let s3 = S3Settings { buckets, anonymous: true, latency: settings.latency, ..S3Settings::default() };
        let s3 = S3Server::start(s3)?;
        let led = Node::coordinator_in(folder.path(), Security::default());
        let mut node = Node::lead(CoordinatorSettings { placement, ..led }).await?;
        for number in 0..workers {
            let room = 2 * (settings.objects * settings.object_bytes) as u64;
            let mut worker = node.worker_in(&folder.path().join(format!("worker-{number}")), room);
            worker.unix_socket = None;
            worker.serve_bytes_per_sec = Some(settings.serve_bytes_per_sec);
            let users = Tuning::default();
            let tuning = Tuning { beat: users.beat.min(settings.window / 8), ..users };
            node.start_worker_with(worker, tuning).await?;
        }
        let client = Client::connect(ClientSettings { in_place: false, ..node.client_settings() }).await?;
        let options = MountOptions { validate: Validate::Immutable, ..s3.mount_options() };
        let (name, url) = (BUCKET.parse()?, format!("s3://{BUCKET}"));
        client.control(AdminRequest::MountAdd { name, url, options }).await?;
        let mut versions = Vec::new();
        for number in 0..settings.objects {
            let bytes = content(number, settings.object_bytes);
            s3.put(BUCKET, &format!("objects/{number:03}"), &bytes).map_err(|error| Error::internal(error.to_string()))?;
            let path: ForebayPath = format!("/{BUCKET}/objects/{number:03}").parse()?;
            versions.push(client.open(&path).await?.version);
        }
        client.load(versions.clone(), false, |_| {}).await?;
        let ranks = shuffled(settings.objects, settings.seed);
        Ok(Self { client, versions, ranks, node, _s3: s3, _folder: folder })
    }

    /// The most popular object, before or after the shift.
    pub(super) fn hottest(&self, shifted: bool) -> usize {
        self.ranks[if shifted { self.ranks.len() / 2 } else { 0 }]
    }

    pub(super) fn key(&self, object: usize) -> String {
        self.versions[object].key.as_str().to_string()
    }

    /// How many workers clients are told to read an object from.
    pub(super) fn workers_of(&self, key: &str) -> usize {
        let coordinator = self.node.coordinator.as_ref().expect("it leads");
        let status = coordinator.placement(self.versions.len());
        let segment = status.segments.iter().find(|segment| segment.path.key().as_str() == key);
        segment.map_or(1, |segment| segment.routing.len())
    }

    /// Copies of all objects that are held, or on their way.
    pub(super) fn replicas(&self) -> u64 {
        let status = self.node.coordinator.as_ref().expect("it leads").placement(1);
        status.replicas_held + status.replicas_loading
    }

    /// Each object with the worker that has it before anything is planned, as numbers.
    pub(super) fn homes(&self) -> Vec<(u32, u32)> {
        let mut workers: Vec<WorkerId> = self.node.workers.iter().map(|worker| worker.id()).collect();
        workers.sort_unstable();
        let home = |version: &ObjectVersion| {
            let home = holder(RouteKey::of(version.mount, &version.key, 0), &workers);
            workers.iter().position(|worker| Some(*worker) == home).unwrap_or(0) as u32
        };
        (0..).zip(&self.versions).map(|(object, version)| (object, home(version))).collect()
    }

    /// Waits until a window has ended, for which something is read: without reads nothing is planned, and nobody hears of windows.
    pub(super) async fn window_begins(&self, window: Duration) -> Result<()> {
        let plans = || self.node.coordinator.as_ref().expect("it leads").placement(1).runs;
        let coldest = self.ranks.last().copied().unwrap_or(0);
        self.client.read(self.client.operation(), &self.versions[coldest], 0..1).await?;
        let (before, began) = (plans(), Instant::now());
        while plans() == before {
            if began.elapsed() >= window * 3 {
                return Err(Error::internal("nothing was planned in three windows"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// The bytes of an object: no two places of any two are alike.
pub(super) fn content(number: usize, len: usize) -> Vec<u8> {
    let word = |at: usize| (((number as u64) << 32) | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(word).collect();
    bytes.truncate(len);
    bytes
}

/// 0..len in an order that a seed says.
fn shuffled(len: usize, seed: u64) -> Vec<usize> {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    let mut order: Vec<usize> = (0..len).collect();
    order.shuffle(&mut rand::rngs::SmallRng::seed_from_u64(seed));
    order
}
