//! What is asked: a shard of this machine, or a dataset that workers serve.

use std::path::Path;

use forebay_shard::Key;
use forebay_shard_store::{Columns, Condition, Store};
use forebay_shards::Shards;
use forebay_types::{ErrorKind, ForebayPath, Result};
use serde_json::Value as Json;

use super::open;
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;

/// A shard or a dataset, opened.
pub(super) enum Source {
    File(Box<Store>),
    Served(Box<Shards>),
}

impl Source {
    /// Opens what a path names: a folder of this machine where there is one, else a folder of a mount.
    pub(super) async fn open(config: &Config, path: &Path) -> Outcome<Self> {
        let served = path.to_str().filter(|_| !path.exists()).and_then(|text| text.parse::<ForebayPath>().ok());
        let Some(served) = served.filter(|path| !path.key().as_str().is_empty()) else {
            return Ok(Self::File(Box::new(open(path)?)));
        };
        let client = connect(config).await.map_err(|error| match error.kind() {
            ErrorKind::Retry | ErrorKind::Closed => error.context(format!("{}: no such folder here", path.display())),
            _ => error,
        })?;
        Ok(Self::Served(Box::new(Shards::open(&client, &served).await?)))
    }

    pub(super) fn records(&self) -> Result<&Columns> {
        match self {
            Self::File(store) => store.records(),
            Self::Served(shards) => Ok(shards.columns()),
        }
    }

    /// Records in the order of their keys; none for a key without one.
    pub(super) async fn get_many(&self, keys: &[Key], columns: Option<&[String]>) -> Result<Vec<Option<Json>>> {
        match self {
            Self::File(store) => keys.iter().map(|key| store.get_json(key, columns)).collect(),
            Self::Served(shards) => shards.get_many(keys, columns).await,
        }
    }

    /// Records of keys that a search found, those left out that don't meet its condition any more, and of how many of the keys they are.
    pub(super) async fn get_found(&self, keys: &[Key], condition: &Condition, columns: &[String]) -> Result<(usize, Vec<Json>)> {
        match self {
            Self::File(_) => Ok((keys.len(), self.get_many(keys, Some(columns)).await?.into_iter().flatten().collect())),
            Self::Served(shards) => shards.get_found(keys, &condition.to_json(), columns).await,
        }
    }

    /// Keys of the records that meet a condition.
    pub(super) async fn search(&self, condition: &Condition, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        match self {
            Self::File(store) => store.search(condition, after, limit),
            Self::Served(shards) => shards.search(&condition.to_json(), after, limit).await,
        }
    }

    /// How many meet a condition; all without one.
    pub(super) async fn count(&self, condition: Option<&Condition>) -> Result<u64> {
        match (self, condition) {
            (Self::File(store), Some(condition)) if store.is_text() => store.count_text(condition),
            (Self::File(store), Some(condition)) => store.count(condition),
            (Self::File(store), None) => store.count_all(),
            (Self::Served(shards), condition) => shards.count(condition.map(Condition::to_json).as_ref()).await,
        }
    }
}
