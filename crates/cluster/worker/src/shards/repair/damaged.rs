//! Shards whose files were found to be damaged while they were asked: they are let go, and brought again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use forebay_metrics::table;
use forebay_types::{Error, Result};

use crate::shards::bring::Gone;
use crate::shards::served::Served;
use crate::shards::{Asked, Shards};

impl Shards {
    /// A shard has failed: where its files are damaged they go, and come again from a worker that has them or from shared storage. Gives what
    /// is told until then.
    pub(in crate::shards) fn failed(self: &Arc<Self>, served: &Arc<Served>, error: Error) -> Error {
        self.leave_damaged(served);
        served.instead_of(error)
    }

    /// The same of one that has nothing to tell.
    pub(in crate::shards) fn leave_damaged(self: &Arc<Self>, served: &Arc<Served>) {
        let Some(damage) = served.store.load().damage() else { return };
        if served.marks.is_leaving.swap(true, Relaxed) {
            return;
        }
        tracing::warn!(folder = %served.part.folder, shard = served.part.number, %damage, "a shard's files on disk are damaged: it is brought anew");
        table::WORKER_SHARDS_DAMAGED.only().add(1);
        let (shards, served) = (Arc::clone(self), Arc::clone(served));
        self.background.spawn(async move { shards.bring_anew(served).await });
    }

    async fn bring_anew(self: &Arc<Self>, served: Arc<Served>) {
        let asked = Arc::new(Asked { manifest: Arc::clone(&served.part.manifest), number: served.part.number });
        let aside = self.put_damaged_aside(&served).await;
        if aside.is_err() {
            // Who asks next tries once more.
            served.marks.is_leaving.store(false, Relaxed);
        }
        // Before its files are removed, where letting go of what is mapped of them holds nobody up.
        drop(served);
        let left = match aside {
            Ok(Some(gone)) => gone.removed().await,
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let brought = match left {
            Ok(()) => self.served(&asked).await,
            Err(error) => Err(error),
        };
        match brought {
            Ok(served) => self.place(&served, &asked),
            Err(error) => {
                tracing::warn!(folder = %asked.folder(), shard = asked.number, %error, "a damaged shard is not here again yet")
            }
        }
    }

    /// None where it is not served any more: one that has made room, or has given way to what it was merged into, is not missed.
    async fn put_damaged_aside(&self, served: &Arc<Served>) -> Result<Option<Gone>> {
        // Who makes its layers writes into its folder.
        let (_, is_changing, _) = served.dial.told();
        let _turn = match is_changing {
            true => Some(self.turns.layering.acquire().await.map_err(|_| Error::closed("the worker is stopping"))?),
            false => None,
        };
        // One step for all others: who asks finds it, or neither it nor its files.
        let mut all = self.served.lock();
        if !all.get(&served.id).is_some_and(|there| Arc::ptr_eq(there, served)) {
            return Ok(None);
        }
        let folder = self.kept.put_aside(served.id)?;
        let gone = all.remove(&served.id);
        debug_assert!(!self.kept.has(served.id), "damaged files are nothing to open again");
        Ok(Some(Gone(vec![(gone, folder)])))
    }
}
