use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_client::{Client, ClientSettings};
use forebay_coordinator::{Coordinator, CoordinatorSettings, PlacementSettings};
use forebay_data_folder::DataFolder;
use forebay_flight::{FlightServer, FlightSettings};
use forebay_s3::{Gateway, GatewaySettings};
use forebay_sql::{Engine, EngineSettings};
use forebay_transport::{Address, Security};
use forebay_types::{Error, Result, format_bytes};
use forebay_worker::{Worker, WorkerSettings};

use super::http::Http;
use super::metrics::{self, Metrics};
use crate::exit::Outcome;
use crate::output::Output;

/// What to run in this process.
pub(crate) struct RunSettings {
    pub(crate) folder: PathBuf,
    pub(crate) security: Security,
    pub(crate) http: Option<String>,
    /// Where Flight SQL listens; only beside a coordinator of this process.
    pub(crate) flight: Option<String>,
    pub(crate) coordinator: Option<CoordinatorPart>,
    pub(crate) worker: Option<WorkerPart>,
    pub(crate) gateway: Option<GatewaySettings>,
    /// Where the coordinator is, when it is not of the same process.
    pub(crate) coordinator_at: String,
}

/// A coordinator.
pub(crate) struct CoordinatorPart {
    pub(crate) listen: String,
    pub(crate) metadata_url: String,
    pub(crate) lease: Duration,
    pub(crate) placement: PlacementSettings,
}

/// A worker.
pub(crate) struct WorkerPart {
    /// Not asked for when the coordinator is of the same process.
    pub(crate) coordinator: String,
    pub(crate) listen: String,
    pub(crate) advertise: Option<String>,
    pub(crate) in_place: bool,
    pub(crate) dram_bytes: u64,
    pub(crate) disk_bytes: u64,
    /// What it sends at most; none for as much as it can.
    pub(crate) serve_bytes_per_sec: Option<u64>,
    /// Share of its tiers that temporary nodes may take.
    pub(crate) temporary_share: f64,
    /// Share of its storage from which it collects garbage.
    pub(crate) storage_share: f64,
}

/// The roles that run in this process.
pub(crate) struct Running {
    coordinator: Option<Arc<Coordinator>>,
    worker: Option<Arc<Worker>>,
    gateway: Option<Gateway>,
    http: Option<Http>,
    flight: Option<FlightServer>,
    coordinator_address: String,
    summary: String,
    // Last, so that the folder is free only when nothing uses it any more.
    _folder: Option<DataFolder>,
}

impl Running {
    /// Starts coordinator, then worker, then the doors.
    pub(crate) async fn start(settings: RunSettings) -> Result<Self> {
        let roles: Vec<&str> = [settings.coordinator.as_ref().map(|_| "coordinator"), settings.worker.as_ref().map(|_| "worker")]
            .into_iter()
            .flatten()
            .collect();
        // A gateway alone keeps nothing.
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
        let handle = settings.http.as_ref().map(|_| metrics::install()).transpose()?;
        let mut summary = match &folder {
            Some(_) => format!("Data folder {}", settings.folder.display()),
            None => format!("Gateway to {}", settings.coordinator_at),
        };
        let coordinator = match settings.coordinator {
            Some(part) => {
                let settings = CoordinatorSettings {
                    listen: Address::Tcp(part.listen),
                    metadata_url: part.metadata_url,
                    security: settings.security.clone(),
                    lease: part.lease,
                    placement: part.placement,
                };
                Some(Arc::new(Coordinator::start(settings).await?))
            }
            None => None,
        };
        let coordinator_address = match (&coordinator, &settings.worker) {
            (Some(coordinator), _) => text_of(&coordinator.address()),
            (None, Some(part)) => part.coordinator.clone(),
            (None, None) => settings.coordinator_at.clone(),
        };
        let worker = match (settings.worker, &folder) {
            (Some(part), Some(folder)) => {
                summary += &format!(", DRAM tier {}, disk tier {}", format_bytes(part.dram_bytes), format_bytes(part.disk_bytes));
                let settings = WorkerSettings {
                    coordinator: Address::Tcp(coordinator_address.clone()),
                    listen: Address::Tcp(part.listen),
                    unix_socket: part.in_place.then(|| folder.socket()),
                    store: StoreSettings::new(folder.tiers(), part.dram_bytes).with_disk(part.disk_bytes),
                    security: settings.security.clone(),
                    advertise: part.advertise,
                    serve_bytes_per_sec: part.serve_bytes_per_sec,
                    temporary_share: part.temporary_share,
                    storage_share: part.storage_share,
                };
                Some(Arc::new(Worker::start(settings).await?))
            }
            _ => None,
        };
        let gateway = match settings.gateway {
            Some(gateway) => {
                let mut client = ClientSettings::new(Address::Tcp(coordinator_address.clone()));
                client.security = settings.security.clone();
                Some(Gateway::start(Client::connect(client).await?, gateway).await?)
            }
            None => None,
        };
        let http = match (settings.http, handle) {
            (Some(address), Some(handle)) => {
                let metrics = Metrics { handle, coordinator: coordinator.clone(), worker: worker.clone() };
                Some(Http::start(&address, metrics).await?)
            }
            _ => None,
        };
        let flight = match settings.flight {
            Some(address) => Some(flight(&coordinator_address, address, settings.security).await?),
            None => None,
        };
        Ok(Self { coordinator, worker, gateway, http, flight, coordinator_address, summary, _folder: folder })
    }

    /// host:port of the coordinator.
    pub(crate) fn coordinator_address(&self) -> &str {
        &self.coordinator_address
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
        if let Some(http) = &self.http {
            output.line(&format!("  metrics      http://{}/metrics", http.address()))?;
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
        if let Some(http) = self.http.take() {
            http.shutdown().await;
        }
        if let Some(gateway) = self.gateway.take() {
            gateway.shutdown().await;
        }
        if let Some(flight) = self.flight.take() {
            flight.shutdown().await;
        }
        if let Some(worker) = self.worker.take() {
            worker.shutdown().await;
        }
        if let Some(coordinator) = self.coordinator.take() {
            coordinator.shutdown().await;
        }
    }
}

/// Flight SQL over a client of the coordinator.
async fn flight(coordinator: &str, listen: String, security: Security) -> Result<FlightServer> {
    let client = ClientSettings { security: security.clone(), ..ClientSettings::new(Address::Tcp(coordinator.to_string())) };
    let engine = Engine::over_client(Client::connect(client).await?, EngineSettings::default());
    FlightServer::start(FlightSettings { listen, security }, engine).await
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
