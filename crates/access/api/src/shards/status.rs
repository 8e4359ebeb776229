//! Where a dataset's shards are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use forebay_rights::needs;
use forebay_shards::ShardStatus;
use forebay_types::ForebayPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::asked::{Asked, TIMEOUT_PATTERN, Timeout};
use super::orders::Orders;
use super::visit::Visit;
use super::{Datasets, REFUSALS, asked};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusAsked {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

/// A dataset, its shards and their replicas.
#[derive(JsonSchema, Serialize)]
pub(super) struct DatasetStatus {
    /// The folder that it lies in.
    dataset: String,
    /// The number of its manifest: it grows with each change.
    manifest: u64,
    /// What is ordered of its replicas.
    orders: Orders,
    /// Who asks may order something else.
    may_order: bool,
    /// In order of their numbers.
    shards: Vec<ShardStatus>,
}

pub(super) const PATH: Described = Described {
    verb: Verb::Get,
    path: "/api/v1/shards/status",
    about: "The shards of a dataset, where their replicas are, and what is ordered of these.",
    parameters: Some(StatusAsked::json_schema),
    body: None,
    answer: Content {
        kind: "application/json",
        about: "The shards.",
        shape: |generator| generator.subschema_for::<DatasetStatus>(),
        example: None,
    },
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(super) async fn status(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<StatusAsked>, Refusal>,
) -> Result<Json<DatasetStatus>, Refusal> {
    let asked = datasets.asked(&sender, "shard_status", asked)?;
    let may_order = datasets.readers.may(&sender, &needs::dataset_orders(asked.dataset.mount()));
    let visit = Visit::enter(&datasets, &sender, "shard_status", asked.dataset, asked.timeout)?;
    let shards = visit.open().await?;
    let status = visit.within(shards.status()).await?;
    let (dataset, orders) = (shards.path().to_string(), shards.orders().into());
    Ok(Json(DatasetStatus { dataset, manifest: shards.manifest(), orders, may_order, shards: status }))
}
