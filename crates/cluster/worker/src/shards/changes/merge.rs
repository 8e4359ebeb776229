//! Compressing what a log has into the files of its shard.

use std::sync::Arc;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_navigation::{MERGE_LIMITS, Unmerged, merge_next, merge_part_bytes};
use forebay_protocol::PutCondition;
use forebay_shard_store::{DatasetShard, Packed, Standing, data_key, manifest_key, merge};
use forebay_types::{Error, ErrorKind, Key, Result, ResultExt};

use super::moving::Move;
use crate::shards::bring::{Reserved, below};
use crate::shards::log::Follower;
use crate::shards::served::Served;
use crate::shards::{Asked, Manifest, Shards};

/// The least that a shard is stored at: each worker makes its own layers.
const BASE_SIZE: f64 = 0.01;
/// How often the next manifest is tried while other shards of the dataset are merged.
const ATTEMPTS: usize = 4096;
/// How often a claim is ended that another worker has made meanwhile.
const CUTS: usize = 16;

impl Shards {
    /// Begins the merge that is worth it most, or that makes room for more changes, if there is one; nothing waits for it. `written` is a
    /// shard that this worker has just changed: it merges what it writes, and what it is the first to hold.
    pub(super) fn merge_much(self: &Arc<Self>, written: Option<u128>) {
        let Some(served) = self.to_merge(written) else { return };
        if !served.merging.begin() {
            return;
        }
        let shards = Arc::clone(self);
        self.background.spawn(async move {
            let asked = Asked { manifest: Arc::clone(&served.part.manifest), number: served.part.number };
            let merged = shards.merge_log(&asked, &served).await;
            served.merging.end(matches!(merged, Ok(true)));
            if let Err(error) = merged {
                tracing::warn!(folder = %served.part.folder, shard = served.part.number, %error, "changes stay in the log");
            }
            // What was not worth it beside that one, or has waited for it.
            shards.merge_much(None);
        });
    }

    fn to_merge(&self, written: Option<u128>) -> Option<Arc<Served>> {
        let served = self.going_on();
        let mut unmerged: Vec<Unmerged> = served.iter().map(|served| served.unmerged()).collect();
        // Whose each is takes longer to say than that none is to be merged.
        merge_next(&unmerged, &MERGE_LIMITS)?;
        for (unmerged, served) in unmerged.iter_mut().zip(&served) {
            let is_first = || self.place_of(&served.part.manifest.id, served.part.number) == Some(0);
            unmerged.is_mine = written == Some(served.id) || is_first();
        }
        merge_next(&unmerged, &MERGE_LIMITS).map(|place| Arc::clone(&served[place]))
    }

    /// Bytes of the changes of all shards here, which are in memory until they are merged.
    pub(super) fn update_bytes(&self) -> u64 {
        self.going_on().iter().map(|served| served.store.load().update_bytes() as u64).sum()
    }

    /// The shards whose logs go on. What others have is merged by nobody any more, and goes with them.
    fn going_on(&self) -> Vec<Arc<Served>> {
        let mut served: Vec<Arc<Served>> = self.served.lock().values().cloned().collect();
        served.retain(|served| served.log.as_ref().is_some_and(|log| !log.read().is_sealed));
        served
    }

    /// Compresses what was changed in a shard until now, and has shared storage say so; whether there was anything. One is under way at a
    /// time, and layers are not made meanwhile: what is in memory of both is that of one part.
    pub(in crate::shards) async fn merge_log(self: &Arc<Self>, asked: &Asked, served: &Arc<Served>) -> Result<bool> {
        debug_assert_eq!(asked.number, served.part.number, "it is this one that is merged");
        let Some(log) = &served.log else { return Ok(false) };
        let asking = self.turns.merging.join(served.id);
        let _turn = asking.turn().await;
        // What is merged now would be in the way of the shards that are to come.
        let newest = self.newest_of(Arc::clone(&asked.manifest), asked.number);
        if newest.may_move() && self.move_now(&newest).await? == Move::Done {
            return Ok(false);
        }
        // What is in other files already wants no look into the log, which may have more than there is room for beside these.
        let newest = self.latest_known(&newest);
        if !newest.has(served) {
            self.go_over(newest, asked.number).await;
            return Ok(false);
        }
        self.catch_up(served, forebay_runtime::now(), Vec::new).await?;
        let building = self.turns.layering.acquire().await.map_err(|_| Error::closed("the worker is stopping"))?;
        // Other shards of the dataset may have been merged meanwhile, and this one elsewhere.
        let newest = self.latest_known(&newest);
        if !newest.has(served) {
            drop(building);
            self.go_over(newest, asked.number).await;
            return Ok(false);
        }
        let asked = &Asked { manifest: newest, number: asked.number };
        let (cut, standing) = self.cut(served, log).await?;
        assert!(cut >= log.from, "a log is read forwards");
        if cut == log.from || standing.is_unchanged() {
            return Ok(false);
        }
        let (made, began) = (forebay_runtime::random::<u128>(), forebay_runtime::now());
        let gone = self.make_room(made, 2 * asked.shard().bytes() + served.store.load().update_bytes() as u64)?;
        let _room = Reserved { kept: &self.kept, id: made };
        gone.removed().await?;
        let (to, store) = (self.kept.begin(made)?, served.store.load_full());
        let part_bytes = merge_part_bytes(standing.input_bytes(), &MERGE_LIMITS);
        let packed = forebay_runtime::run_behind(move || {
            merge(&standing, &to, BASE_SIZE, part_bytes).map(|packed| (packed, store.what_was_asked()))
        });
        let merged = packed.await.ok_or_else(|| Error::internal("a merge ended early"))?;
        let (mut packed, known) = merged.map_err(|error| self.failed(served, error))?;
        drop(building);
        packed.shard.log_from = cut;
        // Who brings it has layers for that.
        packed.shard.asked = known.or_else(|| asked.shard().asked.clone());
        self.store(asked, &packed).await?;
        if began.elapsed() > self.to_be_named_within() {
            return Err(Error::retry("storing the shard took longer than its objects may stay unnamed"));
        }
        let Some(manifest) = self.publish(asked, packed.shard).await? else { return Ok(false) };
        table::WORKER_SHARDS_MERGED.only().add(1);
        // What was made is what others bring.
        self.kept.place_made(manifest.ids[asked.number as usize], made)?;
        self.learn(Arc::clone(&manifest));
        self.collect_meanwhile(&manifest);
        let merged = Arc::new(Asked { manifest, number: asked.number });
        self.place(&self.served(&merged).await?, &merged);
        Ok(true)
    }

