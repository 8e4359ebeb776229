use std::path::{Path, PathBuf};

use forebay_types::{Error, Result};
use serde_json::{Map, Value as Json, json};

use super::Store;
use crate::question::{Condition, Literal};
use crate::update::Change;

/// Answers JSON operations, for programs. The folder is opened to be changed with the first operation that does so.
pub struct Batch {
    path: PathBuf,
    store: Store,
    changes: bool,
}

impl Batch {
    /// For the shard in a folder.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { path: path.to_path_buf(), store: Store::open(path)?, changes: false })
    }

    /// The answer to one operation; what went wrong with it is an answer too.
    pub fn answer(&mut self, operation: &[u8]) -> Json {
        self.try_answer(operation).unwrap_or_else(|error| json!({"error": error.kind().as_str(), "message": error.message()}))
    }

    fn try_answer(&mut self, operation: &[u8]) -> Result<Json> {
        let parsed: Json = serde_json::from_slice(operation).map_err(|error| {
            Error::invalid(format!("{:?} is no JSON: {error}", String::from_utf8_lossy(operation).trim_end()))
        })?;
        let Json::Object(operation) = &parsed else {
            return Err(unknown(&parsed));
        };
        let only = |allowed: &[&str]| match operation.keys().find(|name| !allowed.contains(&name.as_str())) {
            Some(name) => Err(Error::invalid(format!("{name:?} does not belong to this operation"))),
            None => Ok(()),
        };
        if let Some(key) = operation.get("get") {
            only(&["get", "columns"])?;
            return self.get(key, operation.get("columns"));
        }
        if let Some(condition) = operation.get("search") {
            only(&["search", "limit"])?;
            return self.search(condition, operation.get("limit"));
        }
        if let Some(condition) = operation.get("count") {
            only(&["count"])?;
            let condition = Condition::from_json(condition)?;
            let count = if self.store.is_text() { self.store.count_text(&condition)? } else { self.store.count(&condition)? };
            return Ok(count.into());
        }
        if let Some(record) = operation.get("put") {
            only(&["put"])?;
            return self.put(record);
        }
        if let Some(key) = operation.get("delete") {
            only(&["delete"])?;
            let key = self.store.records()?.key_of(&Literal::from_json(key)?)?;
            return self.change(Change::Delete(key));
        }
        Err(unknown(&parsed))
    }

    fn get(&self, key: &Json, columns: Option<&Json>) -> Result<Json> {
        let key = self.store.records()?.key_of(&Literal::from_json(key)?)?;
        let wrong = || Error::invalid("\"columns\" is an array of names");
        let name = |name: &Json| name.as_str().map(str::to_string).ok_or_else(wrong);
        let columns = match columns {
            None | Some(Json::Null) => None,
            Some(Json::Array(names)) => Some(names.iter().map(name).collect::<Result<Vec<_>>>()?),
            Some(_) => return Err(wrong()),
        };
        Ok(self.store.get_json(&key, columns.as_deref())?.unwrap_or(Json::Null))
    }

    fn search(&self, condition: &Json, limit: Option<&Json>) -> Result<Json> {
        let condition = Condition::from_json(condition)?;
        let limit = match limit {
            None | Some(Json::Null) => None,
            Some(limit) => {
                let number = limit.as_u64().and_then(|number| usize::try_from(number).ok());
                Some(number.ok_or_else(|| Error::invalid(format!("\"limit\" is a whole number, not {limit}")))?)
            }
        };
        if self.store.is_text() {
            return Ok(self.store.search_text(&condition, limit)?.into());
        }
        let columns = self.store.records()?;
        Ok(self.store.search(&condition, None, limit)?.iter().map(|key| columns.key_json(key)).collect())
    }

    fn put(&mut self, record: &Json) -> Result<Json> {
        let object: &Map<String, Json> =
            record.as_object().ok_or_else(|| Error::invalid(format!("{record} is no record: a record is a JSON object")))?;
        let (key, values) = self.store.records()?.record_of(object)?;
        self.change(Change::Put(key, values))
    }

    fn change(&mut self, change: Change) -> Result<Json> {
        if !self.changes {
            self.store = Store::open_to_change(&self.path)?;
            self.changes = true;
        }
        self.store.change(vec![change])?;
        Ok(true.into())
    }

    /// Ends it; what was put is durable already.
    pub fn close(self) -> Result<()> {
        self.store.close()
    }
}

fn unknown(operation: &Json) -> Error {
    Error::invalid(format!("{operation} is no operation: it has one of \"get\", \"search\", \"count\", \"put\", \"delete\""))
}
