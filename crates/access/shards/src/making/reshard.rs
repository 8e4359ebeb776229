//! More or fewer shards for a dataset that is served meanwhile.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::{Client, RESHARD_SINCE};
use forebay_navigation::{SWITCH_LIMITS, Share, recut, shards_for, tails_fit};
use forebay_shard_store::{AskedShares, Dataset, DatasetShard, GARBAGE_AFTER, LogPlace, NextShards, Packed, shard_of};
use forebay_types::{ByteSize, Error, ErrorKind, ForebayPath, Key, Result, ResultExt};

use super::files::{bring, store_packed};
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

/// How many shards a dataset is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReshardTo {
    /// So many.
    Shards(u32),
    /// As many as have about so many bytes of input each.
    BytesEach(u64),
}

impl ReshardTo {
    fn count(self, dataset: &Dataset) -> Result<usize> {
        let count = match self {
            Self::Shards(count) => count,
            Self::BytesEach(bytes) => {
                let input_bytes = dataset.shards.iter().fold(0u64, |sum, shard| sum.saturating_add(shard.input_bytes));
                shards_for(input_bytes, bytes)?
            }
        };
        Dataset::check_shape(count as usize, &dataset.replicas)?;
        Ok(count as usize)
    }

    /// About the bytes that its shards take of the folder at a time while it is given others: those that one new shard is cut out of, and that one.
    pub fn scratch_bytes(self, shards: &Shards) -> Result<u64> {
        let (before, count) = (shards.dataset.shards.len(), self.count(&shards.dataset)?);
        let bytes_of = |share: &Share| shards.dataset.shards[share.shard as usize].bytes();
        let sources = recut(before as u32, count as u32)?;
        let most = sources.iter().map(|from| from.iter().map(bytes_of).fold(0u64, u64::saturating_add)).max();
        Ok(most.unwrap_or(0).saturating_mul(2))
    }
}

/// A number of shards, or with a unit the size that each is to have about: `16`, `128MiB`.
impl FromStr for ReshardTo {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(|ByteSize(bytes)| Self::BytesEach(bytes));
        }
        let none = |_| Error::invalid(format!("{text:?} is no number of shards, nor the size of each: write 16 or 128MiB"));
        text.parse().map(Self::Shards).map_err(none)
    }
}

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
/// behind what is announced.
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
    if shards.dataset.next.is_some() {
        progress(ReshardStep::Switching);
        shards = end_begun(client, path, &shards).await.map_err(|error| stopped(error, ANNOUNCED))?;
    }
    let (before, count) = (shards.dataset.shards.len(), to.count(&shards.dataset)?);
    if count == before && shards.dataset.next.is_none() {
        return Ok(shards);
    }
    let cutting = async {
        for shard in 0..before {
            progress(ReshardStep::Merging(shard, before));
            shards.merge_shard(shard).await?;
        }
        Cut::of(&open(client, path).await?, count, scratch, &progress).await
    };
    let cut = cutting.await.map_err(|error| stopped(error, AS_BEFORE))?;
    progress(ReshardStep::Switching);
    cut.announce().await?;
    cut.take_place().await
}

impl Cut {
    /// Makes and stores so many shards of those that the dataset has, of all that is merged into their files.
    pub async fn of(of: &Shards, count: usize, scratch: &Path, progress: impl Fn(ReshardStep)) -> Result<Self> {
        let (began, before) = (forebay_runtime::now(), of.dataset.shards.len());
        Dataset::check_shape(count, &of.dataset.replicas)?;
        let sources = recut(before as u32, count as u32)?;
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
                cut_one(from.iter().map(|share| folder(share.shard)).collect(), made.clone(), (number, count)).await?;
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
        Ok(Self { of: of.clone(), next: NextShards { log, shards, cuts }, began })
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
                return Err(self.too_late());
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
        if now.dataset.log == self.of.dataset.log { Err(self.too_much()) } else { Err(self.too_late()) }
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
        match objects <= SWITCH_LIMITS.tail_max && tails_fit(&bytes, next.shards.len() as u32)? {
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

    fn too_late(&self) -> Error {
        Error::conflict(format!("{}: somebody else gave the dataset other shards, or replaced it", self.of.path))
    }
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

/// The shard with a number of so many, of those in some folders. Dropped, it writes no more.
async fn cut_one(from: Vec<PathBuf>, to: PathBuf, (number, count): (usize, usize)) -> Result<Packed> {
    // Lives as long as somebody waits.
    let waits = Arc::new(());
    let waiting = Arc::downgrade(&waits);
    let cutting = forebay_runtime::spawn_blocking(move || {
        let from: Vec<&Path> = from.iter().map(PathBuf::as_path).collect();
        forebay_shard_store::recut(&from, &to, BASE_SIZE, |key| match waiting.strong_count() {
            0 => Err(Error::closed("nobody waits for the shard any more")),
            _ => Ok(shard_of(key, count) == number),
        })
    });
    cutting.await.map_err(|error| Error::internal(format!("cutting a shard ended early: {error}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_shards_there_are_to_be_is_a_number_or_the_size_of_each() {
        assert_eq!(" 16".parse::<ReshardTo>().unwrap(), ReshardTo::Shards(16));
        assert_eq!("128MiB".parse::<ReshardTo>().unwrap(), ReshardTo::BytesEach(128 << 20));
        for wrong in ["", "-1", "4294967296", "many", "16 shards"] {
            assert!(wrong.parse::<ReshardTo>().is_err(), "{wrong}");
        }
    }

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
