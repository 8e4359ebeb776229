//! Records by their keys.

use axum::response::Response;
use forebay_shard_store::Literal;
use forebay_types::{Error, Result};

use super::asked::ColumnNames;
use super::visit::Come;
use super::{RECORDS, asked, described, lines};
use crate::describe::{Described, Verb};
use crate::refusal::Refusal;

/// Keys of one request; `batch` takes more.
const KEYS_MAX: usize = 1000;

asked::asked_of!(Get {
    /// A key, as text or as bytes: `x'00ff'`. There may be several of these.
    #[schemars(length(min = 1, max = KEYS_MAX), example = ["7", "8"])]
    key: Vec<String>,
    /// Names with commas between them, or `*`: all columns without it.
    #[schemars(with = "Option<String>", example = &"name,note")]
    columns: Option<ColumnNames>,
});

pub(super) const PATH: Described = described::<Get>(
    Verb::Get,
    "/api/v1/shards/get",
    "The records of keys, in their order; not found where one has none.",
    RECORDS,
);

pub(super) async fn get(come: Come<Get>) -> Result<Response, Refusal> {
    let (coming, asked) = come.by_name("shard_get")?;
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
    lines::answer(visit.deadline, |mut lines| async move {
        for record in records.iter().flatten() {
            visit.within(lines.push(record)).await?;
        }
        Ok(lines)
    })
    .await
}
