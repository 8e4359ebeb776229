//! Datasets of shards, by JSON: what Python gives and gets is made of it there.

use std::sync::Arc;

use forebay::Formats;
use forebay_shard_store::{Acknowledged, Column, Condition, DatasetOrders, DatasetPin, Literal, exact_json};
use forebay_shards::{ReshardTo, Resharded, Scratch, Shards as Door};
use forebay_sql::ShardBatches;
use forebay_types::{Error, ForebayPath, Result, parse_duration};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::call::{Answer, Given, run};
use crate::errors::Failure;
use crate::live::Live;
use crate::process::InProcess;
use crate::rows::Rows;

/// A dataset that is open.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Shards {
    path: String,
    door: InProcess<Door>,
}

impl Shards {
    pub(crate) async fn open(live: Arc<Live>, path: ForebayPath) -> Result<Self> {
        let door = Door::open(&live.client, &path).await?;
        Ok(Self { path: path.to_string(), door: InProcess::new(door) })
    }

    fn ask<'py, T: Given, F>(&self, py: Python<'py>, aio: bool, call: impl FnOnce(Door) -> F + Send + 'static) -> Answer<'py>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let path = Some(self.path.clone());
        let door = self.door.get().map_err(|error| Failure::on(&path)(error).raise(py))?.clone();
        run(py, aio, async move { call(door).await.map_err(Failure::on(&path)) })
    }

    /// Rows that come when they are asked for.
    fn rows(&self, py: Python<'_>, of: impl FnOnce(Door) -> Result<ShardBatches>) -> PyResult<Rows> {
        let batches = self.door.get().and_then(|door| of(door.clone()));
        batches.map(Rows::of_shards).map_err(|error| Failure::on(&Some(self.path.clone()))(error).raise(py))
    }

    /// Something of each column, the key's first.
    fn of_columns<T>(&self, py: Python<'_>, of: impl Fn(&Column) -> T) -> PyResult<Vec<T>> {
        let door = self.door.get().map_err(|error| Failure::on(&Some(self.path.clone()))(error).raise(py))?;
        let (key, others) = (door.columns().key(), door.columns().attributes());
        Ok(std::iter::once(key).chain(others).map(of).collect())
    }
}

