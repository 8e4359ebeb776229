//! More or fewer shards for a dataset that is served meanwhile.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::{Client, RESHARD_SINCE};
use forebay_navigation::{SWITCH_LIMITS, Share, tails_fit};
use forebay_shard::{KeyMap, SPLIT_BYTES_MAX};
use forebay_shard_store::{AskedShares, Dataset, DatasetShard, GARBAGE_AFTER, LogPlace, NextShards, Packed};
use forebay_types::{Error, ErrorKind, ForebayPath, Key, Result, ResultExt};

use super::files::{bring, store_packed};
use super::ranges::{Becoming, ReshardTo};
use crate::Shards;

/// The least that a shard is stored at: each worker makes its own layers.
const BASE_SIZE: f64 = 0.01;
/// How long a merge, or the end of all logs, is waited for.
const WITHIN: Duration = Duration::from_secs(600);
/// Objects of a page of a listing.
const PAGE: u32 = 1000;
/// How the dataset stands when it ended early, and what becomes of that when it is given again.
const AS_BEFORE: &str = "the dataset has the shards that it had, and this begins anew when it is given again";
const STORED: &str = "the new shards are stored, and this sees when it is given again whether the dataset is about to have them";
const ANNOUNCED: &str = "the new shards are announced, and take over when this is given again, or with the next merge";

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReshardStep {
    /// What was changed in the shard with a number from 0, of so many, is merged into its files.
    Merging(usize, usize),
    /// The new shard with a number from 0, of so many, is cut out of those that there are, and stored.
    Cutting(usize, usize),
    /// The logs of all shards end, and the new ones take their place.
    Switching,
}

impl fmt::Display for ReshardStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Merging(shard, of) => write!(f, "merging shard {} of {of}", shard + 1),
            Self::Cutting(shard, of) => write!(f, "making new shard {} of {of}", shard + 1),
            Self::Switching => f.write_str("the new shards take over"),
        }
    }
}

/// What a dataset has that was given other shards.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Resharded {
    /// The folder that it lies in.
    pub dataset: String,
    /// The number of its manifest.
    pub manifest: u64,
    /// How many shards it had before.
    pub before: usize,
    /// How many it has.
    pub shards: usize,
    /// Bytes of these in shared storage.
    pub bytes: u64,
}

impl Resharded {
    /// Of a dataset as [`reshard`] gave it, that had so many shards before.
    pub fn of(shards: &Shards, before: usize) -> Self {
        let all = &shards.dataset.shards;
        let bytes = all.iter().map(DatasetShard::bytes).sum();
        Self { dataset: shards.path.to_string(), manifest: shards.manifest(), before, shards: all.len(), bytes }
    }
}

/// New shards that are stored and that no manifest names yet.
pub struct Cut {
    /// The dataset whose shards they were cut out of.
    of: Shards,
    next: NextShards,
    began: Instant,
}

/// Has the dataset in a folder of a mount have more or fewer shards, which needs the right to write there; gives it with these. It is
/// asked and changed meanwhile, but for the moment in which the new ones take the place of the old ones. One new shard is made at a time,
/// in the folder `scratch` of this machine. What somebody began and did not end is ended first: given again after it ended early, it goes on
/// behind what is announced. `Conflict` where what was announced is not what is wanted of one shard: its number was that of before.
///
/// `Retry` where more is changed meanwhile than the new shards could take over: all is as it was.
pub async fn reshard(
    client: &Client,
    path: &ForebayPath,
    to: ReshardTo,
    scratch: &Path,
    progress: impl Fn(ReshardStep),
) -> Result<Shards> {
    check_workers(client)?;
    let mut shards = open(client, path).await?;
    if shards.dataset.log.is_none() {
        return Err(Error::invalid(format!(
            "{path}: the dataset is of a Forebay version that knew no changes of datasets: create it again with --replace"
        )));
    }
    // What no dataset can have is said before anything is done.
    Becoming::of(to, &shards.dataset)?;
    if shards.dataset.next.is_some() {
        progress(ReshardStep::Switching);
        let ended = end_begun(client, path, &shards).await.map_err(|error| stopped(error, ANNOUNCED))?;
        // The shard that has that number now is another one.
        if to.is_of_one() && ended.dataset.log != shards.dataset.log {
            let has_next = shards.dataset.next.as_ref().is_some_and(|next| ended.dataset.log.as_ref() == Some(&next.log));
            return if has_next && to.is_announced(&shards.dataset) { Ok(ended) } else { Err(too_late(path)) };
        }
        shards = ended;
    }
    let before = shards.dataset.shards.len();
    if Becoming::of(to, &shards.dataset)?.is_as(&shards.dataset) && shards.dataset.next.is_none() {
        return Ok(shards);
    }
    let cutting = async {
        for shard in 0..before {
            progress(ReshardStep::Merging(shard, before));
            shards.merge_shard(shard).await?;
        }
        let merged = open(client, path).await?;
        // Others may have given it other shards since.
        if merged.dataset.log != shards.dataset.log && to.is_of_one() {
            return Err(too_late(path));
        }
        let map = Becoming::of(to, &merged.dataset)?.map(&merged, scratch).await?;
        // A range of few keys is not cut, and nothing may be left to do.
        let is_same = map == merged.dataset.map();
        if let ReshardTo::Split(shard) = to
            && is_same
        {
            return Err(uncut(path, shard));
        }
        let cut =
            if is_same && merged.dataset.next.is_none() { None } else { Some(Cut::of(&merged, map, scratch, &progress).await?) };
        Ok((merged, cut))
    };
    let (merged, cut) = cutting.await.map_err(|error| stopped(error, AS_BEFORE))?;
    let Some(cut) = cut else { return Ok(merged) };
    progress(ReshardStep::Switching);
    cut.announce().await?;
    cut.take_place().await
}

