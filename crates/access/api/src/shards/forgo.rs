//! Giving up changes that were acknowledged by two workers' disks and are gone with both.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::asked::{Asked, DatasetAsked};
use super::visit::Coming;
use super::{Datasets, REFUSALS};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

/// What was given up.
#[derive(JsonSchema, Serialize)]
pub(super) struct GivenUp {
    /// The folder that the dataset lies in.
    dataset: String,
    /// The numbers of the shards of which changes of the last seconds before their workers were lost may be missing; empty where nothing is lost.
    given_up: Vec<usize>,
}

pub(super) const PATH: Described = Described {
    verb: Verb::Post,
    path: "/api/v1/shards/forgo",
    about: "Gives up changes that were acknowledged when two workers' disks had them, of shards whose two workers have lost them both. \
            They are waited for as long as half of the timeout.",
    parameters: Some(DatasetAsked::json_schema),
    body: None,
    answer: Content {
        kind: "application/json",
        about: "Those shards go on from what shared storage has.",
        shape: |generator| generator.subschema_for::<GivenUp>(),
        example: None,
    },
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(super) async fn forgo(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<DatasetAsked>, Refusal>,
) -> Result<Json<GivenUp>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_forgo");
    let DatasetAsked { dataset, timeout } = coming.asked(asked)?;
    let name = dataset.to_string();
    let given_up = coming.administer(dataset, timeout)?.forgo().await?;
    debug_assert!(given_up.is_sorted(), "shards are told in the order of their numbers");
    Ok(Json(GivenUp { dataset: name, given_up }))
}
