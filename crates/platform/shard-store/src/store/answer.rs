//! Operations as JSON, for batches of a command line and for workers that answer questions of others.

use std::path::{Path, PathBuf};

use forebay_types::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::Store;
use crate::exact::exact_json;
use crate::literal::Literal;
use crate::question::Condition;
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
        // Sees its own changes by itself; as a reader, those of others.
        self.store.refresh()?;
        let operation = Operation::parse(operation)?;
        if let Some(record) = operation.get("put") {
            operation.only(&["put"])?;
            return self.put(record);
        }
        if let Some(key) = operation.get("delete") {
            operation.only(&["delete"])?;
            let key = self.store.records()?.key_of(&Literal::from_json(key)?)?;
            return self.change(Change::Delete(key));
        }
        operation.ask(&self.store)
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

/// What became of a question that was sent to where a shard is served; a JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// Its answer.
    Ok(Json),
    /// It has none.
    Failed {
        /// What the asker must do.
        kind: ErrorKind,
        /// What happened.
        message: String,
    },
}

impl Answered {
    /// Answers a question in JSON, of a shard whose updates come from a log: those before `log_from` are in its files.
    pub fn to(store: &Store, log_from: u64, question: &[u8]) -> Self {
        match Operation::parse(question).and_then(|question| question.ask_with_versions(store, log_from)) {
            Ok(answer) => Self::Ok(answer),
            Err(error) => Self::failed(&error),
        }
    }

    /// Steps that an answer to a question in JSON is estimated to take, for which its backward search is made; 1 of what is no search.
    pub fn steps(store: &Store, question: &[u8]) -> u64 {
        Operation::parse(question).and_then(|question| question.steps(store)).unwrap_or(1)
    }

    /// What went wrong with a question.
    pub fn failed(error: &Error) -> Self {
        Self::Failed { kind: error.kind(), message: error.message().to_string() }
    }

    /// The answer, or the error that it is.
    pub fn into_result(self) -> Result<Json> {
        match self {
            Self::Ok(answer) => Ok(answer),
            Self::Failed { kind, message } => Err(Error::new(kind, message)),
        }
    }
}

/// One operation in JSON.
pub(super) struct Operation(Map<String, Json>);

impl Operation {
    pub(super) fn parse(operation: &[u8]) -> Result<Self> {
        let parsed: Json = exact_json(operation).map_err(|error| {
            Error::invalid(format!("{:?} is no JSON: {error}", String::from_utf8_lossy(operation).trim_end()))
        })?;
        match parsed {
            Json::Object(operation) => Ok(Self(operation)),
            other => Err(unknown(&other)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    pub(super) fn only(&self, allowed: &[&str]) -> Result<()> {
        match self.0.keys().find(|name| !allowed.contains(&name.as_str())) {
            Some(name) => Err(Error::invalid(format!("{name:?} does not belong to this operation"))),
            None => Ok(()),
        }
    }

    /// Answers it when it is a question; a `get` may want the record's version beside it.
    fn ask_with_versions(mut self, store: &Store, log_from: u64) -> Result<Json> {
        let key = match (self.0.remove("versioned"), self.get("get")) {
            (None | Some(Json::Bool(false)), _) => return self.ask(store),
            (Some(Json::Bool(true)), Some(key)) => store.records()?.key_of(&Literal::from_json(key)?)?,
            _ => return Err(Error::invalid("\"versioned\" is true or false, beside \"get\"")),
        };
        // The version before the record: of a record that changes in between, the older version is told, which is good for nothing
        // any more.
        let version = store.version(&key, log_from);
        Ok(json!({"record": self.ask(store)?, "version": version}))
    }

    /// Steps that its answer is estimated to take.
    fn steps(&self, store: &Store) -> Result<u64> {
        let (condition, is_count) = match (self.get("search"), self.get("count")) {
            (Some(condition), _) => (condition, false),
            (None, Some(condition)) if !condition.is_null() => (condition, true),
            _ => return Ok(1),
        };
        let limit = self.get("limit").filter(|limit| !limit.is_null()).map(|limit| whole("limit", limit)).transpose()?;
        store.condition_steps(&Condition::from_json(condition)?, limit, is_count)
    }

    /// Answers it when it is a question.
    fn ask(&self, store: &Store) -> Result<Json> {
        if let Some(key) = self.get("get") {
            self.only(&["get", "columns"])?;
            return get(store, key, self.get("columns"));
        }
        if let Some(condition) = self.get("search") {
            self.only(&["search", "limit", "after"])?;
            return search(store, condition, self.get("after"), self.get("limit"));
        }
        if let Some(offset) = self.get("extract") {
            self.only(&["extract", "length"])?;
            return extract(store, offset, self.get("length"));
        }
        let Some(condition) = self.get("count") else { return Err(unknown(&Json::Object(self.0.clone()))) };
        self.only(&["count"])?;
        if condition.is_null() {
            return Ok(store.count_all()?.into());
        }
        let condition = Condition::from_json(condition)?;
        let count = if store.is_text() { store.count_text(&condition)? } else { store.count(&condition)? };
        Ok(count.into())
    }
}

fn get(store: &Store, key: &Json, columns: Option<&Json>) -> Result<Json> {
    let key = store.records()?.key_of(&Literal::from_json(key)?)?;
    Ok(store.get_json(&key, names(columns)?.as_deref())?.unwrap_or(Json::Null))
}

/// The columns that are asked for; none for all.
pub(super) fn names(columns: Option<&Json>) -> Result<Option<Vec<String>>> {
    let wrong = || Error::invalid("\"columns\" is an array of names");
    let name = |name: &Json| name.as_str().map(str::to_string).ok_or_else(wrong);
    match columns {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Array(names)) => names.iter().map(name).collect::<Result<Vec<_>>>().map(Some),
        Some(_) => Err(wrong()),
    }
}

fn search(store: &Store, condition: &Json, after: Option<&Json>, limit: Option<&Json>) -> Result<Json> {
    let condition = Condition::from_json(condition)?;
    let limit = limit.filter(|limit| !limit.is_null()).map(|limit| whole("limit", limit)).transpose()?;
    let after = after.filter(|after| !after.is_null());
    if store.is_text() {
        return match after {
            None => Ok(store.search_text(&condition, limit)?.into()),
            Some(_) => Err(Error::invalid("\"after\" is a key, and flat text has none")),
        };
    }
    let columns = store.records()?;
    let after = after.map(|after| columns.key_of(&Literal::from_json(after)?)).transpose()?;
    Ok(store.search(&condition, after.as_ref(), limit)?.iter().map(|key| columns.key_json(key)).collect())
}

fn extract(store: &Store, offset: &Json, length: Option<&Json>) -> Result<Json> {
    let (offset, length) = (whole("extract", offset)?, whole("length", length.unwrap_or(&Json::Null))?);
    Ok(Literal::bytes_to_json(&store.extract_text(offset as u64, length)?))
}

pub(super) fn whole(name: &str, value: &Json) -> Result<usize> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Error::invalid(format!("{name:?} is a whole number, not {value}")))
}

fn unknown(operation: &Json) -> Error {
    Error::invalid(format!(
        "{operation} is no operation: it has one of \"get\", \"search\", \"count\", \"extract\", \"put\", \"delete\""
    ))
}