impl Cut {
    /// Makes and stores the shards of a map of those that the dataset has, of all that is merged into their files.
    pub async fn of(of: &Shards, map: KeyMap, scratch: &Path, progress: impl Fn(ReshardStep)) -> Result<Self> {
        let (began, count) = (forebay_runtime::now(), map.shards());
        Dataset::check_shape(count, &of.dataset.replicas)?;
        let sources = of.dataset.map().recut(&map)?;
        let (mut here, mut shards) = (BTreeSet::<u32>::new(), Vec::with_capacity(count));
        let folder = |shard: u32| scratch.join(format!("from{shard}"));
        for (number, from) in sources.iter().enumerate() {
            progress(ReshardStep::Cutting(number, count));
            while let Some(gone) = here.first().copied().filter(|shard| from.iter().all(|share| share.shard > *shard)) {
                here.remove(&gone);
                std::fs::remove_dir_all(folder(gone)).context(|| folder(gone).display().to_string())?;
            }
            for share in from {
                if here.insert(share.shard) {
                    bring(&of.client, &of.path, &of.dataset.shards[share.shard as usize], &folder(share.shard)).await?;
                }
            }
            let made = scratch.join("made");
            // Of a try before that ended early.
            if made.exists() {
                std::fs::remove_dir_all(&made).context(|| made.display().to_string())?;
            }
            let mut packed =
                cut_one(from.iter().map(|share| folder(share.shard)).collect(), made.clone(), (number, map.clone())).await?;
            store_packed(&of.client, &of.path, &packed, &|_| {}).await?;
            std::fs::remove_dir_all(&made).context(|| made.display().to_string())?;
            packed.shard.asked = asked_of(&of.dataset, from);
            shards.push(packed.shard);
        }
        for shard in here {
            std::fs::remove_dir_all(folder(shard)).context(|| folder(shard).display().to_string())?;
        }
        assert_eq!(shards.len(), count, "each new shard is made");
        let records = |shards: &[DatasetShard]| shards.iter().map(|shard| shard.records).sum::<u64>();
        debug_assert_eq!(records(&shards), records(&of.dataset.shards), "each record is in one of them");
        let log = format!("{:016x}", forebay_runtime::random::<u64>());
        let cuts = of.dataset.shards.iter().map(|shard| shard.log_from).collect();
        Ok(Self { of: of.clone(), next: NextShards { log, shards, cuts, splits: map.splits().cloned() }, began })
    }

    /// Has the next manifest say that the dataset is about to have other shards. From here on whoever meets the dataset may end what was begun.
    pub async fn announce(&self) -> Result<()> {
        // What is not named for long is garbage, which workers delete.
        if self.began.elapsed() > GARBAGE_AFTER / 2 {
            return Err(Error::retry(format!("{}: storing the shards took longer than they may stay unnamed", self.of.path)));
        }
        self.check_tails().await?;
        let change = |dataset: &mut Dataset| -> Result<()> {
            if dataset.log != self.of.dataset.log {
                return Err(too_late(&self.of.path));
            }
            dataset.next = Some(self.next.clone());
            Ok(())
        };
        let changed = Shards::change_manifest(&self.of.client, &self.of.path, change).await;
        changed.map(drop).map_err(|error| stopped(error, STORED))
    }

    /// Has these take the place of the old ones, once they are announced; gives the dataset with them.
    async fn take_place(&self) -> Result<Shards> {
        let ending = async {
            let announced = open(&self.of.client, &self.of.path).await?;
            if announced.dataset.log == self.of.dataset.log {
                announced.merge_shard(0).await?;
            }
            Shards::open(&self.of.client, &self.of.path).await
        };
        let now = ending.await.map_err(|error| stopped(error, ANNOUNCED))?;
        if now.dataset.log.as_ref() == Some(&self.next.log) {
            return Ok(now);
        }
        if now.dataset.log == self.of.dataset.log { Err(self.too_much()) } else { Err(too_late(&self.of.path)) }
    }

