//! A cluster that serves shards, each role a process of its own.

use std::time::{Duration, Instant};

use forebay_bench_harness::Served;
use forebay_bench_reads::rig::{S3, client, mount, path};
use forebay_client::Client;
use forebay_coordinator::CoordinatorSettings;
use forebay_shards::{Shards, create};
use forebay_types::Result;
use tempfile::TempDir;

use super::data::Data;

/// Time between two looks at queues in a cluster.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// Changes that were announced before a worker began may be on their way for two minutes: until then each of its answers waits for a
/// look into shared storage.
const HEARD_AFTER: Duration = Duration::from_secs(125);

/// How the cluster is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) workers: usize,
    /// Of shards, on each worker.
    pub(crate) shard_bytes: u64,
    /// The same on the first worker, where that has less.
    pub(crate) tight_bytes: Option<u64>,
    /// Between two looks of a worker at its queues.
    pub(crate) navigate_every: Duration,
}

impl Settings {
    /// Of the worker at a place.
    fn at(self, place: usize) -> Self {
        let tight = self.tight_bytes.filter(|_| place == 0);
        Self { shard_bytes: tight.unwrap_or(self.shard_bytes), ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { workers: 4, shard_bytes: 8 << 30, tight_bytes: None, navigate_every: PERIOD }
    }
}

/// An S3 server, a coordinator and workers.
pub(crate) struct Rig {
    pub(crate) s3: S3,
    pub(crate) workers: Vec<WorkerProcess>,
    /// A client over TCP.
    pub(crate) client: Client,
    address: String,
    settings: Settings,
    began: Instant,
    // Below what has its socket there.
    coordinator: Option<Served>,
    folder: TempDir,
}

/// A worker; dropping it kills it by SIGKILL.
pub(crate) struct WorkerProcess {
    served: Option<Served>,
    /// Its id, as clients know it.
    pub(crate) name: String,
    folder: TempDir,
}

impl WorkerProcess {
    fn start(coordinator: &str, settings: Settings) -> Result<Self> {
        let mut worker = Self { served: None, name: String::new(), folder: tempfile::tempdir()? };
        worker.serve(coordinator, settings)?;
        Ok(worker)
    }

    fn serve(&mut self, coordinator: &str, settings: Settings) -> Result<()> {
        let (bytes, every) = (settings.shard_bytes.to_string(), settings.navigate_every.as_millis().to_string());
        let folder = self.folder.path().display().to_string();
        let arguments = ["serve-shards".to_string(), folder, coordinator.to_string(), bytes, every];
        let (served, name) = Served::start(&arguments)?;
        (self.served, self.name) = (Some(served), name);
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.served.as_ref().expect("it is asked for while it runs").id()
    }

    pub(crate) fn kill(&mut self) {
        self.served = None;
    }
}

impl Rig {
    /// Starts all of it, with the bucket mounted.
    pub(crate) async fn start(settings: Settings) -> Result<Self> {
        let s3 = S3::start(None, Duration::ZERO)?;
        let folder = tempfile::tempdir()?;
        let (coordinator, address) = Served::start(&["serve-coordinator".to_string(), folder.path().display().to_string()])?;
        let workers = (0..settings.workers).map(|place| WorkerProcess::start(&address, settings.at(place)));
        let workers = workers.collect::<Result<_>>()?;
        let client = client(&address, false).await?;
        mount(&client, s3.endpoint(), None).await?;
        Ok(Self { s3, workers, client, address, settings, began: Instant::now(), coordinator: Some(coordinator), folder })
    }

    /// Waits until the workers of the start know of all changes that are on their way.
    pub(crate) async fn until_heard(&self) {
        tokio::time::sleep(HEARD_AFTER.saturating_sub(self.began.elapsed())).await;
    }

    /// A client of the same host, over Unix sockets.
    pub(crate) async fn client_of_host(&self) -> Result<Client> {
        client(&self.address, true).await
    }

    /// Starts a worker that was killed again, with the files that it had.
    pub(crate) fn restart(&mut self, place: usize) -> Result<()> {
        self.workers[place].serve(&self.address, self.settings.at(place))
    }

    /// Kills the coordinator by SIGKILL.
    pub(crate) fn kill_coordinator(&mut self) {
        drop(self.coordinator.take());
    }

    /// Starts it again where it was, with what it had stored.
    pub(crate) fn restart_coordinator(&mut self) -> Result<()> {
        let folder = self.folder.path().display().to_string();
        let (served, _) = Served::start(&["serve-coordinator".to_string(), folder, self.address.clone()])?;
        self.coordinator = Some(served);
        Ok(())
    }

    /// Puts workers that have nothing in the place of those that there are: what is written is in the tiers of who wrote it.
    pub(crate) async fn replace_workers(&mut self) -> Result<()> {
        let count = self.workers.len();
        self.workers.clear();
        // Until those that are gone are in no view any more.
        tokio::time::sleep(2 * CoordinatorSettings::LEASE).await;
        let workers = (0..count).map(|place| WorkerProcess::start(&self.address, self.settings.at(place)));
        self.workers = workers.collect::<Result<_>>()?;
        self.client.refresh_view().await.map(|_| ())
    }

    /// Makes a dataset of all records.
    pub(crate) async fn create(&self, data: &Data, name: &str, shards: usize, replicas: Vec<f64>) -> Result<Shards> {
        let path = path(name)?;
        let mut creating = create(&self.client, &path, data.columns()?, replicas, false).await?;
        for shard in 0..shards {
            let folder = self.folder.path().join(format!("{name}.{shard}"));
            data.build(&folder, shard, shards)?;
            creating.push(&folder, |_| {}).await?;
            std::fs::remove_dir_all(&folder)?;
        }
        creating.finish().await?;
        Shards::open(&self.client, &path).await
    }
}
