//! Starts the roles of a process in the order in which they need each other, and stops them in the reverse one.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_client::{Client, ClientSettings};
use forebay_coordinator::CoordinatorSettings;
use forebay_data_folder::DataFolder;
use forebay_flight::{Connect, FlightServer, FlightSettings};
use forebay_node::Node;
use forebay_runtime::Computing;
use forebay_s3::GatewaySettings;
use forebay_sql::{Engine, EngineSettings, Reach};
use forebay_transport::{Address, Security, TlsSettings, connections_max};
use forebay_types::{Error, Result, ResultExt, format_bytes};
use forebay_worker::WorkerSettings;
use tokio_util::task::AbortOnDropHandle;

#[cfg(feature = "cluster")]
use super::cluster::{ClusterPart, ClusterRunning};
use super::follow::follow;
use super::http::HttpPort;
use super::sql::{SqlPart, of_holder};
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;

/// How often the gateway asks for the cluster's view. It writes to stores itself: a mount that is made read-only is to be so soon.
const GATEWAY_POLL: Duration = Duration::from_secs(1);

/// What to run in this process.
pub(crate) struct RunSettings {
    pub(crate) folder: PathBuf,
    pub(crate) security: Security,
    pub(crate) http: Option<String>,
    /// Metrics are shown to who shows nothing.
    pub(crate) metrics_anonymous: bool,
    /// Where Flight SQL listens; only beside a coordinator of this process.
    pub(crate) flight: Option<String>,
    /// Its security is that of the process.
    pub(crate) coordinator: Option<CoordinatorSettings>,
    /// Its cluster is that of the process.
    pub(crate) worker: Option<WorkerSettings>,
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
    /// Nothing yet, with the HTTP port `port` if nobody says another.
    pub(crate) fn of(config: &Config, security: Security, port: u16) -> Outcome<Self> {
        Ok(Self {
            folder: config.settings.data_dir.clone(),
            security,
            http: config.http(port)?,
            metrics_anonymous: config.settings.metrics_anonymous,
            flight: None,
            coordinator: None,
            worker: None,
            gateway: None,
            sql: None,
            extra_workers: 0,
            #[cfg(feature = "cluster")]
            cluster: None,
            coordinator_at: config.settings.coordinator.0.clone(),
        })
    }

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

    /// Tries the addresses first, so that the error can name the flag.
    fn can_listen(&self) -> Result<()> {
        let coordinator = self.coordinator.as_ref().map(|coordinator| coordinator.listen.to_string());
        let worker = self.worker.as_ref().map(|worker| worker.listen.to_string());
        let addresses = [
            (coordinator.as_deref(), "coordinator-listen"),
            (worker.as_deref(), "worker-listen"),
            (self.http.as_deref(), "http"),
            (self.gateway.as_ref().map(|gateway| gateway.listen.as_str()), "s3"),
            (self.flight.as_deref(), "flight"),
        ];
        addresses.into_iter().try_for_each(|(address, flag)| address.map_or(Ok(()), |address| can_listen(address, flag)))
    }
}

pub(crate) struct Running {
    #[cfg(feature = "cluster")]
    cluster: Option<ClusterRunning>,
    http: HttpPort,
    flight: Option<FlightServer>,
    /// Of datasets that follow objects.
    refreshes: Option<AbortOnDropHandle<()>>,
    /// host:port of the coordinator.
    pub(super) coordinator_address: String,
    summary: String,
    node: Node,
}

