//! Where a dataset's shards are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use forebay_rights::needs;
use forebay_shards::ShardStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::asked::{Asked, DatasetAsked};
use super::orders::Orders;
use super::visit::Coming;
use super::{Datasets, REFUSALS};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

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
    /// Who asks may change its records, have it refreshed, and give it other shards.
    may_change: bool,
    /// It follows objects.
    follows: bool,
    /// In order of their numbers.
    shards: Vec<ShardStatus>,
}

pub(super) const PATH: Described = Described {
    verb: Verb::Get,
    path: "/api/v1/shards/status",
    about: "The shards of a dataset, where their replicas are, and what is ordered of these.",
    parameters: Some(DatasetAsked::json_schema),
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
    asked: Result<Asked<DatasetAsked>, Refusal>,
) -> Result<Json<DatasetStatus>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_status");
    let asked = coming.asked(asked)?;
    let may = |need| datasets.readers.may(&sender, &need);
    let mount = asked.dataset.mount();
    let (may_order, may_change) = (may(needs::dataset_orders(mount)), may(needs::dataset_change(mount)));
    let visit = coming.read(asked.dataset, asked.timeout)?;
    let shards = visit.open().await?;
    let status = visit.within(shards.status()).await?;
    let (dataset, orders) = (shards.path().to_string(), shards.orders().into());
    let (manifest, follows) = (shards.manifest(), shards.dataset().following.is_some());
    Ok(Json(DatasetStatus { dataset, manifest, orders, may_order, may_change, follows, shards: status }))
}
