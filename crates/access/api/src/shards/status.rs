//! Where a dataset's shards are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use forebay_shards::ShardStatus;
use forebay_types::ForebayPath;
use serde::{Deserialize, Serialize};

use super::asked::{Asked, Timeout};
use super::visit::Visit;
use super::{Datasets, asked};
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusAsked {
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    #[serde(default)]
    timeout: Timeout,
}

/// A dataset, its shards and their replicas.
#[derive(Serialize)]
pub(super) struct DatasetStatus {
    /// The folder that it lies in.
    dataset: String,
    /// The number of its manifest: it grows with each change.
    manifest: u64,
    /// In order of their numbers.
    shards: Vec<ShardStatus>,
}

pub(super) async fn status(
    State(datasets): State<Arc<Datasets>>,
    headers: HeaderMap,
    Asked(asked): Asked<StatusAsked>,
) -> Result<Json<DatasetStatus>, Refusal> {
    let visit = Visit::enter(&datasets, &headers, "shard status", asked.dataset, asked.timeout)?;
    let shards = visit.open().await?;
    let status = visit.within(shards.status()).await?;
    Ok(Json(DatasetStatus { dataset: shards.path().to_string(), manifest: shards.manifest(), shards: status }))
}
