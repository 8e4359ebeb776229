//! One record: read with its version, written, deleted.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use forebay_shard_store::{Literal, exact_json};
use forebay_shards::Versioned;
use forebay_types::{Error, ForebayPath, format_bytes};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::asked::{Asked, If, TIMEOUT_PATTERN, Timeout};
use super::visit::Coming;
use super::{Datasets, REFUSALS, REFUSALS_OF_BODIES, asked, body};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

const PATH: &str = "/api/v1/shards/record";
/// Bytes of a record as it is sent: with what stands around it, it is no more than a worker takes with one call.
const RECORD_BYTES_MAX: u64 = 3 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// The key, as text or as bytes: `x'00ff'`.
    #[schemars(example = &"7")]
    key: String,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

pub(super) const READ: Described = Described {
    verb: Verb::Get,
    path: PATH,
    about: "A record, or null, with what it takes to change it only if nobody else has.",
    parameters: Some(Read::json_schema),
    body: None,
    answer: Content {
        kind: "application/json",
        about: "The record and its version; a key without a record has one too.",
        shape: |generator| generator.subschema_for::<Versioned>(),
        example: None,
    },
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(super) async fn read(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<Read>, Refusal>,
) -> Result<Json<Versioned>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_get");
    let asked = coming.asked(asked)?;
    let visit = coming.read(asked.dataset, asked.timeout)?;
    let key = Literal::parse(&asked.key)?;
    let shards = visit.open().await?;
    Ok(Json(visit.within(shards.get_versioned(&key)).await?))
}

/// What a change has made.
#[derive(JsonSchema, Serialize)]
pub(super) struct Changed {
    /// The version that the record of the key has now.
    pub(super) version: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// `absent`: only where the key has no record. A version: only where nobody has changed the record since it had it.
    #[schemars(with = "Option<String>", extend("pattern" = asked::IF_PATTERN), example = &"absent")]
    #[serde(rename = "if")]
    condition: Option<If>,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

pub(super) const PUT: Described = Described {
    verb: Verb::Put,
    path: PATH,
    about: "Writes a record, a new one or in place of the one that its key has.",
    parameters: Some(Put::json_schema),
    body: Some(Content {
        kind: "application/json",
        about: "The record, of 3 MiB at most: an object with its key and columns. Those that it does not name are null.",
        shape: |_| json_schema!({"type": "object", "additionalProperties": true}),
        example: Some("{\"id\": 100000, \"name\": \"clerk007\", \"note\": \"a new one\"}"),
    }),
    answer: CHANGED,
    or: None,
    refusals: REFUSALS_OF_BODIES,
    is_open: false,
};

const CHANGED: Content = Content {
    kind: "application/json",
    about: "Shared storage has it: whoever reads from now on sees it.",
    shape: |generator| generator.subschema_for::<Changed>(),
    example: None,
};

pub(super) async fn put(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<Put>, Refusal>,
    sent: Body,
) -> Result<Json<Changed>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_put");
    let asked = coming.asked(asked)?;
    let changing = coming.change(asked.dataset, asked.timeout)?;
    let (sent, _spent) = body::read(changing.visit(), sent, RECORD_BYTES_MAX, too_large).await?;
    let wrong = |error| Refusal::invalid(format!("the body is no record, which is a JSON object with columns: {error}"));
    let record: Map<String, Value> = exact_json(&sent).map_err(wrong)?;
    let shards = changing.visit().open().await?;
    let version = changing.make(shards.put(&record, If::of(asked.condition))).await?;
    Ok(Json(Changed { version }))
}

fn too_large() -> Refusal {
    let message = format!("a record has {} at most, as it is sent", format_bytes(RECORD_BYTES_MAX));
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Error::invalid(message))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// The key, as text or as bytes: `x'00ff'`.
    #[schemars(example = &"9")]
    key: String,
    /// A version: only where nobody has changed the record since it had it.
    #[schemars(with = "Option<String>", extend("pattern" = asked::IF_PATTERN), example = &"0")]
    #[serde(rename = "if")]
    condition: Option<If>,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

pub(super) const DELETE: Described = Described {
    verb: Verb::Delete,
    path: PATH,
    about: "Deletes the record of a key; one that is not there is no error.",
    parameters: Some(Delete::json_schema),
    body: None,
    answer: CHANGED,
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(super) async fn delete(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<Delete>, Refusal>,
) -> Result<Json<Changed>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_delete");
    let asked = coming.asked(asked)?;
    let changing = coming.change(asked.dataset, asked.timeout)?;
    let key = Literal::parse(&asked.key)?;
    let shards = changing.visit().open().await?;
    let version = changing.make(shards.delete(&key, If::of(asked.condition))).await?;
    Ok(Json(Changed { version }))
}
