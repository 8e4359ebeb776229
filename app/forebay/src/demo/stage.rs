//! Sets up what the demo runs on, from empty folders and tiers, and clears it away again.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use forebay_client::{Client, ClientSettings};
use forebay_coordinator::PlacementSettings;
use forebay_protocol::AdminRequest;
use forebay_tpch::Tables;
use forebay_transport::{Address, Security};
use forebay_types::{MountOptions, Result, ResultExt};

use super::serve::BUCKET;
use super::server::Server;
use crate::cli::DemoArgs;
use crate::progress;
use crate::roles::{CoordinatorPart, RunSettings, Running, WorkerPart};

/// The mount's name.
pub(crate) const MOUNT: &str = "lake";

/// What the passes run on: an S3 server with the data in it, and Forebay with nothing in its tiers.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) client: Client,
    running: Running,
    /// Emptied at the start and at the end.
    pub(crate) ingest_folder: PathBuf,
    folders: Vec<PathBuf>,
}

impl Stage {
    /// Starts both.
    pub(crate) async fn set(args: &DemoArgs, tables: &Tables) -> Result<Self> {
        let folder = |name: &str| args.folder.join(name);
        let (s3, up, ingest_folder) = (folder("s3"), folder("forebay-data"), folder("ingest"));
        let folders = vec![s3.clone(), up.clone(), ingest_folder.clone()];
        clear(&folders)?;
        fs::create_dir_all(&s3).context(|| s3.display())?;
        let bar = progress::spinner("fill the S3 server");
        let server = Server::start(&s3, args).await?;
        server.load(&tables.folder).await?;
        bar.finish_and_clear();

        // Room for all of the data with what rounding to pages adds: what is shown is a cache that fits.
        let room = tables.bytes + tables.bytes / 4 + (256 << 20);
        let running = Running::start(RunSettings {
            folder: up.clone(),
            security: Security::default(),
            http: None,
            metrics_anonymous: false,
            flight: None,
            coordinator: Some(CoordinatorPart {
                listen: "127.0.0.1:0".to_string(),
                metadata_url: format!("sqlite:{}", up.join("metadata.db").display()),
                lease: Duration::from_secs(5),
                placement: PlacementSettings::default(),
            }),
            worker: Some(WorkerPart {
                coordinator: String::new(),
                listen: "127.0.0.1:0".to_string(),
                advertise: None,
                location: None,
                in_place: true,
                dram_bytes: args.dram.map_or(room, |size| size.0),
                disk_bytes: room,
                serve_bytes_per_sec: None,
                temporary_share: 0.0,
                storage_share: PlacementSettings::default().storage_share,
                shard_bytes: 0,
            }),
            gateway: None,
            sql: None,
            extra_workers: 0,
            #[cfg(feature = "cluster")]
            cluster: None,
            coordinator_at: String::new(),
        })
        .await?;
        let coordinator = Address::Tcp(running.coordinator_address().to_string());
        let client = Client::connect(ClientSettings::new(coordinator)).await?;
        client
            .control(AdminRequest::MountAdd {
                name: MOUNT.parse()?,
                url: format!("s3://{BUCKET}"),
                options: MountOptions { endpoint: Some(server.endpoint().to_string()), ..MountOptions::default() },
            })
            .await?;
        Ok(Self { server, client, running, ingest_folder, folders })
    }

    /// Stops both and removes what they kept.
    pub(crate) async fn clear(self) {
        let Self { server, client, running, folders, .. } = self;
        drop(client);
        running.shutdown().await;
        drop(server);
        if let Err(error) = clear(&folders) {
            tracing::warn!(%error, "the demo's folders are still there");
        }
    }
}

fn clear(folders: &[PathBuf]) -> Result<()> {
    for folder in folders.iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).context(|| folder.display())?;
    }
    Ok(())
}
