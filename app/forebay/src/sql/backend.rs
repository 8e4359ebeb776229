//! What `forebay sql` runs on: the cluster's scheduler, this process over a running cluster, or a cluster of its own.

use std::time::Duration;

use forebay_client::{Client, ClientSettings, Wait};
use forebay_coordinator::CoordinatorSettings;
use forebay_data_folder::DataFolder;
use forebay_node::Node;
use forebay_runtime::Computing;
use forebay_sql::{Engine, EngineSettings, Reach};
use forebay_transport::Security;
use forebay_types::{Error, ErrorKind, Result, ResultExt};
use forebay_worker::WorkerSettings;

use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::roles::{SqlPart, own_worker};

/// A coordinator that took so long to answer was away.
const AWAY: Duration = Duration::from_millis(250);
/// Schedulers tell a coordinator of themselves every second.
#[cfg(feature = "cluster")]
const TOLD_WITHIN: Duration = Duration::from_secs(3);

/// A job that is given up is cancelled within this.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);

/// What statements run on: a running cluster, or one of this process' own.
pub(crate) struct Backend {
    pub(super) engine: Engine,
    embedded: Option<Node>,
}

impl Backend {
    /// Connects to the running cluster, or starts one for this process alone.
    pub(crate) async fn start(config: &Config, embedded: bool, priority: i32) -> Outcome<Self> {
        if !embedded {
            let (wait, began) = (Wait::new(config.settings.wait, |what| eprintln!("{what}")), forebay_runtime::now());
            let coordinator = format!("the coordinator at {}", config.settings.coordinator.0);
            let client = wait.until(&coordinator, || connect(config)).await.map_err(|error| match error.kind() {
                ErrorKind::Retry | ErrorKind::Closed => {
                    Error::new(error.kind(), format!("{error}; `forebay sql --embedded` runs without one"))
                }
                _ => error,
            })?;
            let is_new = began.elapsed() >= AWAY;
            return Ok(Self { engine: engine(config, client, priority, wait, is_new).await?, embedded: None });
        }
        let node = alone(config).await?;
        let settings = node.client_settings();
        let queries = SqlPart::of(config).own_engine(Some(&config.settings.data_dir), settings.security.shows.as_ref())?;
        // Its worker has no room for temporary data, which would be gone with the process: below `/tmp` are files of this machine.
        let reach = Reach { temporary: false, ..queries.reach.clone() };
        let queries = EngineSettings { priority, reach, computing: Some(apart()?), ..queries };
        let client = Client::connect(ClientSettings { in_place: config.settings.in_place, ..settings }).await?;
        Ok(Self { engine: Engine::over_client(client, queries), embedded: Some(node) })
    }

    /// Stops what was started for this process.
    pub(crate) async fn stop(self) {
        let Self { engine, embedded } = self;
        // A scheduler that does not answer keeps nobody waiting.
        let _ = forebay_runtime::time::timeout(SETTLED_WITHIN, engine.settle()).await;
        drop(engine);
        if let Some(node) = embedded {
            node.shutdown().await;
        }
    }
}

/// An engine whose queries run where the scheduler says, when there is one; else one of this process. A coordinator that is new has
/// not heard of its scheduler yet.
#[cfg(feature = "cluster")]
async fn engine(config: &Config, client: Client, priority: i32, wait: Wait, is_new: bool) -> Outcome<Engine> {
    let (scheduler, finds) = match config.scheduler() {
        Some("off") => (None, None),
        Some(scheduler) => (Some(scheduler.to_string()), None),
        None => (known_scheduler(&client, is_new).await?, Some(client.clone())),
    };
    let queries = SqlPart::of(config).own_engine(None, config.security.shows.as_ref())?;
    let queries = EngineSettings { priority, computing: Some(apart()?), ..queries };
    match scheduler {
        Some(scheduler) => {
            let security = config.security.clone();
            let settings = forebay_distributed::ClusterSettings { scheduler, finds, wait, security, priority, partitions: None };
            Ok(crate::roles::distributed_engine(client, settings, queries).await?)
        }
        None => Ok(Engine::over_client(client, queries)),
    }
}

/// The scheduler that the coordinator knows of; a new one is given the time to be told.
#[cfg(feature = "cluster")]
async fn known_scheduler(client: &Client, is_new: bool) -> Outcome<Option<String>> {
    let began = forebay_runtime::now();
    loop {
        let known = client.scheduler().await?;
        if known.is_some() || !is_new || began.elapsed() > TOLD_WITHIN {
            return Ok(known);
        }
        forebay_runtime::time::sleep(AWAY).await;
    }
}

/// An engine of this process: this forebay was built without distributed SQL.
#[cfg(not(feature = "cluster"))]
async fn engine(config: &Config, client: Client, priority: i32, _wait: Wait, _is_new: bool) -> Outcome<Engine> {
    match config.scheduler() {
        Some(scheduler) if scheduler != "off" => {
            Err(Error::invalid("this forebay was built without distributed SQL: unset the scheduler").into())
        }
        _ => {
            let queries = SqlPart::of(config).own_engine(None, config.security.shows.as_ref())?;
            Ok(Engine::over_client(client, EngineSettings { priority, computing: Some(apart()?), ..queries }))
        }
    }
}

/// Threads that statements are planned and run by. Whoever waits for one looks for Ctrl-C at once, however long it gives way to nobody.
fn apart() -> Result<Computing> {
    Computing::start("query").context(|| "threads for queries can't be started")
}

/// Everything on loopback, at ports that nobody else needs to know, and where nobody else is to come in.
async fn alone(config: &Config) -> Result<Node> {
    let folder = &config.settings.data_dir;
    let taken = DataFolder::take(folder, &["coordinator", "worker"])?;
    let (metadata_url, lease, placement) = (config.settings.metadata.0.clone(), config.settings.lease, config.placement());
    let settings = Node::coordinator_in(folder, Security::default());
    let mut node = Node::lead(CoordinatorSettings { metadata_url, lease, placement, ..settings }).await?;
    node.hold(taken);
    let worker = own_worker(config, &node);
    node.start_worker(WorkerSettings { temporary_share: 0.0, shard_bytes: 0, ..worker }).await?;
    Ok(node)
}
