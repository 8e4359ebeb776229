//! A change of an object that is under way at its store.

use forebay_client::Client;
use forebay_runtime::{Defect, planted};
use forebay_types::ForebayPath;

use crate::dialect::S3Result;

/// Tells the workers that an object is another one now, however the request ends.
pub(crate) struct Changing {
    client: Client,
    path: Option<ForebayPath>,
}

impl Changing {
    pub(crate) fn begin(client: &Client, path: ForebayPath) -> Self {
        Self { client: client.clone(), path: Some(path) }
    }

    /// The store has answered: back when no worker answers from what it knew before; an error when that is not certain, so that
    /// the writer does not take it for granted.
    pub(crate) async fn end(mut self) -> S3Result<()> {
        let Some(path) = self.path.take().filter(|_| !planted(Defect::UntoldByGateway)) else { return Ok(()) };
        Ok(self.client.changed(&path).await?)
    }
}

impl Drop for Changing {
    /// The client went away: the store may have taken it all the same.
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            let client = self.client.clone();
            forebay_runtime::spawn_left(async move {
                if let Err(error) = client.changed(&path).await {
                    tracing::warn!(%path, %error, "a worker did not hear of a write");
                }
            });
        }
    }
}
