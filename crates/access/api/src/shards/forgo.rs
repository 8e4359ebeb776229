//! Giving up changes that were acknowledged by two workers' disks and are gone with both.

use axum::Json;
use schemars::JsonSchema;
use serde::Serialize;

use super::asked::DatasetAsked;
use super::described;
use super::visit::Come;
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;

/// What was given up.
#[derive(JsonSchema, Serialize)]
pub(super) struct GivenUp {
    /// The folder that the dataset lies in.
    dataset: String,
    /// The numbers of the shards of which changes of the last seconds before their workers were lost may be missing; empty where nothing is lost.
    given_up: Vec<usize>,
}

pub(super) const PATH: Described = described::<DatasetAsked>(
    Verb::Post,
    "/api/v1/shards/forgo",
    "Gives up changes that were acknowledged when two workers' disks had them, of shards whose two workers have lost them both. \
            They are waited for as long as half of the timeout.",
    Content::json::<GivenUp>("Those shards go on from what shared storage has."),
);

pub(super) async fn forgo(come: Come<DatasetAsked>) -> Result<Json<GivenUp>, Refusal> {
    let (coming, DatasetAsked { dataset, timeout }) = come.by_name("shard_forgo")?;
    let name = dataset.to_string();
    let given_up = coming.administer(dataset, timeout)?.forgo().await?;
    debug_assert!(given_up.is_sorted(), "shards are told in the order of their numbers");
    Ok(Json(GivenUp { dataset: name, given_up }))
}
