//! What an operator orders of a dataset, which its next manifest says.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, ORDERS_SINCE, PutCondition};
use forebay_shard_store::{Dataset, DatasetOrders, manifest_key};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use futures::stream::{self, StreamExt};
use serde_json::json;

use crate::Shards;
use crate::open::below;

/// How often the next manifest is tried while others write manifests too.
const ATTEMPTS: usize = 1000;
/// Replicas that are brought at a time.
const BROUGHT_AT_ONCE: usize = 8;

impl Shards {
    /// What is ordered of its replicas, as the manifest has it that it was opened with.
    pub fn orders(&self) -> DatasetOrders {
        self.dataset.orders
    }

    /// Orders something else of the replicas of the dataset in a folder of a mount: its next manifest says so, which needs the right to
    /// administer the mount, and workers follow it. Gives the dataset with what holds from now on.
    pub async fn set_orders(client: &Client, path: &ForebayPath, change: impl Fn(&mut DatasetOrders)) -> Result<Self> {
        if let Some(old) = client.view().workers.iter().find(|worker| worker.protocol < ORDERS_SINCE) {
            return Err(Error::retry(format!(
                "worker {} is of the release before, and would lose the order with its next merge: upgrade it first",
                old.id
            )));
        }
        let change = |dataset: &mut Dataset| -> Result<()> {
            if dataset.log.is_none() {
                return Err(Error::invalid(format!(
                    "{path}: the dataset is of a Forebay version that knew no orders: create it again with --replace"
                )));
            }
            change(&mut dataset.orders);
            Ok(())
        };
        Self::change_manifest(client, path, change).await
    }

    /// Orders how often it is looked whether the objects have changed that the dataset in a folder of a mount follows; none where nobody is
    /// to look by himself, which needs the right to write there. As [`Self::set_orders`] otherwise; `Invalid` where it follows nothing.
    pub async fn set_refresh(client: &Client, path: &ForebayPath, every: Option<Duration>) -> Result<Self> {
        let change = |dataset: &mut Dataset| -> Result<()> {
            let none =
                || Error::invalid(format!("{path}: it follows no objects: `forebay shard create --refresh` makes one that does"));
            dataset.following.as_mut().ok_or_else(none)?.every_ms = every.map_or(0, millis);
            Ok(())
        };
        Self::change_manifest(client, path, change).await
    }

    /// Writes the next manifest of the dataset in a folder of a mount, where it is to be another one; gives the dataset as it is then.
    pub(crate) async fn change_manifest(
        client: &Client,
        path: &ForebayPath,
        change: impl Fn(&mut Dataset) -> Result<()>,
    ) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let shards = Self::open(client, path).await?;
            let mut dataset = shards.dataset().clone();
            change(&mut dataset)?;
            if dataset == *shards.dataset() {
                return Ok(shards);
            }
            let bytes = Bytes::from(dataset.encode().map_err(|error| error.context(path))?);
            let next = below(path, &manifest_key(shards.manifest() + 1))?;
            match client.put(&next, bytes, PutCondition::Absent).await {
                Ok(_) => return Self::open(client, path).await,
                // A merge was faster, or somebody with another order.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::retry(format!("{path}: others write manifests too: try again")))
    }

    /// The same of the dataset that is open here.
    pub async fn order(&self, change: impl Fn(&mut DatasetOrders)) -> Result<Self> {
        Self::set_orders(&self.client, &self.path, change).await
    }

    /// Has the workers that hold its shards bring them, and says of how many of how many replicas they say that they have.
    pub async fn bring(&self) -> (usize, usize) {
        let replicas = self.dataset.replicas.len();
        let places: Vec<_> = (0..self.dataset.shards.len())
            .flat_map(|shard| {
                let holders = self.holders(shard);
                holders.iter().take(replicas).map(move |worker| (shard, *worker)).collect::<Vec<_>>()
            })
            .collect();
        let all = places.len();
        // How many records there are is what no shard says that is far away.
        let question = Bytes::from(format!("{}\n", json!({"count": null})));
        let asked = places.into_iter().map(|(shard, worker)| {
            let question = question.clone();
            async move { self.client.shards().ask(worker, &self.id, shard as u32, question, self.within).await.is_ok() }
        });
        let here =
            stream::iter(asked).buffer_unordered(BROUGHT_AT_ONCE).filter(|is_here| std::future::ready(*is_here)).count().await;
        debug_assert!(here <= all, "each is asked once");
        (here, all)
    }
}

/// A time in milliseconds, one at least.
pub(crate) fn millis(every: Duration) -> u64 {
    u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1)
}
