//! Records by their keys.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use forebay_shard_store::Literal;
use forebay_types::{Error, ForebayPath, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::asked::{Asked, ColumnNames, TIMEOUT_PATTERN, Timeout};
use super::visit::Coming;
use super::{Datasets, RECORDS, REFUSALS, asked, lines};
use crate::describe::{Described, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

/// Keys of one request; `batch` takes more.
const KEYS_MAX: usize = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Get {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// A key, as text or as bytes: `x'00ff'`. There may be several of these.
    #[schemars(length(min = 1, max = KEYS_MAX), example = ["7", "8"])]
    key: Vec<String>,
    /// Names with commas between them, or `*`: all columns without it.
    #[schemars(with = "Option<String>", example = &"name,note")]
    columns: Option<ColumnNames>,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

pub(super) const PATH: Described = Described {
    verb: Verb::Get,
    path: "/api/v1/shards/get",
    about: "The records of keys, in their order; not found where one has none.",
    parameters: Some(Get::json_schema),
    body: None,
    answer: RECORDS,
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(super) async fn get(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<Get>, Refusal>,
) -> Result<Response, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_get");
    let asked = coming.asked(asked)?;
    let visit = coming.read(asked.dataset, asked.timeout)?;
    if !(1..=KEYS_MAX).contains(&asked.key.len()) {
        return Err(Refusal::invalid(format!("a get has 1 to {KEYS_MAX} keys, as key=KEY each: ask for more by batch")));
    }
    let shards = visit.open().await?;
    let key = |text: &String| shards.columns().key_of(&Literal::parse(text)?);
    let keys = asked.key.iter().map(key).collect::<Result<Vec<_>>>()?;
    let columns = asked.columns.map(|columns| columns.of(shards.columns())).transpose()?;
    let records = visit.within(shards.get_many(&keys, columns.as_deref())).await?;
    let missing: Vec<&str> =
        asked.key.iter().zip(&records).filter(|(_, record)| record.is_none()).map(|(key, _)| key.as_str()).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Error::not_found(format!("{}: there is no record of {missing}", shards.path())).into());
    }
    lines::answer(visit.deadline(), |mut lines| async move {
        for record in records.iter().flatten() {
            visit.within(lines.push(record)).await?;
        }
        Ok(lines)
    })
    .await
}
