//! One record: read with its version, written, deleted.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use forebay_shard_store::{Literal, exact_json};
use forebay_shards::Versioned;
use forebay_types::{Error, format_bytes};
use schemars::{JsonSchema, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};

use super::asked::If;
use super::visit::Come;
use super::{REFUSALS_OF_BODIES, asked, body, described};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;

const PATH: &str = "/api/v1/shards/record";
/// Bytes of a record as it is sent: with what stands around it, it is no more than a worker takes with one call.
const RECORD_BYTES_MAX: u64 = 3 << 20;

asked::asked_of!(Read {
    /// The key, as text or as bytes: `x'00ff'`.
    #[schemars(example = &"7")]
    key: String,
});

pub(super) const READ: Described = described::<Read>(
    Verb::Get,
    PATH,
    "A record, or null, with what it takes to change it only if nobody else has.",
    Content::json::<Versioned>("The record and its version; a key without a record has one too."),
);

pub(super) async fn read(come: Come<Read>) -> Result<Json<Versioned>, Refusal> {
    let (coming, asked) = come.by_name("shard_get")?;
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

asked::asked_of!(Put {
    /// `absent`: only where the key has no record. A version: only where nobody has changed the record since it had it.
    #[schemars(with = "Option<String>", extend("pattern" = asked::IF_PATTERN), example = &"absent")]
    #[serde(rename = "if")]
    condition: Option<If>,
});

pub(super) const PUT: Described =
    described::<Put>(Verb::Put, PATH, "Writes a record, a new one or in place of the one that its key has.", CHANGED)
        .with_body(Content {
            kind: "application/json",
            about: "The record, of 3 MiB at most: an object with its key and columns. Those that it does not name are null.",
            shape: |_| json_schema!({"type": "object", "additionalProperties": true}),
            example: Some("{\"id\": 100000, \"name\": \"clerk007\", \"note\": \"a new one\"}"),
        })
        .refused_with(REFUSALS_OF_BODIES);

const CHANGED: Content = Content::json::<Changed>("Shared storage has it: whoever reads from now on sees it.");

pub(super) async fn put(come: Come<Put>, sent: Body) -> Result<Json<Changed>, Refusal> {
    let (coming, asked) = come.by_name("shard_put")?;
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

asked::asked_of!(Delete {
    /// The key, as text or as bytes: `x'00ff'`.
    #[schemars(example = &"9")]
    key: String,
    /// A version: only where nobody has changed the record since it had it.
    #[schemars(with = "Option<String>", extend("pattern" = asked::IF_PATTERN), example = &"0")]
    #[serde(rename = "if")]
    condition: Option<If>,
});

pub(super) const DELETE: Described =
    described::<Delete>(Verb::Delete, PATH, "Deletes the record of a key; one that is not there is no error.", CHANGED);

pub(super) async fn delete(come: Come<Delete>) -> Result<Json<Changed>, Refusal> {
    let (coming, asked) = come.by_name("shard_delete")?;
    let changing = coming.change(asked.dataset, asked.timeout)?;
    let key = Literal::parse(&asked.key)?;
    let shards = changing.visit().open().await?;
    let version = changing.make(shards.delete(&key, If::of(asked.condition))).await?;
    Ok(Json(Changed { version }))
}
