use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_client::{Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings, PlacementSettings};
use forebay_data_folder::{Announced, DataFolder};
use forebay_flight::{Connect, FlightServer, FlightSettings};
use forebay_s3::{Gateway, GatewaySettings};
use forebay_sql::{Engine, EngineSettings, Reach};
use forebay_transport::{Address, Security, TlsSettings};
use forebay_types::{Error, Result, format_bytes};
use forebay_worker::{Worker, WorkerSettings};

#[cfg(feature = "cluster")]
use super::cluster::{ClusterPart, ClusterRunning};
use super::http::HttpPort;
use super::sql::{SqlPart, of_holder};
use crate::exit::Outcome;
use crate::output::Output;

/// What to run in this process.
pub(crate) struct RunSettings {
    pub(crate) folder: PathBuf,
    pub(crate) security: Security,
    pub(crate) http: Option<String>,
    /// Metrics are shown to who shows nothing.
    pub(crate) metrics_anonymous: bool,
    /// Where Flight SQL listens; only beside a coordinator of this process.
    pub(crate) flight: Option<String>,
    pub(crate) coordinator: Option<CoordinatorPart>,
    pub(crate) worker: Option<WorkerPart>,
    pub(crate) gateway: Option<GatewaySettings>,
    /// How SQL runs in this process, that of Flight and of executors; none where there is neither.
    pub(crate) sql: Option<SqlPart>,
    /// Workers beside the first one, each with a folder below it.
    pub(crate) extra_workers: u16,
    /// Distributed SQL.
    #[cfg(feature = "cluster")]
    pub(crate) cluster: Option<ClusterPart>,
    /// Where the coordinator is, when it is not of the same process.
    pub(crate) coordinator_at: String,
}

impl RunSettings {
    /// What runs, in the order in which it is started.
    pub(crate) fn roles(&self) -> Vec<&'static str> {
        #[cfg(feature = "cluster")]
        let cluster = self.cluster.as_ref().map_or((false, false), |part| (part.scheduler.is_some(), part.executors.is_some()));
        #[cfg(not(feature = "cluster"))]
        let cluster = (false, false);
        let roles = [
            ("coordinator", self.coordinator.is_some()),
            ("worker", self.worker.is_some()),
            ("scheduler", cluster.0),
            ("executor", cluster.1),
            ("gateway", self.gateway.is_some()),
        ];
        roles.into_iter().filter_map(|(role, runs)| runs.then_some(role)).collect()
    }
}

/// A coordinator.
pub(crate) struct CoordinatorPart {
    pub(crate) listen: String,
    pub(crate) metadata_url: String,
    pub(crate) lease: Duration,
    pub(crate) placement: PlacementSettings,
}

/// A worker.
#[derive(Clone)]
pub(crate) struct WorkerPart {
    /// Not asked for when the coordinator is of the same process.
    pub(crate) coordinator: String,
    pub(crate) listen: String,
    pub(crate) advertise: Option<String>,
    /// Where it is; its host when not said.
    pub(crate) location: Option<String>,
    pub(crate) in_place: bool,
    pub(crate) dram_bytes: u64,
    pub(crate) disk_bytes: u64,
    /// What it sends at most; none for as much as it can.
    pub(crate) serve_bytes_per_sec: Option<u64>,
    /// Share of its tiers that temporary nodes may take.
    pub(crate) temporary_share: f64,
    /// Share of its storage from which it collects garbage.
    pub(crate) storage_share: f64,
    /// Bytes of disk for served shards.
    pub(crate) shard_bytes: u64,
}

/// The roles that run in this process.
pub(crate) struct Running {
    coordinator: Option<Arc<Coordinator>>,
    worker: Option<Arc<Worker>>,
    extra_workers: Vec<(Arc<Worker>, DataFolder)>,
    #[cfg(feature = "cluster")]
    cluster: Option<ClusterRunning>,
    gateway: Option<Gateway>,
    http: HttpPort,
    flight: Option<FlightServer>,
    coordinator_address: String,
    summary: String,
    _announced: Option<Announced>,
    // Last, so that the folder is free only when nothing uses it any more.
    _folder: Option<DataFolder>,
}

