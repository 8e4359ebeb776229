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
use forebay_client::{AdminRequest, Credential, Security};
use forebay_data_folder::{DataFolder, owner_secret, owner_secret_in};
use forebay_node::Node;
use forebay_s3::{AccessRule, GatewaySettings};
use forebay_transport::{Address, Admission, connections_max, random_secret};
use forebay_types::{ByteSize, Error, MountOptions, Result, ResultExt, Validate};

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
            let taken = DataFolder::take(&data_dir, &["coordinator"])?;
            let owner = Credential::owner(&owner_secret(&data_dir, random_secret)?)?;
            let admits = Arc::new(Admission::of([&owner, &member()?]));
            let mut settings =
                Node::coordinator_in(&data_dir, Security { shows: Some(owner), admits, tls: None, ..Security::default() });
            settings.listen = Address::Tcp(coordinator_listen);
            settings.metadata_url = metadata.unwrap_or(settings.metadata_url);
            let mut node = Node::lead(settings).await?;
            node.hold(taken);
            serve("coordinator", node, http).await?;
        }
        Role::Worker { dram, disk, worker_listen, advertise, no_in_place } => {
            let taken = DataFolder::take(&data_dir, &["worker"])?;
            let mut node = Node::join(Address::Tcp(coordinator), of_member()?);
            node.hold(taken);
            let mut settings = node.worker_in(&data_dir, dram.0);
            settings.store.disk_bytes = disk.0;
            (settings.listen, settings.advertise) = (Address::Tcp(worker_listen), advertise);
            settings.unix_socket = settings.unix_socket.filter(|_| !no_in_place);
            node.start_worker(settings).await?;
            serve("worker", node, http).await?;
        }
        Role::Gateway { s3 } => {
            let mut node = Node::join(Address::Tcp(coordinator), of_member()?);
            let key = AccessRule::new(variable("FOREBAY_S3_ACCESS_KEY")?, variable("FOREBAY_S3_SECRET_KEY")?);
            let settings = GatewaySettings { keys: vec![key], ..GatewaySettings::new(s3) };
            let client = node.client().await?;
            node.serve_s3(client, settings).await?;
            serve("gateway", node, http).await?;
        }
        Role::Mount(Mount::Add { name, url, endpoint, validate }) => {
            let secret =
                owner_secret_in(Path::new("coordinator"))?.ok_or_else(|| Error::not_found("there is no coordinator here"))?;
            let owner = Node::join(Address::Tcp(coordinator), Security::holder(Credential::owner(&secret)?));
            let options = MountOptions { endpoint, validate, ..MountOptions::default() };
            let add = AdminRequest::MountAdd { name: name.parse()?, url, options };
            owner.client().await?.control(add).await?;
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
    Ok(Security { shows: Some(shows), admits, tls: None, ..Security::default() })
}

async fn show(role: &'static str, address: Option<String>) -> Result<Option<Http>> {
    forebay_metrics::begin(role);
    let Some(address) = address else { return Ok(None) };
    let readiness = Readiness::of([role]);
    // It has started when this is called.
    readiness.started(role, || Ok(()));
    let (readers, connections_max) = (Readers::new(Vec::new()), connections_max());
    let settings = HttpSettings { address, tls: None, readers, metrics_are_open: true, readiness, connections_max };
    Http::start(settings).await.map(Some)
}

/// Until it is told to end, or its coordinator has ended by itself.
async fn serve(role: &'static str, node: Node, http: Option<String>) -> Result<()> {
    let http = show(role, http).await?;
    tokio::select! {
        ended = node.ended() => ended?,
        () = told_to_end() => {}
    }
    if let Some(http) = http {
        // Clients that keep their connections must not keep the role.
        let _ = tokio::time::timeout(Duration::from_secs(2), http.shutdown()).await;
    }
    node.shutdown().await;
    Ok(())
}

async fn told_to_end() {
    let told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).context(|| "signals");
    match told {
        Ok(mut told) => drop(told.recv().await),
        Err(error) => tracing::error!(%error, "ends when it is killed"),
    }
}
