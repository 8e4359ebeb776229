//! More or fewer shards for a dataset that is asked and changed meanwhile.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use forebay_shards::ReshardTo;
use forebay_types::ForebayPath;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::work::{Task, WORK, WorkStatus, work};
use crate::asking::from_text;
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::shards::asked::{Asked, DatasetAsked, TIMEOUT_PATTERN, Timeout};
use crate::shards::visit::Coming;
use crate::shards::{Datasets, REFUSALS, asked};
use crate::visitor::Sender;

const PATH: &str = "/api/v1/shards/reshard";

/// How it stands with a dataset's number of shards.
#[derive(JsonSchema, Serialize)]
pub(in crate::shards) struct ReshardStatus {
    /// The folder that it lies in.
    dataset: String,
    /// The number of its manifest.
    manifest: u64,
    /// How many shards it has.
    shards: usize,
    /// How many it is about to have; not there where it keeps those that it has. Where nobody works on it, whoever meets it ends that.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// The last work on it that was asked for at this address; not there where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkStatus>,
}

pub(in crate::shards) const RESHARDED: Described = Described {
    verb: Verb::Get,
    path: PATH,
    about: "How many shards a dataset has and is about to have, and how the work on that stands that was asked for here.",
    parameters: Some(DatasetAsked::json_schema),
    body: None,
    answer: Content {
        kind: "application/json",
        about: "How it stands with the number of its shards.",
        shape: |generator| generator.subschema_for::<ReshardStatus>(),
        example: None,
    },
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(in crate::shards) async fn resharded(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<DatasetAsked>, Refusal>,
) -> Result<Json<ReshardStatus>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_resharded");
    let DatasetAsked { dataset, timeout } = coming.asked(asked)?;
    let visit = coming.read(dataset, timeout)?;
    let shards = visit.open().await?;
    let (manifest, of) = (shards.manifest(), shards.dataset());
    let next = of.next.as_ref().map(|next| next.shards.len());
    let work = visit.datasets().works.status(visit.dataset(), RESHARDING);
    Ok(Json(ReshardStatus { dataset: visit.dataset().to_string(), manifest, shards: of.shards.len(), next, work }))
}

/// Of this kind is the work on a number of shards, whatever it is.
const RESHARDING: Task = Task::Reshard(ReshardTo::Shards(1));

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::shards) struct ReshardAsked {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// How many shards it is to have, or with a unit how much input each is to have, about: `16`, `128MiB`.
    #[schemars(with = "String", extend("pattern" = "^[0-9]+(\\.[0-9]+)? ?[A-Za-z]{0,3}$"), example = &"3")]
    #[serde(deserialize_with = "to")]
    to: ReshardTo,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

fn to<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReshardTo, D::Error> {
    from_text(deserializer)
}

pub(in crate::shards) const RESHARD: Described = Described {
    verb: Verb::Post,
    path: PATH,
    about: "Has a dataset have more or fewer shards, while it is asked and changed. Goes on after the timeout: ask how it stands.",
    parameters: Some(ReshardAsked::json_schema),
    body: None,
    answer: WORK,
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(in crate::shards) async fn reshard(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<ReshardAsked>, Refusal>,
) -> Result<Json<WorkStatus>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_reshard");
    let ReshardAsked { dataset, to, timeout } = coming.asked(asked)?;
    let changing = coming.change(dataset, timeout)?;
    work(&changing, Task::Reshard(to)).await.map(Json)
}