    /// `Retry` where more was changed since the new shards were cut than they could have in memory.
    async fn check_tails(&self) -> Result<()> {
        let next = &self.next;
        let (mut bytes, mut objects) = (Vec::with_capacity(next.cuts.len()), 0u64);
        for (shard, cut) in next.cuts.iter().enumerate() {
            let (of_shard, count) = self.tail(shard, *cut).await.map_err(|error| stopped(error, AS_BEFORE))?;
            bytes.push(of_shard);
            objects += count;
        }
        let sources = self.of.dataset.map().recut(&next.map())?;
        match objects <= SWITCH_LIMITS.tail_max && tails_fit(&bytes, &sources) {
            true => Ok(()),
            false => Err(self.too_much()),
        }
    }

    /// Bytes and count of what a shard's log has from a number on.
    async fn tail(&self, shard: usize, cut: u64) -> Result<(u64, u64)> {
        let Some(log) = self.of.dataset.log.clone() else { return Ok((0, 0)) };
        let folder = self.of.path.key().as_str().trim_end_matches('/').to_string();
        let before = LogPlace { folder, log, shard: shard as u32 }.key(cut - 1)?;
        let prefix = Key::new(before.as_str().trim_end_matches(|digit: char| digit.is_ascii_digit()))?;
        let prefix = ForebayPath::new(self.of.path.mount().clone(), prefix);
        let (mut bytes, mut count, mut after) = (0, 0, Some(before));
        while let Some(behind) = after {
            let page = self.of.client.list_page(&prefix, false, Some(behind), PAGE).await?;
            bytes += page.objects.iter().map(|info| info.version.size).sum::<u64>();
            count += page.objects.len() as u64;
            after = page.next;
        }
        Ok((bytes, count))
    }

    fn too_much(&self) -> Error {
        Error::retry(format!(
            "{}: more is changed meanwhile than new shards could take over, and the dataset has the shards that it had: try again when less is \
             written, which replaces the new ones",
            self.of.path
        ))
    }
}

fn too_late(path: &ForebayPath) -> Error {
    Error::conflict(format!(
        "{path}: somebody else gave the dataset other shards, or replaced it: see what it has (`forebay shard status`) before you ask again"
    ))
}

fn uncut(path: &ForebayPath, shard: u32) -> Error {
    Error::invalid(format!(
        "{path}: shard {shard} has one key, or keys that begin with the same {SPLIT_BYTES_MAX} bytes, and can't be cut in two"
    ))
}

async fn open(client: &Client, path: &ForebayPath) -> Result<Shards> {
    Ok(Shards::open(client, path).await?.with_patience(WITHIN))
}

/// Has the dataset have the shards that are announced; gives it as it is then.
async fn end_begun(client: &Client, path: &ForebayPath, shards: &Shards) -> Result<Shards> {
    shards.merge_shard(0).await?;
    open(client, path).await
}

/// What ended it early, and how the dataset stands, where it is of use to give it again.
fn stopped(error: Error, stands: &str) -> Error {
    match error.kind() {
        // What is not found may be in other files by now.
        ErrorKind::Retry | ErrorKind::Closed | ErrorKind::NotFound | ErrorKind::Internal => error.context(stands),
        _ => error,
    }
}

fn check_workers(client: &Client) -> Result<()> {
    match client.view().workers.iter().find(|worker| worker.protocol < RESHARD_SINCE) {
        Some(old) => Err(Error::retry(format!(
            "worker {} is of the release before, and could not follow the dataset to other shards: upgrade it first",
            old.id
        ))),
        None => Ok(()),
    }
}

/// What those of a new shard were asked whose keys it has.
fn asked_of(dataset: &Dataset, from: &[Share]) -> Option<AskedShares> {
    let asked = from.iter().filter_map(|share| {
        let shard = &dataset.shards[share.shard as usize];
        shard.asked.as_ref().map(|asked| (asked, share.part * shard.input_bytes as f64))
    });
    AskedShares::mixed(asked)
}

/// The shard with a number of those of a map, of those in some folders. Dropped, it writes no more.
async fn cut_one(from: Vec<PathBuf>, to: PathBuf, (number, map): (usize, KeyMap)) -> Result<Packed> {
    // Lives as long as somebody waits.
    let waits = Arc::new(());
    let waiting = Arc::downgrade(&waits);
    let cutting = forebay_runtime::spawn_blocking(move || {
        let from: Vec<&Path> = from.iter().map(PathBuf::as_path).collect();
        forebay_shard_store::recut(&from, &to, BASE_SIZE, |key| match waiting.strong_count() {
            0 => Err(Error::closed("nobody waits for the shard any more")),
            _ => Ok(map.shard_of(key) == number),
        })
    });
    cutting.await.map_err(|error| Error::internal(format!("cutting a shard ended early: {error}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_stopped_is_told_how_the_dataset_stands_where_it_may_be_given_again() {
        let away = stopped(Error::retry("worker 3 is gone"), ANNOUNCED);
        assert_eq!(away.kind(), ErrorKind::Retry);
        assert_eq!(away.message(), format!("{ANNOUNCED}: worker 3 is gone"));
        for stands in [AS_BEFORE, STORED, ANNOUNCED] {
            assert!(stands.contains("given again"), "{stands}");
        }
        assert_eq!(stopped(Error::conflict("replaced"), AS_BEFORE).message(), "replaced");
    }
}
