//! Datasets of shards over HTTP: what `forebay shard get`, `search`, `count`, `batch` and `status` print with `--json`.
//!
//! Owns: who may ask which dataset, how much and how long; and the datasets that stay open between requests.
//!
//! Never does: answer anything itself. The workers do, and `forebay-shards` asks them.
//!
//! Start with [`Visit::enter`], which every request goes through.

mod asked;
mod batch;
mod get;
mod lines;
mod opened;
mod places;
mod search;
mod status;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use forebay_client::ClientSettings;

use crate::Readers;
use opened::Opened;
use places::Places;

pub use search::Count;

/// What all requests about datasets share.
pub(crate) struct Datasets {
    readers: Readers,
    opened: Opened,
    places: Arc<Places>,
}

/// The paths of datasets: for `readers`, each of the mounts that they may read, answered by the workers of a cluster.
pub(crate) fn routes(cluster: ClientSettings, readers: Readers) -> Router {
    let datasets = Datasets { readers, opened: Opened::new(cluster), places: Arc::default() };
    Router::new()
        .route("/api/v1/shards/get", get(get::get))
        .route("/api/v1/shards/search", get(search::search))
        .route("/api/v1/shards/count", get(search::count))
        .route("/api/v1/shards/batch", post(batch::batch))
        .route("/api/v1/shards/status", get(status::status))
        .with_state(Arc::new(datasets))
}