#[pymethods]
impl Shards {
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The names of the columns, the key's first.
    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.of_columns(py, |column| column.name.clone())
    }

    /// Their types, as messages name them.
    #[getter]
    fn kinds(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        self.of_columns(py, |column| column.kind.name())
    }

    /// Records of keys that are a JSON array, as one: null for a key without one.
    #[pyo3(signature = (keys, columns=None, aio=false))]
    fn get_many<'py>(&self, py: Python<'py>, keys: String, columns: Option<Vec<String>>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move {
            let keys: Vec<Json> = parsed(&keys)?;
            let key = |key: &Json| door.columns().key_of(&Literal::from_json(key)?);
            let keys = keys.iter().map(key).collect::<Result<Vec<_>>>()?;
            Ok(Json::from_iter(door.get_many(&keys, columns.as_deref()).await?).to_string())
        })
    }

    /// Keys of the records that meet a condition, as a JSON array.
    #[pyo3(signature = (condition, after=None, limit=None, aio=false))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        condition: String,
        after: Option<String>,
        limit: Option<usize>,
        aio: bool,
    ) -> Answer<'py> {
        self.ask(py, aio, move |door| async move {
            let condition = condition_of(&condition)?;
            let after = after.map(|after| door.columns().key_of(&Literal::from_json(&parsed(&after)?)?)).transpose()?;
            let keys = door.search(&condition, after.as_ref(), limit).await?;
            Ok(Json::from_iter(keys.iter().map(|key| door.columns().key_json(key))).to_string())
        })
    }

    /// Records of keys that are a JSON array, as rows: none for a key without one.
    #[pyo3(signature = (keys, columns=None))]
    fn rows_of(&self, py: Python<'_>, keys: String, columns: Option<Vec<String>>) -> PyResult<Rows> {
        self.rows(py, |door| {
            let keys: Vec<Json> = parsed(&keys)?;
            let keys = keys.iter().map(Literal::from_json).collect::<Result<Vec<_>>>()?;
            ShardBatches::of_keys(door, &keys, columns.as_deref())
        })
    }

    /// Records that meet a condition, or all, as rows, ascending by their keys.
    #[pyo3(signature = (condition=None, columns=None, after=None, limit=None))]
    fn rows_found(
        &self,
        py: Python<'_>,
        condition: Option<String>,
        columns: Option<Vec<String>>,
        after: Option<String>,
        limit: Option<usize>,
    ) -> PyResult<Rows> {
        self.rows(py, |door| {
            let condition = condition.map_or_else(|| Ok(json!({"and": []})), |condition| condition_of(&condition))?;
            let after = after.map(|after| Literal::from_json(&parsed(&after)?)).transpose()?;
            ShardBatches::found(door, &Condition::from_json(&condition)?, after.as_ref(), limit, columns.as_deref())
        })
    }

    #[pyo3(signature = (condition=None, aio=false))]
    fn count<'py>(&self, py: Python<'py>, condition: Option<String>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move {
            let condition = condition.map(|condition| condition_of(&condition)).transpose()?;
            door.count(condition.as_ref()).await
        })
    }

    /// A record with its version, as a JSON object.
    #[pyo3(signature = (key, aio=false))]
    fn get_versioned<'py>(&self, py: Python<'py>, key: String, aio: bool) -> Answer<'py> {
        self.ask(py, aio, move |door| async move { json_of(&door.get_versioned(&Literal::from_json(&parsed(&key)?)?).await?) })
    }

    /// Makes the changes of a JSON array, as `forebay shard batch` has them: their versions.
    #[pyo3(signature = (changes, aio=false))]
    fn change<'py>(&self, py: Python<'py>, changes: String, aio: bool) -> Answer<'py> {
        self.ask(py, aio, move |door| async move {
            let changes: Vec<Json> = parsed(&changes)?;
            door.change(&changes).await
        })
    }

    /// Where its shards are, as a JSON array.
    #[pyo3(signature = (aio=false))]
    fn status<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move { json_of(&door.status().await?) })
    }

    /// What it follows, as a JSON object; null where it follows nothing.
    #[pyo3(signature = (aio=false))]
    fn follows<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move {
            let now = Door::open(door.client(), door.path()).await?;
            json_of(&forebay_shards::Follows::of(&now).await?)
        })
    }

    /// Takes over what has changed of the objects that it follows: what was done, as a JSON object.
    #[pyo3(signature = (aio=false))]
    fn refresh<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move {
            let scratch = Scratch::below(&std::env::temp_dir())?;
            json_of(&forebay_shards::refresh(door.client(), door.path(), Arc::new(Formats), scratch.path()).await?)
        })
    }

    /// Orders how often workers do so; None: not by themselves.
    #[pyo3(signature = (every=None, aio=false))]
    fn refresh_every<'py>(&self, py: Python<'py>, every: Option<String>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move {
            let every = every.map(|every| parse_duration(&every)).transpose()?;
            let ordered = Door::set_refresh(door.client(), door.path(), every).await?;
            // The worker that is to look at the objects hears of it.
            ordered.status().await.map(drop)
        })
    }

    /// Gives it other shards, a number or as many as have a size with a unit: the dataset with these, and what was done, as a JSON object.
    #[pyo3(signature = (to, aio=false))]
    fn reshard<'py>(&self, py: Python<'py>, to: String, aio: bool) -> Answer<'py> {
        let path = self.path.clone();
        self.ask(py, aio, |door| async move {
            let to: ReshardTo = to.parse()?;
            let scratch = Scratch::below(&std::env::temp_dir())?;
            let before = Door::open(door.client(), door.path()).await?.dataset().shards.len();
            let resharded = forebay_shards::reshard(door.client(), door.path(), to, scratch.path(), |_| {}).await?;
            let told = json_of(&Resharded::of(&resharded, before))?;
            Ok((Self { path, door: InProcess::new(resharded) }, told))
        })
    }

    /// What is ordered of its replicas, as a JSON object.
    #[getter]
    fn orders(&self, py: Python<'_>) -> PyResult<String> {
        let door = self.door.get().map_err(|error| Failure::on(&Some(self.path.clone()))(error).raise(py))?;
        Ok(json!(door.orders()).to_string())
    }

    /// Orders something else of its replicas, where it is said: the dataset as it is then.
    #[pyo3(signature = (pinned=None, size=None, frozen=None, ack=None, aio=false))]
    fn set_orders<'py>(
        &self,
        py: Python<'py>,
        pinned: Option<bool>,
        size: Option<f64>,
        frozen: Option<bool>,
        ack: Option<String>,
        aio: bool,
    ) -> Answer<'py> {
        let path = self.path.clone();
        self.ask(py, aio, move |door| async move {
            let ack = ack.map(|ack| ack.parse::<Acknowledged>()).transpose()?;
            let change = move |orders: &mut DatasetOrders| {
                if let Some(is_pinned) = pinned {
                    orders.pin = is_pinned.then_some(DatasetPin { size });
                }
                orders.frozen = frozen.unwrap_or(orders.frozen);
                orders.ack = ack.unwrap_or(orders.ack);
            };
            let ordered = door.order(change).await?;
            Ok(Self { path, door: InProcess::new(ordered) })
        })
    }

    /// Gives up what two workers' disks have lost: the numbers of the shards that may have lost something.
    #[pyo3(signature = (aio=false))]
    fn forgo<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move { door.forgo().await })
    }

    /// Has its replicas brought where they are to be: how many of how many are there.
    #[pyo3(signature = (aio=false))]
    fn bring<'py>(&self, py: Python<'py>, aio: bool) -> Answer<'py> {
        self.ask(py, aio, |door| async move { Ok(door.bring().await) })
    }
}

/// A condition in JSON, or as the command line has it.
fn condition_of(text: &str) -> Result<Json> {
    if text.starts_with('{') { parsed(text) } else { Ok(Condition::parse(text)?.to_json()) }
}

fn json_of(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::internal(error.to_string()))
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    exact_json(text.as_bytes()).map_err(|error| Error::invalid(format!("{text} can't be read: {error}")))
}
