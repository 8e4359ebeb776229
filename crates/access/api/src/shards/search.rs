//! The records that meet a condition, and how many there are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use forebay_shard::Key;
use forebay_shard_store::{Condition, Literal};
use forebay_shards::Shards;
use forebay_types::{ForebayPath, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::asked::{Asked, ColumnNames, Timeout};
use super::lines::Lines;
use super::visit::Visit;
use super::{Datasets, asked, lines};
use crate::refusal::Refusal;

/// Hits of one request where it does not say how many, and at most: who wants more goes on after the last one.
const HITS: usize = 1000;
pub(super) const HITS_MAX: usize = 10_000;
/// Records that are read at once for their columns.
const RECORDS_AT_ONCE: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    condition: String,
    #[serde(default = "hits")]
    limit: usize,
    after: Option<String>,
    columns: Option<ColumnNames>,
    #[serde(default)]
    timeout: Timeout,
}

fn hits() -> usize {
    HITS
}

pub(super) async fn search(
    State(datasets): State<Arc<Datasets>>,
    headers: HeaderMap,
    Asked(asked): Asked<Search>,
) -> Result<Response, Refusal> {
    let visit = Visit::enter(&datasets, &headers, "shard search", asked.dataset, asked.timeout)?;
    if !(1..=HITS_MAX).contains(&asked.limit) {
        return Err(Refusal::invalid(format!("limit is a number from 1 to {HITS_MAX}: go on with `after` and the last key")));
    }
    let condition = Condition::parse(&asked.condition)?.to_json();
    let shards = visit.open().await?;
    let after = asked.after.map(|text| shards.columns().key_of(&Literal::parse(&text)?)).transpose()?;
    let columns = asked.columns.map(|columns| columns.of(shards.columns())).transpose()?;
    let keys = visit.within(shards.search(&condition, after.as_ref(), Some(asked.limit))).await?;
    lines::answer(visit.deadline(), |mut lines| async move {
        let pushed = async {
            match columns {
                None => push_keys(&shards, &keys, &mut lines).await,
                Some(columns) => push_records(&shards, &keys, &columns, &mut lines).await,
            }
        };
        visit.within(pushed).await?;
        Ok(lines)
    })
    .await
}

async fn push_keys(shards: &Shards, keys: &[Key], lines: &mut Lines) -> Result<()> {
    let columns = shards.columns();
    for key in keys {
        lines.push(&json!({&columns.key().name: columns.key_json(key)})).await?;
    }
    Ok(())
}

/// Those that were deleted since they were found don't meet the condition any more.
async fn push_records(shards: &Shards, keys: &[Key], columns: &[String], lines: &mut Lines) -> Result<()> {
    for keys in keys.chunks(RECORDS_AT_ONCE) {
        for record in shards.get_many(keys, Some(columns)).await?.iter().flatten() {
            lines.push(record).await?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountAsked {
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    condition: Option<String>,
    #[serde(default)]
    timeout: Timeout,
}

/// How many records meet a condition.
#[derive(Serialize)]
pub struct Count {
    /// So many.
    pub count: u64,
}

pub(super) async fn count(
    State(datasets): State<Arc<Datasets>>,
    headers: HeaderMap,
    Asked(asked): Asked<CountAsked>,
) -> Result<Json<Count>, Refusal> {
    let visit = Visit::enter(&datasets, &headers, "shard count", asked.dataset, asked.timeout)?;
    let condition = asked.condition.map(|text| Condition::parse(&text)).transpose()?.map(|condition| condition.to_json());
    let shards = visit.open().await?;
    let count = visit.within(shards.count(condition.as_ref())).await?;
    Ok(Json(Count { count }))
}