impl Running {
    /// Starts coordinator, then worker, then the doors.
    pub(crate) async fn start(settings: RunSettings) -> Result<Self> {
        // A gateway or a scheduler alone keeps nothing.
        let roles: Vec<&str> = settings.roles().into_iter().filter(|role| !["gateway", "scheduler"].contains(role)).collect();
        let folder = if roles.is_empty() { None } else { Some(DataFolder::take(&settings.folder, &roles)?) };
        if let Some(part) = &settings.coordinator {
            can_listen(&part.listen, "coordinator-listen")?;
        }
        if let Some(part) = &settings.worker {
            can_listen(&part.listen, "worker-listen")?;
        }
        if let Some(address) = &settings.http {
            can_listen(address, "http")?;
        }
        if let Some(gateway) = &settings.gateway {
            can_listen(&gateway.listen, "s3")?;
        }
        if let Some(address) = &settings.flight {
            can_listen(address, "flight")?;
        }
        let (address, is_open) = (settings.http.as_deref(), settings.metrics_anonymous);
        let http = HttpPort::open(address, settings.roles(), &settings.security, is_open).await?;
        let mut summary = match &folder {
            Some(_) => format!("Data folder {}", settings.folder.display()),
            None => format!("Cluster of {}", settings.coordinator_at),
        };
        let coordinator = match settings.coordinator {
            Some(part) => {
                let of_coordinator = CoordinatorSettings {
                    listen: Address::Tcp(part.listen),
                    metadata_url: part.metadata_url,
                    security: settings.security.clone(),
                    lease: part.lease,
                    placement: part.placement,
                };
                let coordinator = Arc::new(Coordinator::start(of_coordinator).await?);
                http.show_coordinator(&coordinator, &settings.security);
                Some(coordinator)
            }
            None => None,
        };
        let coordinator_address = match (&coordinator, &settings.worker) {
            (Some(coordinator), _) => text_of(&coordinator.address()),
            (None, Some(part)) => part.coordinator.clone(),
            (None, None) => settings.coordinator_at.clone(),
        };
        let announced = coordinator.as_ref().and_then(|_| Announced::new(&coordinator_address, &settings.folder));
        let extra = settings.worker.clone();
        let worker = match (settings.worker, &folder) {
            (Some(part), Some(folder)) => {
                summary += &format!(", DRAM tier {}, disk tier {}", format_bytes(part.dram_bytes), format_bytes(part.disk_bytes));
                let settings = worker_settings(part, folder, &coordinator_address, &settings.security);
                Some(Arc::new(Worker::start(settings).await?))
            }
            _ => None,
        };
        let mut extra_workers = Vec::new();
        if let Some(part) = extra {
            for ix in 0..settings.extra_workers {
                let folder = DataFolder::take(&settings.folder.join(format!("worker-{}", ix + 2)), &["worker"])?;
                let host = part.listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
                let part = WorkerPart { listen: format!("{host}:0"), advertise: None, ..part.clone() };
                let settings = worker_settings(part, &folder, &coordinator_address, &settings.security);
                extra_workers.push((Arc::new(Worker::start(settings).await?), folder));
            }
        }
        http.show_workers(worker.iter().chain(extra_workers.iter().map(|(worker, _)| worker)).cloned().collect());
        let spill = folder.as_ref().map(|_| settings.folder.as_path());
        let queries = match &settings.sql {
            Some(sql) => sql.engine(spill)?,
            None => EngineSettings { reach: Reach::of_mounts(), ..EngineSettings::default() },
        };
        #[cfg(feature = "cluster")]
        let cluster = match settings.cluster {
            Some(part) => {
                let workers: Vec<_> =
                    worker.iter().map(|worker| worker.id()).chain(extra_workers.iter().map(|(worker, _)| worker.id())).collect();
                let running = ClusterRunning::start(part, &coordinator_address, &settings.security, &workers, &queries).await?;
                running.roles().for_each(|role| http.show_client_of(role, running.client()));
                Some(running)
            }
            None => None,
        };
        let gateway = match settings.gateway {
            Some(gateway) => {
                let mut client = ClientSettings::new(Address::Tcp(coordinator_address.clone()));
                client.security = settings.security.clone();
                let client = Client::connect(client).await?;
                let running = Gateway::start(client.clone(), gateway).await?;
                http.show_client_of("gateway", &client);
                Some(running)
            }
            None => None,
        };
        let flight = match settings.flight {
            Some(listen) => {
                let tls = settings.security.tls.clone();
                #[cfg(feature = "cluster")]
                let way = cluster.as_ref().map(ClusterRunning::way);
                #[cfg(not(feature = "cluster"))]
                let way = None;
                let connect = http.show_statements(engines(coordinator_address.clone(), tls.clone(), way, queries));
                Some(FlightServer::start(FlightSettings { listen, tls }, connect).await?)
            }
            None => None,
        };
        Ok(Self {
            coordinator,
            worker,
            extra_workers,
            #[cfg(feature = "cluster")]
            cluster,
            gateway,
            http,
            flight,
            coordinator_address,
            summary,
            _announced: announced,
            _folder: folder,
        })
    }

    /// host:port of the coordinator.
    pub(crate) fn coordinator_address(&self) -> &str {
        &self.coordinator_address
    }

    /// host:port of the scheduler of this process.
    pub(crate) fn scheduler_address(&self) -> Option<String> {
        #[cfg(feature = "cluster")]
        return self.cluster.as_ref()?.scheduler().map(|address| address.to_string());
        #[cfg(not(feature = "cluster"))]
        None
    }

