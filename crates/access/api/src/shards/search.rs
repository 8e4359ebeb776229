//! The records that meet a condition, and how many there are.

use axum::Json;
use axum::response::Response;
use forebay_shard::Key;
use forebay_shard_store::{Condition, Literal};
use forebay_shards::Shards;
use forebay_types::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::asked::ColumnNames;
use super::lines::Lines;
use super::visit::{Come, Visit};
use super::{RECORDS, asked, described, lines};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;

/// Hits of one request where it does not say how many, and at most: who wants more goes on after the last one.
const HITS: usize = 1000;
pub(super) const HITS_MAX: usize = 10_000;
/// Records that are read at once for their columns.
const RECORDS_AT_ONCE: usize = 1000;

/// The parameters of a request for a page of records, with its own between the dataset and the page.
macro_rules! page_of {
    ($name:ident { $($own:tt)* }) => {
        asked::asked_of!($name {
            $($own)*
            /// Records at most. Where as many come, go on with `after` and the last key.
            #[serde(default = "hits")]
            #[schemars(range(min = 1, max = HITS_MAX), example = 10)]
            limit: usize,
            /// The key after which they begin.
            #[schemars(example = &"-300")]
            after: Option<String>,
            /// Names with commas between them, or `*`: keys alone without it.
            #[schemars(with = "Option<String>", example = &"*")]
            columns: Option<ColumnNames>,
        });
    };
}

page_of!(Search {
    /// Tests of columns, joined by `and`, `or` and `not`, as on the command line.
    #[schemars(example = &"name ^= clerk00 and note contains line")]
    condition: String,
});
page_of!(Scan {});

fn hits() -> usize {
    HITS
}

pub(super) const SEARCH: Described = described::<Search>(
    Verb::Get,
    "/api/v1/shards/search",
    "The records that meet a condition, by their keys ascending.",
    RECORDS,
);

pub(super) async fn search(come: Come<Search>) -> Result<Response, Refusal> {
    let (coming, Search { dataset, condition, limit, after, columns, timeout }) = come.by_name("shard_search")?;
    let visit = coming.read(dataset, timeout)?;
    let page = Page::of(limit, after, columns)?;
    found(visit, Condition::parse(&condition)?, page).await
}

pub(super) const SCAN: Described =
    described::<Scan>(Verb::Get, "/api/v1/shards/scan", "All records, by their keys ascending.", RECORDS);

pub(super) async fn scan(come: Come<Scan>) -> Result<Response, Refusal> {
    let (coming, Scan { dataset, limit, after, columns, timeout }) = come.by_name("shard_scan")?;
    let visit = coming.read(dataset, timeout)?;
    let page = Page::of(limit, after, columns)?;
    // What all records meet.
    found(visit, Condition::And(Vec::new()), page).await
}

/// Which of the hits are answered, and what of them.
struct Page {
    limit: usize,
    after: Option<String>,
    columns: Option<ColumnNames>,
}

impl Page {
    fn of(limit: usize, after: Option<String>, columns: Option<ColumnNames>) -> Result<Self, Refusal> {
        match (1..=HITS_MAX).contains(&limit) {
            true => Ok(Self { limit, after, columns }),
            false => {
                Err(Refusal::invalid(format!("limit is a number from 1 to {HITS_MAX}: go on with `after` and the last key")))
            }
        }
    }
}

/// The records that meet a condition.
async fn found(visit: Visit, condition: Condition, page: Page) -> Result<Response, Refusal> {
    let (condition, Page { limit, after, columns }) = (condition.to_json(), page);
    let shards = visit.open().await?;
    let after = after.map(|text| shards.columns().key_of(&Literal::parse(&text)?)).transpose()?;
    let columns = columns.map(|columns| columns.of(shards.columns())).transpose()?;
    let keys = visit.within(shards.search(&condition, after.as_ref(), Some(limit))).await?;
    lines::answer(visit.deadline, |mut lines| async move {
        let pushed = async {
            match columns {
                None => push_keys(&shards, &keys, &mut lines).await,
                Some(columns) => push_records(&shards, &condition, keys, limit, &columns, &mut lines).await,
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

/// What was changed since it was found may not meet the condition any more: the next ones come in its place, so that fewer than the
/// limit are all there are.
async fn push_records(
    shards: &Shards,
    condition: &serde_json::Value,
    mut keys: Vec<Key>,
    limit: usize,
    columns: &[String],
    lines: &mut Lines,
) -> Result<()> {
    let (mut left, mut at_once) = (limit, RECORDS_AT_ONCE);
    loop {
        let is_over = keys.len() < left;
        let mut rest = keys.as_slice();
        while !rest.is_empty() {
            let (read, records) = shards.get_found(&rest[..rest.len().min(at_once)], condition, columns).await?;
            for record in &records {
                lines.push(record).await?;
            }
            left -= records.len();
            // Smaller ones may come behind large ones.
            at_once = (2 * read).min(RECORDS_AT_ONCE);
            rest = &rest[read..];
        }
        if is_over || left == 0 {
            return Ok(());
        }
        keys = shards.search(condition, keys.last(), Some(left)).await?;
    }
}

asked::asked_of!(CountAsked {
    /// Tests of columns, joined by `and`, `or` and `not`; all records without it.
    #[schemars(example = &"name = clerk007")]
    condition: Option<String>,
});

/// How many records meet a condition.
#[derive(JsonSchema, Serialize)]
pub struct Count {
    /// So many.
    pub count: u64,
}

pub(super) const COUNT: Described = described::<CountAsked>(
    Verb::Get,
    "/api/v1/shards/count",
    "How many records meet a condition.",
    Content::json::<Count>("The number."),
);

pub(super) async fn count(come: Come<CountAsked>) -> Result<Json<Count>, Refusal> {
    let (coming, asked) = come.by_name("shard_count")?;
    let visit = coming.read(asked.dataset, asked.timeout)?;
    let condition = asked.condition.map(|text| Condition::parse(&text)).transpose()?.map(|condition| condition.to_json());
    let shards = visit.open().await?;
    let count = visit.within(shards.count(condition.as_ref())).await?;
    Ok(Json(Count { count }))
}
