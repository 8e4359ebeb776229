use forebay_client::{Client, ClientSettings};
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::Address;
use forebay_types::{Error, ErrorKind};

use crate::commands;
use crate::config::Config;
use crate::exit::Outcome;
use crate::roles::{CoordinatorPart, RunSettings, Running, WorkerPart};

/// What statements run on: a running cluster, or one of this process' own.
pub(crate) struct Backend {
    engine: Engine,
    embedded: Option<Running>,
}

impl Backend {
    /// Connects to the running cluster, or starts one for this process alone.
    pub(crate) async fn start(config: &Config, embedded: bool, priority: i32) -> Outcome<Self> {
        if !embedded {
            let client = commands::connect(config).await.map_err(|error| match error.kind() {
                ErrorKind::Retry | ErrorKind::Closed => {
                    Error::new(error.kind(), format!("{error}; `forebay sql --embedded` runs without one"))
                }
                _ => error,
            })?;
            return Ok(Self { engine: engine(config, client, priority).await?, embedded: None });
        }
        let running = Running::start(settings(config)).await?;
        let client = Client::connect(ClientSettings {
            security: config.security().clone(),
            in_place: config.in_place(),
            ..ClientSettings::new(Address::Tcp(running.coordinator_address().to_string()))
        })
        .await?;
        Ok(Self { engine: Engine::over_client(client, EngineSettings::default()), embedded: Some(running) })
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Stops what was started for this process.
    pub(crate) async fn stop(self) {
        let Self { engine, embedded } = self;
        drop(engine);
        if let Some(running) = embedded {
            running.shutdown().await;
        }
    }
}

/// An engine whose queries run where the scheduler says, when there is one; else one of this process.
#[cfg(feature = "cluster")]
async fn engine(config: &Config, client: Client, priority: i32) -> Outcome<Engine> {
    let scheduler = match config.scheduler() {
        Some("off") => None,
        Some(scheduler) => Some(scheduler.to_string()),
        None => client.scheduler().await?,
    };
    match scheduler {
        Some(scheduler) => Ok(crate::roles::distributed_engine(client, &scheduler, config.security(), priority, None).await?),
        None => Ok(Engine::over_client(client, EngineSettings::default())),
    }
}

/// An engine of this process: this forebay was built without distributed SQL.
#[cfg(not(feature = "cluster"))]
async fn engine(config: &Config, client: Client, _priority: i32) -> Outcome<Engine> {
    match config.scheduler() {
        Some(scheduler) if scheduler != "off" => {
            Err(Error::invalid("this forebay was built without distributed SQL: unset the scheduler").into())
        }
        _ => Ok(Engine::over_client(client, EngineSettings::default())),
    }
}

/// Everything on loopback, at ports that nobody else needs to know.
fn settings(config: &Config) -> RunSettings {
    RunSettings {
        folder: config.data_dir().to_path_buf(),
        security: config.security().clone(),
        http: None,
        flight: None,
        coordinator: Some(CoordinatorPart {
            listen: "127.0.0.1:0".to_string(),
            metadata_url: config.metadata_url(),
            lease: config.lease(),
            placement: config.placement(),
        }),
        worker: Some(WorkerPart {
            coordinator: String::new(),
            listen: "127.0.0.1:0".to_string(),
            advertise: None,
            location: None,
            in_place: config.in_place(),
            dram_bytes: config.dram_bytes(),
            disk_bytes: config.disk_bytes(),
            serve_bytes_per_sec: None,
            temporary_share: 0.0,
            storage_share: config.storage_share(),
        }),
        gateway: None,
        extra_workers: 0,
        #[cfg(feature = "cluster")]
        cluster: None,
        coordinator_at: String::new(),
    }
}
