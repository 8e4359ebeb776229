//! Copies of shards between workers: what one gives of a shard that it serves, and what another one takes instead of asking shared
//! storage.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_navigation::{CopySource, Survivor, sources};
use forebay_placement::rank;
use forebay_protocol::{ShardHeld, WorkerInfo};
use forebay_shard_store::{AskedShares, DatasetFile, DatasetShard, Store};
use forebay_types::{Error, ErrorKind, Result, ResultExt, RouteKey, WorkerId};
use tokio::sync::Semaphore;

use crate::background::aside;
use crate::landing::Landing;
use crate::origin::MountDoor;
use crate::shards::{Asked, Manifest, Shards};
use crate::signals::Pace;

/// Bytes of a part that is asked for. One follows the other, so that readers have their turn between them.
const PART_BYTES: u32 = 1 << 20;
/// The same at most, whoever asks.
const PART_BYTES_MAX: u32 = 4 << 20;
/// Parts that are read at a time for others.
const GIVEN_AT_ONCE: usize = 2;
/// Files below this come from shared storage: the one that each worker writes anew with its layers is among them.
const COPIED_BYTES_MIN: u64 = 16 << 10;
/// Workers behind those that hold a shard by rank that are asked for it: one that stood in, one that is drained, one that held it before
/// another one came.
const ASKED_BEYOND: usize = 3;

/// What copies are held to.
pub(in crate::shards) struct Copies {
    giving: Semaphore,
    taking: Pace,
}

impl Copies {
    /// Takes so many bytes a second of others at most.
    pub(in crate::shards) fn new(bytes_per_sec: u64) -> Self {
        Self { giving: Semaphore::new(GIVEN_AT_ONCE), taking: Pace::new(Some(bytes_per_sec)) }
    }
}

impl Shards {
    /// How a shard is served here, for another worker, and what it was asked as far as that is known; none where it is not here.
    pub(crate) async fn held(&self, shard: u128) -> Option<(ShardHeld, Option<AskedShares>)> {
        let served = self.served.lock().get(&shard).cloned();
        let Some(served) = served else {
            let bytes = self.of_unopened(shard, DatasetShard::bytes)?;
            return Some((ShardHeld { bytes, queue: 0 }, None));
        };
        let store = served.store.load_full();
        let asked = forebay_runtime::spawn_blocking(move || store.what_was_asked()).await;
        Some((served.held(), asked.ok().flatten()))
    }

    /// A part of a file that a shard came with. `NotFound` where it is not here, or the file is another one by now; `Invalid` where the
    /// file has no such part.
    pub(crate) async fn part(&self, shard: u128, file: u32, start: u64, bytes: u32) -> Result<Bytes> {
        let served = self.served.lock().get(&shard).cloned();
        let of = |files: &[DatasetFile]| files.get(file as usize).cloned();
        let file = match served {
            Some(served) => of(&served.part.files),
            None => self.of_unopened(shard, |shard| of(&shard.files)).flatten(),
        };
        let gone = || Error::not_found("the shard is not here, or no longer in the files that it came in");
        let file = file.ok_or_else(gone)?;
        let fits = start.checked_add(bytes.into()).is_some_and(|end| end <= file.bytes);
        if !fits || !(1..=PART_BYTES_MAX).contains(&bytes) {
            return Err(Error::invalid(format!("{}: {bytes} bytes from {start} on are no part of it", file.name)));
        }
        let _turn = self.turns.copies.giving.acquire().await.map_err(|_| Error::closed("the worker is stopping"))?;
        let (path, length) = (self.kept.path(shard).join(&file.name), file.bytes);
        aside("reading a shard's file", move || read_part(&path, length, start, bytes)).await
    }

    /// Something of a shard that is here and not opened yet, as after a merge while its layers are made.
    fn of_unopened<T>(&self, shard: u128, what: impl Fn(&DatasetShard) -> T) -> Option<T> {
        if !self.kept.has(shard) {
            return None;
        }
        let of = |manifest: &Manifest| {
            let place = manifest.ids.iter().position(|id| *id == shard)?;
            Some(what(&manifest.dataset.shards[place]))
        };
        let newest = self.known.newest.lock().iter().find_map(|(_, manifest)| of(manifest));
        newest.or_else(|| self.known.manifests.lock().iter().find_map(|(_, manifest)| of(manifest)))
    }

    /// Brings the files of a shard into a folder, and what it was asked: from a worker that serves it where there is one, else from shared
    /// storage; gives the bytes that came from there.
    pub(in crate::shards) async fn gather(&self, door: &MountDoor, asked: &Asked, into: &Path) -> Result<u64> {
        let (mut from, shares) = self.sources(asked).await;
        let mut stored_bytes = 0;
        for (place, file) in (0u32..).zip(&asked.shard().files) {
            let path = into.join(&file.name);
            let is_small = file.bytes < COPIED_BYTES_MIN;
            if is_small || !self.copy(asked, (place, file), &path, &mut from).await {
                self.download(door, asked.folder(), file, &path).await?;
                stored_bytes += file.bytes;
            }
        }
        // The layers that it begins with are those that this pays for.
        if let Some(shares) = shares.as_ref().or(asked.shard().asked.as_ref())
            && let Err(error) = Store::begin_asked(into, shares)
        {
            tracing::debug!(folder = %asked.folder(), shard = asked.number, %error, "layers are for questions of all kinds");
        }
        Ok(stored_bytes)
    }

