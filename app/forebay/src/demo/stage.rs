//! Sets up what the demo runs on, from empty folders and tiers, and clears it away again.

use std::fs;
use std::path::PathBuf;

use forebay_client::Client;
use forebay_data_folder::DataFolder;
use forebay_node::Node;
use forebay_protocol::AdminRequest;
use forebay_tpch::Tables;
use forebay_transport::Security;
use forebay_types::{MountOptions, Result, ResultExt};

use super::serve::BUCKET;
use super::server::Server;
use crate::cli::DemoArgs;
use crate::progress;

/// The mount's name.
pub(crate) const MOUNT: &str = "lake";

/// What the passes run on: an S3 server with the data in it, and Forebay with nothing in its tiers.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) client: Client,
    node: Node,
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
        let taken = DataFolder::take(&up, &["coordinator", "worker"])?;
        let mut node = Node::lead_in(&up, Security::default()).await?;
        node.hold(taken);
        let mut worker = node.worker_in(&up, args.dram.map_or(room, |size| size.0));
        worker.store.disk_bytes = room;
        (worker.temporary_share, worker.shard_bytes) = (0.0, 0);
        node.start_worker(worker).await?;
        let client = node.client().await?;
        client
            .control(AdminRequest::MountAdd {
                name: MOUNT.parse()?,
                url: format!("s3://{BUCKET}"),
                options: MountOptions { endpoint: Some(server.endpoint.clone()), ..MountOptions::default() },
            })
            .await?;
        Ok(Self { server, client, node, ingest_folder, folders })
    }

    /// Stops both and removes what they kept.
    pub(crate) async fn clear(self) {
        let Self { server, client, node, folders, .. } = self;
        drop(client);
        node.shutdown().await;
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
