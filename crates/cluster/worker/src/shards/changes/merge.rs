//! Compressing what a log has into the files of its shard.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_protocol::PutCondition;
use forebay_shard_store::{DatasetShard, Packed, data_key, manifest_key, merge};
use forebay_types::{Error, ErrorKind, Key, Result, ResultExt};

use super::moving::Move;
use crate::shards::bring::{Reserved, below};
use crate::shards::served::Served;
use crate::shards::{Asked, Manifest, Shards};

/// The least that a shard is stored at: each worker makes its own layers.
const BASE_SIZE: f64 = 0.01;
/// A merge rewrites the shard, so it waits for an eighth of it, within these bounds.
const MERGE_BYTES_MIN: u64 = 4 << 20;
const MERGE_BYTES_MAX: u64 = 32 << 20;
/// Objects of a log that a worker which begins with the shard has to read, at most, before they are merged.
const OBJECTS_MAX: u64 = 4096;
/// How often the next manifest is tried while other shards of the dataset are merged.
const ATTEMPTS: usize = 4096;

impl Shards {
    /// Begins a merge where it is worth the work; nothing waits for it.
    pub(super) fn merge_if_much(self: &Arc<Self>, asked: &Arc<Asked>, served: &Arc<Served>) {
        if !is_much(served) || served.is_merging.swap(true, Relaxed) {
            return;
        }
        let (shards, asked, served) = (Arc::clone(self), Arc::clone(asked), Arc::clone(served));
        self.background.spawn(async move {
            if let Err(error) = shards.merge_log(&asked, &served).await {
                tracing::warn!(folder = %served.part.folder, shard = served.part.number, %error, "changes stay in the log");
            }
            served.is_merging.store(false, Relaxed);
        });
    }

    /// Compresses what was changed in a shard until now, and has shared storage say so.
    pub(in crate::shards) async fn merge_log(self: &Arc<Self>, asked: &Asked, served: &Arc<Served>) -> Result<()> {
        let Some(log) = &served.log else { return Ok(()) };
        let asking = self.turns.merging.join(served.id);
        let _turn = asking.turn().await;
        // What is merged now would be in the way of the shards that are to come.
        if asked.manifest.may_move() && self.move_now(&asked.manifest).await? == Move::Done {
            return Ok(());
        }
        if !Arc::ptr_eq(&self.newest_of(Arc::clone(&asked.manifest), asked.number), &asked.manifest) {
            return Ok(());
        }
        self.catch_up(served, forebay_runtime::now(), Vec::new).await?;
        let (cut, changes) = {
            let read = log.read();
            (read.next, served.store.load().updates())
        };
        assert!(cut >= log.from, "a log is read forwards");
        if cut == log.from || changes.is_empty() {
            return Ok(());
        }
        // Layers stay as they are meanwhile, so that the files that are merged do.
        let layers = self.turns.layering.acquire().await.map_err(|_| Error::closed("the worker is stopping"))?;
        let (made, began) = (forebay_runtime::random::<u128>(), forebay_runtime::now());
        self.make_room(made, 2 * asked.shard().bytes() + served.store.load().update_bytes() as u64)?;
        let _room = Reserved { kept: &self.kept, id: made };
        let (from, to) = (self.kept.path(served.id), self.kept.begin(made)?);
        let store = served.store.load_full();
        let packed = forebay_runtime::run_behind(move || {
            merge(&from, &to, BASE_SIZE, changes).map(|packed| (packed, store.what_was_asked()))
        });
        let (mut packed, known) = packed.await.ok_or_else(|| Error::internal("a merge ended early"))??;
        drop(layers);
        packed.shard.log_from = cut;
        // Who brings it has layers for that.
        packed.shard.asked = known.or_else(|| asked.shard().asked.clone());
        self.store(asked, &packed).await?;
        if began.elapsed() > self.to_be_named_within() {
            return Err(Error::retry("storing the shard took longer than its objects may stay unnamed"));
        }
        let Some(manifest) = self.publish(asked, packed.shard).await? else { return Ok(()) };
        table::WORKER_SHARDS_MERGED.only().add(1);
        // What was made is what others bring.
        self.kept.place_made(manifest.ids[asked.number as usize], made)?;
        self.learn(Arc::clone(&manifest));
        self.collect_meanwhile(&manifest);
        let merged = Arc::new(Asked { manifest, number: asked.number });
        self.place(&self.served(&merged).await?, &merged);
        Ok(())
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
    /// replaced.
    async fn publish(&self, asked: &Asked, shard: DatasetShard) -> Result<Option<Arc<Manifest>>> {
        let door = self.origin.mount(asked.manifest.id.mount).await?;
        let mut latest = Arc::clone(&asked.manifest);
        for _ in 0..ATTEMPTS {
            while let Some(newer) = self.read_manifest(&door, asked.folder(), latest.id.manifest + 1).await? {
                latest = newer;
            }
            let place = asked.number as usize;
            if latest.dataset.log != asked.manifest.dataset.log || latest.dataset.shards.get(place) != Some(asked.shard()) {
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

/// Whether so much was changed that it is worth to compress it.
fn is_much(served: &Served) -> bool {
    let Some(log) = &served.log else { return false };
    let bytes = served.store.load().update_bytes() as u64;
    bytes >= (served.part.input_bytes / 8).clamp(MERGE_BYTES_MIN, MERGE_BYTES_MAX) || log.read().next - log.from >= OBJECTS_MAX
}