impl Running {
    /// Starts coordinator, then worker, then the doors.
    pub(crate) async fn start(settings: RunSettings) -> Result<Self> {
        // A gateway or a scheduler alone keeps nothing.
        let roles: Vec<&str> = settings.roles().into_iter().filter(|role| !["gateway", "scheduler"].contains(role)).collect();
        let folder = if roles.is_empty() { None } else { Some(DataFolder::take(&settings.folder, &roles)?) };
        settings.can_listen()?;
        let (address, is_open) = (settings.http.as_deref(), settings.metrics_anonymous);
        let http = HttpPort::open(address, settings.roles(), &settings.security, is_open).await?;
        let (mut summary, spill) = match &folder {
            Some(_) => (format!("Data folder {}", settings.folder.display()), Some(settings.folder.as_path())),
            None => (format!("Cluster of {}", settings.coordinator_at), None),
        };
        let mut node = match settings.coordinator {
            Some(coordinator) => {
                let security = settings.security.clone();
                let mut node = Node::lead(CoordinatorSettings { security, ..coordinator }).await?;
                node.announce(&settings.folder);
                node
            }
            None => Node::join(Address::Tcp(settings.coordinator_at), settings.security.clone()),
        };
        if let Some(folder) = folder {
            node.hold(folder);
        }
        if let Some(coordinator) = &node.coordinator {
            http.show_coordinator(coordinator, &settings.security);
            http.show_workshop(&settings.folder)?;
        }
        let coordinator_address = node.coordinator_at().to_string();
        if let Some(worker) = settings.worker {
            let store = &worker.store;
            let disk_bytes = store.disks.iter().fold(store.disk_bytes, |sum, disk| sum.saturating_add(disk.bytes));
            summary += &format!(", DRAM tier {}, disk tier {}", format_bytes(store.dram_bytes), format_bytes(disk_bytes));
            let (coordinator, security) = (node.coordinator_at().clone(), settings.security.clone());
            let first = WorkerSettings { coordinator, security, ..worker };
            node.start_worker(first.clone()).await?;
            for ix in 0..settings.extra_workers {
                let name = format!("worker-{}", ix + 2);
                let folder = settings.folder.join(&name);
                node.hold(DataFolder::take(&folder, &["worker"])?);
                node.start_worker(beside(&first, &folder, &name)).await?;
            }
        }
        http.show_workers(node.workers.clone());
        let queries = match &settings.sql {
            Some(sql) => sql.engine(spill)?,
            None => EngineSettings { reach: Reach::of_mounts(), ..EngineSettings::default() },
        };
        #[cfg(feature = "cluster")]
        let cluster = match settings.cluster {
            Some(part) => {
                let workers: Vec<_> = node.workers.iter().map(|worker| worker.id()).collect();
                let running = ClusterRunning::start(part, &coordinator_address, &settings.security, &workers, &queries).await?;
                http.show_cluster(&running);
                Some(running)
            }
            None => None,
        };
        if let Some(gateway) = settings.gateway {
            let client = Client::connect(ClientSettings { view_poll: GATEWAY_POLL, ..node.client_settings() }).await?;
            let gateway = GatewaySettings { connections_max: connections_max(), ..gateway };
            node.serve_s3(client.clone(), gateway).await?;
            http.show_client_of("gateway", &client);
        }
        let flight = match settings.flight {
            Some(listen) => {
                let tls = settings.security.tls.clone();
                // Statements compute: what this process answers must not wait for them.
                let computing = Computing::start("query").context(|| "threads for queries can't be started")?;
                let queries = EngineSettings { computing: Some(computing), ..queries };
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
            #[cfg(feature = "cluster")]
            cluster,
            http,
            flight,
            refreshes: follow(&node, &settings.folder),
            coordinator_address,
            summary,
            node,
        })
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
        if self.node.coordinator.is_some() {
            output.line(&format!("  coordinator  {}", self.coordinator_address))?;
        }
        for worker in &self.node.workers {
            output.line(&format!("  worker       {}", worker.address()))?;
        }
        if let Some(scheduler) = self.scheduler_address() {
            output.line(&format!("  scheduler    {scheduler}"))?;
        }
        #[cfg(feature = "cluster")]
        for executor in self.cluster.iter().flat_map(ClusterRunning::executors) {
            output.line(&format!("  executor     {executor}"))?;
        }
        if let Some(gateway) = &self.node.gateway {
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
            if self.node.coordinator.is_some() {
                output.line(&format!("  console      {url}"))?;
            }
            output.line(&format!("  metrics      {url}metrics"))?;
        }
        Ok(())
    }

    /// Returns when the coordinator has ended by itself, with why; never without one.
    pub(crate) async fn ended(&self) -> Result<()> {
        self.node.ended().await
    }

    /// Stops the doors, then worker, then coordinator; what is cached is on disk afterwards.
    pub(crate) async fn shutdown(self) {
        drop(self.refreshes);
        self.http.shutdown().await;
        if let Some(flight) = self.flight {
            flight.shutdown().await;
        }
        #[cfg(feature = "cluster")]
        drop(self.cluster);
        self.node.shutdown().await;
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

/// A further worker of this process: at any port of the first one's host, in folders of its own, on other disks too.
fn beside(first: &WorkerSettings, folder: &Path, name: &str) -> WorkerSettings {
    let listen = first.listen.to_string();
    let host = listen.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
    let mut worker = WorkerSettings { listen: Address::Tcp(format!("{host}:0")), advertise: None, ..first.clone() };
    worker.unix_socket = worker.unix_socket.map(|_| DataFolder::socket_in(folder));
    worker.store.folder = DataFolder::tiers_in(folder);
    for disk in &mut worker.store.disks {
        disk.folder.push(name);
        // Where the disk is away there is nothing to make it in, which the worker tells.
        let _ = std::fs::create_dir(&disk.folder);
    }
    worker
}

fn can_listen(address: &str, flag: &str) -> Result<()> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(Error::invalid(format!(
            "{address} is in use by another process: stop that one, or choose another address with --{flag}"
        ))),
        Err(error) => Err(Error::from(error).context(format!("can't listen at {address}; choose another address with --{flag}"))),
    }
}
