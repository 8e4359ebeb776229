//! Where a dataset's shards are.

use axum::Json;
use forebay_rights::needs;
use forebay_shards::ShardStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::asked::DatasetAsked;
use super::described;
use super::orders::Orders;
use super::visit::Come;
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;

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

pub(super) const PATH: Described = described::<DatasetAsked>(
    Verb::Get,
    "/api/v1/shards/status",
    "The shards of a dataset, where their replicas are, and what is ordered of these.",
    Content::json::<DatasetStatus>("The shards."),
);

pub(super) async fn status(come: Come<DatasetAsked>) -> Result<Json<DatasetStatus>, Refusal> {
    let (coming, asked) = come.by_name("shard_status")?;
    let may = |need| coming.may(&need);
    let mount = asked.dataset.mount();
    let (may_order, may_change) = (may(needs::dataset_orders(mount)), may(needs::dataset_change(mount)));
    let visit = coming.read(asked.dataset, asked.timeout)?;
    let shards = visit.open().await?;
    let status = visit.within(shards.status()).await?;
    let (dataset, orders) = (shards.path().to_string(), shards.orders().into());
    let (manifest, follows) = (shards.manifest(), shards.dataset().following.is_some());
    Ok(Json(DatasetStatus { dataset, manifest, orders, may_order, may_change, follows, shards: status }))
}