    /// Where a shard is to come from, the best first: shared storage at the end; and what it was asked, as the first says who knows.
    async fn sources(&self, asked: &Asked) -> (Vec<CopySource>, Option<AskedShares>) {
        let (id, peers) = (asked.id(), self.likely(asked));
        let held = futures::future::join_all(peers.iter().map(|peer| self.cluster.peers.shard_held(peer, id))).await;
        let (mut survivors, mut loads, mut shares) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (peer, held) in peers.iter().zip(held) {
            match held {
                Ok(Some((ShardHeld { bytes, queue }, known))) => {
                    survivors.push(Survivor { worker: peer.id, bytes, is_whole: true });
                    // Of those with as much to do any: many shards that are copied at once are not all asked of one.
                    loads.insert(peer.id, u64::from(queue) << 32 | u64::from(forebay_runtime::random::<u32>()));
                    shares.extend(known.map(|known| (peer.id, known)));
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(worker = %peer.id, %error, "a worker does not say whether it has a shard"),
            }
        }
        let from = sources(&survivors, |worker| loads.get(&worker).copied().unwrap_or(0));
        let known = from.iter().find_map(|source| match source {
            CopySource::Worker(worker) => shares.remove(worker),
            CopySource::SharedStorage => None,
        });
        (from, known)
    }

    /// The workers that may have a shard.
    fn likely(&self, asked: &Asked) -> Vec<WorkerInfo> {
        let (others, id) = (self.cluster.others(), &asked.manifest.id);
        let workers: Vec<WorkerId> = others.iter().map(|worker| worker.id).collect();
        let mut order = rank(RouteKey::of(id.mount, &id.folder, asked.number), &workers);
        order.truncate(asked.manifest.dataset.replicas.len() + ASKED_BEYOND);
        order.iter().filter_map(|id| others.iter().find(|worker| worker.id == *id).cloned()).collect()
    }

    /// Whether a worker has given a file. Who did not even answer is taken out of `from`, for the files that follow.
    async fn copy(&self, asked: &Asked, (place, file): (u32, &DatasetFile), path: &Path, from: &mut Vec<CopySource>) -> bool {
        let mut at = 0;
        while let Some(CopySource::Worker(worker)) = from.get(at).copied() {
            let Err(error) = self.copy_from(worker, (asked.id(), place), file, path).await else { return true };
            tracing::debug!(folder = %asked.folder(), shard = asked.number, file = %file.name, %worker, %error, "no copy of a file");
            match error.kind() {
                ErrorKind::NotFound | ErrorKind::Corrupt => at += 1,
                _ => _ = from.remove(at),
            }
        }
        false
    }

    /// `Corrupt` when what came is not what the manifest says.
    async fn copy_from(&self, worker: WorkerId, (shard, place): (u128, u32), file: &DatasetFile, path: &Path) -> Result<()> {
        let peer = self.cluster.worker(worker).ok_or_else(|| Error::retry("it is gone"))?;
        let mut landing = Landing::begin(path).await?;
        let mut at = 0;
        while at < file.bytes {
            let bytes = (file.bytes - at).min(PART_BYTES.into()) as u32;
            self.turns.copies.taking.send(bytes.into()).await;
            let part = self.cluster.peers.shard_part(&peer, (shard, place), at, bytes).await?;
            debug_assert_eq!(part.len(), bytes as usize, "a part comes whole");
            landing = landing.with(part).await?;
            table::WORKER_COPIED_BYTES.only().add(bytes.into());
            at += u64::from(bytes);
        }
        if landing.finish().await? != file.crc32c {
            table::WORKER_COPIES_DAMAGED.only().add(1);
            return Err(Error::corrupt(format!("{} of worker {worker} does not verify", file.name)));
        }
        Ok(())
    }
}

/// `NotFound` where the file has another length: it was written anew here.
fn read_part(path: &Path, length: u64, start: u64, bytes: u32) -> Result<Bytes> {
    let mut file = File::open(path).context(|| path.display())?;
    let is = file.metadata().context(|| path.display())?.len();
    if is != length {
        return Err(Error::not_found(format!("{}: it has {is} bytes by now, and came with {length}", path.display())));
    }
    file.seek(SeekFrom::Start(start)).context(|| path.display())?;
    let mut part = vec![0; bytes as usize];
    file.read_exact(&mut part).context(|| path.display())?;
    Ok(part.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_file_as_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base");
        let bytes: Vec<u8> = (0..100).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read_part(&path, 100, 0, 100).unwrap(), bytes);
        assert_eq!(read_part(&path, 100, 90, 10).unwrap(), bytes[90..]);
        assert_eq!(read_part(&path, 99, 0, 1).unwrap_err().kind(), ErrorKind::NotFound, "another length");
        assert!(read_part(&path, 100, 95, 10).is_err(), "no part of one is given");
        assert_eq!(read_part(&folder.path().join("none"), 100, 0, 1).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
