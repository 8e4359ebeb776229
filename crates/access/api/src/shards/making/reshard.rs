//! More or fewer shards for a dataset that is asked and changed meanwhile.

use axum::Json;
use forebay_shards::ReshardTo;
use schemars::JsonSchema;
use serde::Serialize;

use super::work::{Task, WORK, WorkStatus, work};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::shards::asked::DatasetAsked;
use crate::shards::visit::Come;
use crate::shards::{asked, described};

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

pub(in crate::shards) const RESHARDED: Described = described::<DatasetAsked>(
    Verb::Get,
    PATH,
    "How many shards a dataset has and is about to have, and how the work on that stands that was asked for here.",
    Content::json::<ReshardStatus>("How it stands with the number of its shards."),
);

pub(in crate::shards) async fn resharded(come: Come<DatasetAsked>) -> Result<Json<ReshardStatus>, Refusal> {
    let (coming, DatasetAsked { dataset, timeout }) = come.by_name("shard_resharded")?;
    let visit = coming.read(dataset, timeout)?;
    let shards = visit.open().await?;
    let (manifest, of) = (shards.manifest(), shards.dataset());
    let next = of.next.as_ref().map(|next| next.shards.len());
    let work = visit.datasets.works.status(visit.dataset(), RESHARDING);
    Ok(Json(ReshardStatus { dataset: visit.dataset().to_string(), manifest, shards: of.shards.len(), next, work }))
}

/// Of this kind is the work on a number of shards, whatever it is.
const RESHARDING: Task = Task::Reshard(ReshardTo::Shards(1));

asked::asked_of!(ReshardAsked {
    /// How many shards it is to have, or with a unit how much input each is to have, about: `16`, `128MiB`. Of ranges of keys also which shard is cut
    /// in two, or becomes one with the next: `split:3`, `merge:3`.
    #[schemars(with = "String", extend("pattern" = "^([0-9]+(\\.[0-9]+)? ?[A-Za-z]{0,3}|(split|merge):[0-9]+)$"), example = &"3")]
    #[serde(deserialize_with = "crate::asking::from_text")]
    to: ReshardTo,
});

pub(in crate::shards) const RESHARD: Described = described::<ReshardAsked>(
    Verb::Post,
    PATH,
    "Has a dataset have more or fewer shards, while it is asked and changed. Goes on after the timeout: ask how it stands. \
     Where it ended early, give it again: shards that are announced (`next`) take over, others are made anew.",
    WORK,
);

pub(in crate::shards) async fn reshard(come: Come<ReshardAsked>) -> Result<Json<WorkStatus>, Refusal> {
    let (coming, ReshardAsked { dataset, to, timeout }) = come.by_name("shard_reshard")?;
    let changing = coming.change(dataset, timeout)?;
    work(&changing, Task::Reshard(to)).await.map(Json)
}
