//! Operations in JSON, for programs.

use forebay_shard_store::{Literal, exact_json};
use forebay_types::{Error, Result};
use serde_json::{Map, Value as Json, json};

use crate::Shards;

impl Shards {
    /// The answer to a JSON operation, as `forebay shard batch` has them; what went wrong with it is an answer too.
    pub async fn answer(&self, operation: &[u8]) -> Json {
        let answer = self.try_answer(operation).await;
        answer.unwrap_or_else(|error| json!({"error": error.kind().as_str(), "message": error.message()}))
    }

    async fn try_answer(&self, operation: &[u8]) -> Result<Json> {
        match Operation::parse(operation)? {
            Operation::Get(Get { get, columns: None, versioned: true }) => {
                let versioned = self.get_versioned(&Literal::from_json(&get)?).await?;
                serde_json::to_value(versioned).map_err(|error| Error::internal(error.to_string()))
            }
            Operation::Get(Get { versioned: true, .. }) => {
                Err(Error::invalid("a record with its version has all columns: leave out \"columns\""))
            }
            Operation::Get(Get { get, columns, .. }) => {
                Ok(self.get(&Literal::from_json(&get)?, columns.as_deref()).await?.unwrap_or(Json::Null))
            }
            Operation::Search(Search { search, after, limit }) => {
                let after = after.map(|key| self.columns().key_of(&Literal::from_json(&key)?)).transpose()?;
                let keys = self.search(&search, after.as_ref(), limit).await?;
                Ok(keys.iter().map(|key| self.columns().key_json(key)).collect())
            }
            Operation::Count(Count { count }) => {
                let condition = Some(count).filter(|condition| !condition.is_null());
                Ok(self.count(condition.as_ref()).await?.into())
            }
            Operation::Change(mut change) => {
                let versioned = matches!(change.remove("versioned"), Some(Json::Bool(true)));
                let versions = self.change(&[Json::Object(change)]).await?;
                Ok(if versioned { json!({"version": versions[0]}) } else { true.into() })
            }
        }
    }
}

/// What `forebay shard batch` reads.
enum Operation {
    Get(Get),
    Search(Search),
    Count(Count),
    Change(Map<String, Json>),
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    get: Json,
    columns: Option<Vec<String>>,
    #[serde(default)]
    versioned: bool,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    search: Json,
    after: Option<Json>,
    limit: Option<usize>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    count: Json,
}

impl Operation {
    fn parse(operation: &[u8]) -> Result<Self> {
        let text = || String::from_utf8_lossy(operation).trim_end().to_string();
        let wrong = |error: serde_json::Error| Error::invalid(format!("{} is no operation of a served dataset: {error}", text()));
        let fields: Map<String, Json> = exact_json(operation).map_err(wrong)?;
        let has = |name| fields.contains_key(name);
        if has("put") || has("delete") {
            return Ok(Self::Change(fields));
        }
        let (is_get, is_search, is_count) = (has("get"), has("search"), has("count"));
        let fields = Json::Object(fields);
        match (is_get, is_search, is_count) {
            (true, ..) => serde_json::from_value(fields).map(Self::Get).map_err(wrong),
            (_, true, _) => serde_json::from_value(fields).map(Self::Search).map_err(wrong),
            (.., true) => serde_json::from_value(fields).map(Self::Count).map_err(wrong),
            _ => Err(Error::invalid(format!(
                "{} is no operation: it has one of \"get\", \"search\", \"count\", \"put\", \"delete\"",
                text()
            ))),
        }
    }
}
