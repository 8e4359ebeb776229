//! The way to the process's own cluster.

use std::sync::Arc;

use forebay_client::{Client, ClientSettings};
use forebay_types::{Error, Result};
use tokio::sync::OnceCell;

/// The cluster that this process is a part of, as a client of it.
pub(crate) struct OwnCluster {
    settings: ClientSettings,
    /// Made with the first request that wants it: what the coordinator says of itself needs no way to workers.
    client: OnceCell<Client>,
}

impl OwnCluster {
    pub(crate) fn new(settings: ClientSettings) -> Arc<Self> {
        Arc::new(Self { settings, client: OnceCell::new() })
    }

    /// The client. It may do whatever this process may: who asks is looked at before.
    pub(crate) async fn client(&self) -> Result<&Client> {
        let connected = self.client.get_or_try_init(|| Client::connect(self.settings.clone())).await;
        // Whatever it is, it is not who asks that is at fault.
        connected.map_err(|error| Error::retry(format!("this process does not reach its own cluster: {error}")))
    }
}
