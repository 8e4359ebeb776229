//! Objects of logs that come with the word that shared storage has them: a shard that lacks just that one has it without a look.

use std::sync::Arc;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_navigation::{MERGE_LIMITS, Telling};
use forebay_placement::rank;
use forebay_protocol::{CAME_BYTES_MAX, CAME_SINCE};
use forebay_shard_store::LogPlace;
use forebay_types::{Error, ObjectInfo, Result, RouteKey, WorkerId};

use super::commit::READ_HERE_MAX;
use crate::background::aside;
use crate::shards::Shards;
use crate::shards::log::{Follower, Name};
use crate::shards::served::Served;

impl Shards {
    /// Another worker has stored an object of a log, which these bytes are. Nothing is answered without it from now on, as where an object is known
    /// to have come. `Invalid` where they are none.
    pub(crate) async fn note_came(self: &Arc<Self>, info: &ObjectInfo, bytes: Bytes) -> Result<()> {
        let (mount, key) = (info.version.mount, &info.version.key);
        let (place, number) = LogPlace::parse(key).ok_or_else(|| Error::invalid(format!("{key} is no object of a log")))?;
        if bytes.len() > CAME_BYTES_MAX || bytes.len() as u64 != info.version.size {
            return Err(Error::invalid(format!("{key}: it has {} bytes and comes with {}", info.version.size, bytes.len())));
        }
        let (shards, mut known) = (Arc::clone(self), self.of_log(&(mount, place)));
        let is_read_here = known.is_empty() || bytes.len() <= READ_HERE_MAX;
        let hear = move || {
            known.retain(|served| shards.hear(served, number, &bytes));
            Ok(known)
        };
        let heard = if is_read_here { hear() } else { aside("reading changes that came", hear).await };
        let known = heard?;
        if let Some(words) = self.told.is_there(mount, key) {
            known.iter().filter_map(|served| served.log.as_ref()).for_each(|log| log.heard(words));
        }
        Ok(())
    }

    /// Whether a shard has an object of its log that came. Where the next answer waits for a look, as when nobody has asked it for long or this
    /// worker does not hear, the look is to bring the object too.
    fn hear(&self, served: &Served, number: u64, bytes: &[u8]) -> bool {
        let is_fresh =
            |log: &Follower| self.origin.mounts.find(log.mount()).is_some_and(|door| self.is_fresh(&door, log, Vec::new));
        let may_take = served.log.as_ref().is_some_and(is_fresh)
            && MERGE_LIMITS.takes_told(served.store.load().update_bytes() as u64, self.update_bytes());
        match served.hear(number, bytes, may_take) {
            Ok(telling) => {
                table::WORKER_SHARD_LOG_TOLD.only().add(u64::from(telling == Telling::Take));
                telling.is_known()
            }
            // What is there is found by a look, and told then.
            Err(error) => {
                tracing::debug!(folder = %served.part.folder, shard = served.part.number, number, %error, "what came with a word is of no use");
                false
            }
        }
    }

    /// The shards that are here and follow a log: one in the files of each merge.
    fn of_log(&self, log: &Name) -> Vec<Arc<Served>> {
        let is_it = |served: &&Arc<Served>| served.log.as_ref().is_some_and(|its| its.name == *log);
        self.served.lock().values().filter(is_it).cloned().collect()
    }

    /// The other workers that hold the shard of a log that is here; nobody while there is a worker that knows no such words.
    pub(in crate::shards) fn others_with(&self, log: &Name) -> Vec<WorkerId> {
        let view = self.cluster.view();
        let know_it = view.workers.iter().all(|worker| worker.protocol >= CAME_SINCE);
        let Some(served) = self.of_log(log).pop().filter(|_| know_it) else { return Vec::new() };
        let workers: Vec<_> = view.placeable().map(|worker| worker.id).collect();
        let (part, count) = (&served.part, served.part.manifest.dataset.replicas.len());
        let order = rank(RouteKey::of(log.0, &part.folder, part.number), &workers);
        order.into_iter().take(count).filter(|worker| *worker != self.cluster.id).collect()
    }
}
