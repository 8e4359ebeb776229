//! The roles that a storm needs, made of the crates alone: for when there is no time to build the engine.
//!
//! ```sh
//! cargo build -p forebay-storm --example roles
//! FOREBAY_TEST_BINARY=target/debug/examples/roles cargo run -p forebay-storm -- --only worker-stopped
//! ```
//!
//! It takes the flags that the storm gives and no others. What the table of docs/resilience.md says is of the built binary.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use forebay_api::{Http, HttpSettings, Readers, Readiness};
use forebay_block_store::StoreSettings;
use forebay_client::{AdminRequest, Client, ClientSettings, Credential, Security};
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_data_folder::{DataFolder, owner_secret, owner_secret_in};
use forebay_s3::{AccessRule, Gateway, GatewaySettings};
use forebay_transport::{Address, Admission, random_secret};
use forebay_types::{ByteSize, Error, MountOptions, Result, ResultExt, Validate};
use forebay_worker::{Worker, WorkerSettings};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
    /// Where the role serves `/metrics` and `/healthz`.
    #[arg(long, global = true)]
    http: Option<String>,
    #[arg(long, global = true, default_value = ".")]
    data_dir: PathBuf,
    #[arg(long, global = true, default_value = "")]
    coordinator: String,
}

#[derive(Subcommand)]
enum Role {
    Coordinator {
        #[arg(long)]
        coordinator_listen: String,
        #[arg(long)]
        metadata: Option<String>,
    },
    Worker {
        #[arg(long)]
        dram: ByteSize,
        #[arg(long)]
        disk: ByteSize,
        #[arg(long)]
        worker_listen: String,
        #[arg(long)]
        advertise: Option<String>,
        #[arg(long)]
        no_in_place: bool,
    },
    Gateway {
        #[arg(long)]
        s3: String,
    },
    #[command(subcommand)]
    Mount(Mount),
}

#[derive(Subcommand)]
enum Mount {
    Add {
        name: String,
        url: String,
        #[arg(long)]
        endpoint: Option<String>,
        #[arg(long)]
        validate: Validate,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let log = tracing_subscriber::EnvFilter::try_from_env("FOREBAY_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(log).with_ansi(false).init();
    let Arguments { role, http, data_dir, coordinator } = Arguments::parse();
    match role {
        Role::Coordinator { coordinator_listen, metadata } => {
            let _folder = DataFolder::take(&data_dir, &["coordinator"])?;
            let owner = Credential::owner(&owner_secret(&data_dir, random_secret)?)?;
            let admits = Arc::new(Admission::of([&owner, &member()?]));
            let security = Security { shows: Some(owner), admits, tls: None };
            let url = metadata.unwrap_or_else(|| DataFolder::metadata_url(&data_dir));
            let settings = CoordinatorSettings { security, ..CoordinatorSettings::new(Address::Tcp(coordinator_listen), url) };
            let coordinator = Coordinator::start(settings).await?;
            let http = show("coordinator", http).await?;
            tokio::select! {
                ended = coordinator.stopped() => ended?,
                () = told_to_end() => {}
            }
            end(http).await;
            coordinator.shutdown().await;
        }
        Role::Worker { dram, disk, worker_listen, advertise, no_in_place } => {
            let folder = DataFolder::take(&data_dir, &["worker"])?;
            let store = StoreSettings::new(folder.tiers(), dram.0).with_disk(disk.0);
            let mut settings = WorkerSettings::new(Address::Tcp(coordinator), Address::Tcp(worker_listen), store);
            settings.security = of_member()?;
            settings.advertise = advertise;
            settings.unix_socket = (!no_in_place).then(|| folder.socket());
            let worker = Worker::start(settings).await?;
            let http = show("worker", http).await?;
            told_to_end().await;
            end(http).await;
            worker.shutdown().await;
        }
        Role::Gateway { s3 } => {
            let mut settings = ClientSettings::new(Address::Tcp(coordinator));
            settings.security = of_member()?;
            let client = Client::connect(settings).await?;
            let key = AccessRule::new(variable("FOREBAY_S3_ACCESS_KEY")?, variable("FOREBAY_S3_SECRET_KEY")?);
            let gateway = Gateway::start(client, GatewaySettings { keys: vec![key], ..GatewaySettings::new(s3) }).await?;
            let http = show("gateway", http).await?;
            told_to_end().await;
            end(http).await;
            gateway.shutdown().await;
        }
        Role::Mount(Mount::Add { name, url, endpoint, validate }) => {
            let secret =
                owner_secret_in(Path::new("coordinator"))?.ok_or_else(|| Error::not_found("there is no coordinator here"))?;
            let mut settings = ClientSettings::new(Address::Tcp(coordinator));
            settings.security = Security::holder(Credential::owner(&secret)?);
            let options = MountOptions { endpoint, validate, ..MountOptions::default() };
            let add = AdminRequest::MountAdd { name: name.parse()?, url, options };
            Client::connect(settings).await?.control(add).await?;
        }
    }
    Ok(())
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| Error::invalid(format!("{name} is not set")))
}

fn member() -> Result<Credential> {
    Credential::member(&variable("FOREBAY_CLUSTER_SECRET")?)
}

fn of_member() -> Result<Security> {
    let shows = member()?;
    let admits = Arc::new(Admission::of([&shows]));
    Ok(Security { shows: Some(shows), admits, tls: None })
}

async fn show(role: &'static str, address: Option<String>) -> Result<Option<Http>> {
    forebay_metrics::begin(role);
    let Some(address) = address else { return Ok(None) };
    let readiness = Readiness::of([role]);
    Http::start(HttpSettings { address, tls: None, readers: Readers::new(Vec::new()), metrics_are_open: true, readiness })
        .await
        .map(Some)
}

async fn end(http: Option<Http>) {
    if let Some(http) = http {
        // Clients that keep their connections must not keep the role.
        let _ = tokio::time::timeout(Duration::from_secs(2), http.shutdown()).await;
    }
}

async fn told_to_end() {
    let told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).context(|| "signals");
    match told {
        Ok(mut told) => drop(told.recv().await),
        Err(error) => tracing::error!(%error, "ends when it is killed"),
    }
}
