//! Datasets that are made of built shards.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_runtime::{Defect, planted};
use forebay_shard::{Key, KeyMap};
use forebay_shard_store::{
    Acknowledged, Columns, Dataset, DatasetFollowing, DatasetShard, DatasetSource, GARBAGE_AFTER, Packed, manifest_key, pack,
};
use forebay_types::{Error, ErrorKind, ForebayPath, ObjectInfo, Result};

use super::files::store_packed;
use crate::Shards;
use crate::open::{below, latest_manifest, read_manifest};
use crate::orders::millis;
use crate::refresh::{Sources, check_from, store_keys};

/// The highest number that the logs of a dataset go on behind.
const NUMBER_MAX: u64 = 5_000_000_000;

/// A dataset on its way: its shards are stored one by one, and it is there once its manifest is.
pub struct Creating {
    client: Client,
    path: ForebayPath,
    columns: Columns,
    replicas: Vec<f64>,
    number: u64,
    /// The one that is replaced.
    before: Option<Shards>,
    shards: Vec<DatasetShard>,
    /// Which shards are to have which keys, where these are in ranges.
    splits: Option<Arc<[Key]>>,
    following: Option<DatasetFollowing>,
    /// When its changes are acknowledged; none for as the one before it.
    ack: Option<Acknowledged>,
    sources: Vec<DatasetSource>,
    /// Stored after the manifest: none but by a defect that was put back.
    late: Vec<Packed>,
    began: Instant,
}

/// Begins a dataset in a folder of a mount; each of its shards is kept by as many workers as there are `replicas`, each with that
/// part of the input's bytes. `Conflict` when there is one already, unless it is to be replaced.
pub async fn create(
    client: &Client,
    path: &ForebayPath,
    columns: Columns,
    replicas: Vec<f64>,
    replace: bool,
) -> Result<Creating> {
    let last = latest_manifest(client, path).await?;
    if last.is_some() && !replace {
        return Err(Error::conflict(format!("{path} is there already: --replace puts a new one in its place")));
    }
    let before = if last.is_some() { Some(Shards::open(client, path).await?) } else { None };
    let number = last.unwrap_or(0) + 1;
    let began = forebay_runtime::now();
    let (client, path, shards, sources) = (client.clone(), path.clone(), Vec::new(), Vec::new());
    Ok(Creating {
        client,
        path,
        columns,
        replicas,
        number,
        before,
        shards,
        splits: None,
        following: None,
        ack: None,
        sources,
        late: Vec::new(),
        began,
    })
}

impl Creating {
    /// Has its shards have the keys that a map says, by hash without it: as many are to be pushed, in order, each with its keys.
    pub fn by(&mut self, map: &KeyMap) {
        self.splits = map.splits().cloned();
    }

    /// Stores the next shard, built in a folder.
    pub async fn push(&mut self, folder: &Path, progress: impl Fn(u64)) -> Result<()> {
        let built = folder.to_path_buf();
        let packed = forebay_runtime::spawn_blocking(move || pack(&built)).await;
        let packed = packed.map_err(|error| Error::internal(format!("looking through a shard ended early: {error}")))??;
        if planted(Defect::ManifestFirst) {
            self.shards.push(packed.shard.clone());
            self.late.push(packed);
            return Ok(());
        }
        store_packed(&self.client, &self.path, &packed, &progress).await?;
        self.shards.push(packed.shard);
        Ok(())
    }

    /// Has the dataset follow objects and folders of its mount, looked at so often; of each object that its records are of,
    /// [`Self::came_from`] tells. `Invalid` where they are of another mount.
    pub fn follow(&mut self, from: Vec<String>, every: Duration) -> Result<()> {
        check_from(&self.path, &from)?;
        let name = format!("{:016x}", forebay_runtime::random::<u64>());
        self.following = Some(DatasetFollowing { name, from, every_ms: millis(every) });
        Ok(())
    }

    /// Has changes of its records acknowledged so, whatever the dataset that it replaces has. Needs the right to administer the mount where
    /// that is not when shared storage has them.
    pub fn acknowledge(&mut self, ack: Acknowledged) {
        self.ack = Some(ack);
    }