    /// Says what runs and where.
    pub(crate) fn describe(&self, output: &mut Output) -> Outcome {
        output.line(&format!("Forebay {} is up. {}.", env!("CARGO_PKG_VERSION"), self.summary))?;
        if self.coordinator.is_some() {
            output.line(&format!("  coordinator  {}", self.coordinator_address))?;
        }
        if let Some(worker) = &self.worker {
            output.line(&format!("  worker       {}", text_of(&worker.address())))?;
        }
        for (worker, _) in &self.extra_workers {
            output.line(&format!("  worker       {}", text_of(&worker.address())))?;
        }
        if let Some(scheduler) = self.scheduler_address() {
            output.line(&format!("  scheduler    {scheduler}"))?;
        }
        #[cfg(feature = "cluster")]
        for executor in self.cluster.iter().flat_map(ClusterRunning::executors) {
            output.line(&format!("  executor     {executor}"))?;
        }
        if let Some(gateway) = &self.gateway {
            output.line(&format!(
                "  s3           {}://{}",
                if gateway.is_https() { "https" } else { "http" },
                gateway.address()
            ))?;
        }
        if let Some(flight) = &self.flight {
            output.line(&format!("  flight-sql   {}", flight.address()))?;
        }
        if let Some(url) = self.http.url() {
            if self.coordinator.is_some() {
                output.line(&format!("  console      {url}"))?;
            }
            output.line(&format!("  metrics      {url}metrics"))?;
        }
        Ok(())
    }

    /// Returns when the coordinator has ended by itself, with why; never without one.
    pub(crate) async fn ended(&self) -> Result<()> {
        match &self.coordinator {
            Some(coordinator) => coordinator.stopped().await,
            None => std::future::pending().await,
        }
    }

    /// Stops the doors, then worker, then coordinator; what is cached is on disk afterwards.
    pub(crate) async fn shutdown(mut self) {
        self.http.shutdown().await;
        if let Some(gateway) = self.gateway.take() {
            gateway.shutdown().await;
        }
        if let Some(flight) = self.flight.take() {
            flight.shutdown().await;
        }
        #[cfg(feature = "cluster")]
        drop(self.cluster.take());
        for (worker, _folder) in std::mem::take(&mut self.extra_workers) {
            worker.shutdown().await;
        }
        if let Some(worker) = self.worker.take() {
            worker.shutdown().await;
        }
        if let Some(coordinator) = self.coordinator.take() {
            coordinator.shutdown().await;
        }
    }
}

/// How a query goes from here to executors.
#[cfg(feature = "cluster")]
type Way = super::cluster::ClusterWay;
#[cfg(not(feature = "cluster"))]
type Way = std::convert::Infallible;

/// Engines for callers: each with a client that shows what its caller has shown.
fn engines(coordinator: String, tls: Option<TlsSettings>, way: Option<Way>, queries: EngineSettings) -> Connect {
    Arc::new(move |credential| {
        let (way, queries) = (way.clone(), of_holder(queries.clone(), Some(&credential)));
        let security = Security::holder(credential).with_tls(tls.clone());
        let settings = ClientSettings { security, ..ClientSettings::new(Address::Tcp(coordinator.clone())) };
        Box::pin(async move {
            let client = Client::connect(settings).await?;
            match way {
                #[cfg(feature = "cluster")]
                Some(way) => way.engine(client, queries).await,
                _ => Ok(Engine::over_client(client, queries)),
            }
        })
    })
}

fn worker_settings(part: WorkerPart, folder: &DataFolder, coordinator: &str, security: &Security) -> WorkerSettings {
    WorkerSettings {
        coordinator: Address::Tcp(coordinator.to_string()),
        listen: Address::Tcp(part.listen),
        unix_socket: part.in_place.then(|| folder.socket()),
        store: StoreSettings::new(folder.tiers(), part.dram_bytes).with_disk(part.disk_bytes),
        security: security.clone(),
        advertise: part.advertise,
        location: part.location,
        serve_bytes_per_sec: part.serve_bytes_per_sec,
        temporary_share: part.temporary_share,
        storage_share: part.storage_share,
        shard_bytes: part.shard_bytes,
    }
}

/// host:port, or the socket's path.
fn text_of(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.clone(),
        Address::Unix(path) => path.display().to_string(),
    }
}

/// Tries the address first, so that the error can name the flag.
fn can_listen(address: &str, flag: &str) -> Result<()> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(Error::invalid(format!(
            "{address} is in use by another process: stop that one, or choose another address with --{flag}"
        ))),
        Err(error) => Err(Error::from(error).context(format!("can't listen at {address}; choose another address with --{flag}"))),
    }
}