    /// What is merged: all before a number of the log, behind which no claim reaches. Who begins with the files that are made sees nothing of
    /// the log before that.
    async fn cut(self: &Arc<Self>, served: &Served, log: &Follower) -> Result<(u64, Standing)> {
        let _quiet = self.claims.keep_quiet(&log.name);
        for _ in 0..CUTS {
            let (claim, unseen) = {
                let read = log.read();
                match read.claim() {
                    None => return Ok((read.next, served.store.load().standing()?)),
                    Some(claim) => (claim, read.first_unseen()),
                }
            };
            self.end_claim(&log.claimed(claim), unseen).await?;
            self.catch_up(served, forebay_runtime::now(), Vec::new).await?;
        }
        Err(Error::retry(format!("{}: other workers change the shard's records time after time: try again", served.part.folder)))
    }

    /// Has a shard answered by the files of a later manifest: what was merged elsewhere takes up room here until then.
    async fn go_over(self: &Arc<Self>, manifest: Arc<Manifest>, number: u32) {
        let behind = Arc::new(Asked { manifest, number });
        match self.served(&behind).await {
            Ok(served) => self.place(&served, &behind),
            Err(error) => tracing::debug!(folder = %behind.folder(), shard = number, %error, "the files of a merge don't come"),
        }
    }

    /// Stores a shard's files; what is there already stays.
    async fn store(&self, asked: &Asked, packed: &Packed) -> Result<()> {
        for (place, file) in packed.shard.files.iter().enumerate() {
            let key = below(asked.folder(), &data_key(&file.object))?;
            self.put_if_absent(asked, &key, packed.bytes(place)?).await?;
        }
        // Nothing here is answered from it, so that it takes no room here.
        if let (Some(file), Some(path), Some(bytes)) = (&packed.shard.cold, &packed.cold, packed.cold_bytes()?) {
            let key = below(asked.folder(), &data_key(&file.object))?;
            self.put_if_absent(asked, &key, bytes).await?;
            std::fs::remove_file(path).context(|| path.display())?;
        }
        Ok(())
    }

    /// Says in the next manifest what a shard is made of; none where another worker has merged it meanwhile, or the dataset was
    /// replaced. A worker that is stopped with a manifest in hand takes nothing back when it goes on: its number is taken by then, since manifests
    /// stay, and what it tries next is made of the last one, with all that this orders.
    async fn publish(&self, asked: &Asked, shard: DatasetShard) -> Result<Option<Arc<Manifest>>> {
        let door = self.origin.mount(asked.manifest.id.mount).await?;
        let mut latest = Arc::clone(&asked.manifest);
        for _ in 0..ATTEMPTS {
            while let Some(newer) = self.read_manifest(&door, asked.folder(), latest.id.manifest + 1).await? {
                latest = newer;
            }
            let place = asked.number as usize;
            if latest.dataset.log != asked.manifest.dataset.log || latest.dataset.shards.get(place) != Some(asked.shard()) {
                // This worker may not have been told: otherwise it would make the same again and again.
                self.learn(latest);
                return Ok(None);
            }
            let mut next = latest.dataset.clone();
            next.shards[place] = shard.clone();
            let key = below(asked.folder(), &manifest_key(latest.id.manifest + 1))?;
            if self.put_if_absent(asked, &key, Bytes::from(next.encode()?)).await? {
                return self.read_manifest(&door, asked.folder(), latest.id.manifest + 1).await;
            }
        }
        Err(Error::retry(format!("{}: other workers write manifests too: try again", asked.folder())))
    }

    /// False when something is there already.
    async fn put_if_absent(&self, asked: &Asked, key: &Key, bytes: Bytes) -> Result<bool> {
        match self.writes.put(asked.manifest.id.mount, key, PutCondition::Absent, bytes).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Manifest {
    /// Whether a shard of it is made of the files that one is served from.
    fn has(&self, served: &Served) -> bool {
        self.ids.get(served.part.number as usize) == Some(&served.id)
    }
}