    /// Says which keys the records of an object have, in any order; that of the objects is the one in which their records were taken.
    pub async fn came_from(&mut self, object: &ObjectInfo, mut keys: Vec<Key>) -> Result<()> {
        if self.following.is_none() {
            return Ok(());
        }
        keys.sort_unstable();
        keys.dedup();
        let (version, records) = (&object.version, keys.len() as u64);
        let keys = store_keys(&self.client, &self.path, &keys, &[]).await?;
        let path = ForebayPath::new(self.path.mount().clone(), version.key.clone()).to_string();
        let tag = version.tag.as_str().to_string();
        self.sources.push(DatasetSource { path, tag, bytes: version.size, records, keys });
        Ok(())
    }

    /// Makes the dataset of what was stored, and gives its manifest's number. `Conflict` when somebody else was faster. The one that
    /// it replaces can't be changed any more from here on: its writers are told to open it again.
    pub async fn finish(self) -> Result<u64> {
        // What is not named for long is garbage, which workers delete.
        if self.began.elapsed() > GARBAGE_AFTER / 2 {
            return Err(Error::retry(format!("{}: storing the shards took longer than they may stay unnamed", self.path)));
        }
        let log = Some(format!("{:016x}", forebay_runtime::random::<u64>()));
        let (columns, replicas, shards) = (self.columns.clone(), self.replicas.clone(), self.shards.clone());
        let following = self.following.clone();
        let orders = Default::default();
        let (next, before, splits) = (None, Vec::new(), self.splits.clone());
        let mut dataset = Dataset { columns, replicas, shards, log, orders, following, next, before, splits };
        Sources::create(&self.client, &self.path, &dataset, &self.sources).await?;
        // What is ordered of the dataset of this name holds for the next one too, as of its last manifest.
        let mut orders = self.before.as_ref().map_or_else(Default::default, |before| before.dataset().orders);
        let mut number = self.number;
        if let Some(before) = &self.before {
            // Who was faster is told so before anything is ended.
            while let Some(merged) = self.merged_as(number).await? {
                (number, orders) = (number + 1, merged.orders);
            }
            let first = first_behind(before.seal().await?);
            dataset.shards.iter_mut().for_each(|shard| shard.log_from = first);
        }
        debug_assert!(number >= self.number, "manifests are numbered upwards");
        dataset.orders = orders;
        loop {
            dataset.orders.ack = self.ack.unwrap_or(dataset.orders.ack);
            let bytes = Bytes::from(dataset.encode().map_err(|error| error.context(&self.path))?);
            let object = below(&self.path, &manifest_key(number))?;
            match self.client.put(&object, bytes, PutCondition::Absent).await {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Conflict => match self.merged_as(number).await? {
                    Some(merged) => (number, dataset.orders) = (number + 1, merged.orders),
                    None => return Err(self.too_late()),
                },
                Err(error) => return Err(error),
            }
        }
        for packed in &self.late {
            store_packed(&self.client, &self.path, packed, &|_| {}).await?;
        }
        Ok(number)
    }

    /// The dataset that is replaced as the manifest of a number has it, after a merge or an order; none where there is none. `Conflict`
    /// where it is somebody else's dataset.
    async fn merged_as(&self, number: u64) -> Result<Option<Dataset>> {
        let dataset = match read_manifest(&self.client, &self.path, number).await {
            Ok((dataset, _)) => dataset,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let log = self.before.as_ref().and_then(|before| before.dataset().log.as_ref());
        if log.is_some() && dataset.log.as_ref() == log { Ok(Some(dataset)) } else { Err(self.too_late()) }
    }

    fn too_late(&self) -> Error {
        Error::conflict(format!("{}: somebody else made a dataset here meanwhile", self.path))
    }
}

/// The number of the first object of a log, by the highest of those before it: what somebody has read of the dataset that is replaced has no
/// version of the next one, and is not taken for what is there now.
fn first_behind(last: u64) -> u64 {
    // Such a number is nobody's who counts, and its log is replaced as what is damaged is: names have room for ten digits.
    if last < NUMBER_MAX { last + 1 } else { 1 }
}
