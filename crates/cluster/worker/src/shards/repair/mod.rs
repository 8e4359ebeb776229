//! Repair: who holds a shard now that another worker has gone brings it before anybody asks for it.
//!
//! Owns: who is told to bring what, in which order, copies from worker to worker ([`copy`]), and what becomes of a shard whose files here are
//! damaged ([`damaged`]).
//!
//! Never does: choose the holders, which their rank says, nor the source of a copy, which `core/navigation` does.
//!
//! Start with [`Shards::follow`].

mod copy;
mod damaged;

use std::sync::Arc;
use std::time::Duration;

use forebay_navigation::urgency;
use forebay_placement::rank;
use forebay_protocol::{ClusterView, WorkerInfo};
use forebay_types::{RouteKey, WorkerId};
use futures::stream::{self, StreamExt};

use super::{Manifest, Shards};
pub(super) use copy::Copies;

/// Workers that are told at a time: each brings shards, two at a time.
const TOLD_AT_ONCE: usize = 8;
/// How long a worker may take to bring a shard until this one waits no longer; it goes on with that.
const WITHIN: Duration = Duration::from_secs(600);

impl Shards {
    /// The view is another one than `before`: who came to hold a shard that is served here is told to bring it. Where nobody serves it
    /// any more, or it is answered from afar, it waits until somebody asks.
    pub(crate) fn follow(self: &Arc<Self>, before: &ClusterView) {
        let now = self.cluster.view();
        // A worker that has just begun is told of nothing that went before it.
        if !before.workers.iter().any(|worker| worker.id == self.cluster.id) {
            return;
        }
        let mut told: Vec<_> = self.by_manifest().into_iter().flat_map(|served| new_holders(served, before, &now)).collect();
        if told.is_empty() {
            return;
        }
        told.sort_by_cached_key(|missing| {
            let waiting = self.served.lock().get(&missing.id()).map_or(0, |served| served.lanes.calls());
            (urgency(missing.left, waiting.into()), missing.manifest.id.folder.clone(), missing.number, missing.worker.id)
        });
        let shards = Arc::clone(self);
        self.background.spawn(async move {
            stream::iter(told)
                .for_each_concurrent(TOLD_AT_ONCE, |missing| {
                    let shards = Arc::clone(&shards);
                    async move { shards.have_brought(&missing).await }
                })
                .await;
        });
    }

    async fn have_brought(&self, missing: &Missing) {
        let Missing { manifest, number, worker, .. } = missing;
        match self.cluster.peers.bring_shard(worker, &manifest.id, *number, WITHIN).await {
            Ok(()) => {
                tracing::info!(folder = %manifest.id.folder, shard = number, worker = %worker.id, "a shard has its replicas again")
            }
            Err(error) => {
                tracing::warn!(folder = %manifest.id.folder, shard = number, worker = %worker.id, %error, "a shard waits until it is asked for");
            }
        }
    }

    /// The shards that are served here, each once, with the latest manifest that has it in these files.
    fn by_manifest(&self) -> Vec<(Arc<Manifest>, u32)> {
        let mut manifests: Vec<Arc<Manifest>> =
            self.known.manifests.lock().iter().map(|(_, manifest)| Arc::clone(manifest)).collect();
        manifests.extend(self.known.newest.lock().iter().map(|(_, manifest)| Arc::clone(manifest)));
        manifests.sort_by_key(|manifest| std::cmp::Reverse(manifest.id.manifest));
        let served = self.served.lock();
        let mut found = std::collections::HashMap::new();
        for manifest in manifests {
            for (number, id) in (0u32..).zip(&manifest.ids).filter(|(_, id)| served.contains_key(id)) {
                found.entry(*id).or_insert_with(|| (Arc::clone(&manifest), number));
            }
        }
        found.into_values().collect()
    }
}

/// A replica that is to be brought.
struct Missing {
    manifest: Arc<Manifest>,
    number: u32,
    /// By whom.
    worker: WorkerInfo,
    /// Those of before that are there still.
    left: usize,
}

impl Missing {
    fn id(&self) -> u128 {
        self.manifest.ids[self.number as usize]
    }
}

/// What the workers miss that hold a shard by the view `now` and did not before.
fn new_holders((manifest, number): (Arc<Manifest>, u32), before: &ClusterView, now: &ClusterView) -> Vec<Missing> {
    let old = holders(&manifest, number, before);
    let left = old.iter().filter(|id| now.workers.iter().any(|worker| worker.id == **id)).count();
    let is_new = |worker: &&WorkerInfo| !old.contains(&worker.id);
    let holders = holders(&manifest, number, now);
    let infos = holders.iter().filter_map(|id| now.workers.iter().find(|worker| worker.id == *id));
    let missing = |worker: &WorkerInfo| Missing { manifest: Arc::clone(&manifest), number, worker: worker.clone(), left };
    infos.filter(is_new).map(missing).collect()
}

fn holders(manifest: &Manifest, number: u32, view: &ClusterView) -> Vec<WorkerId> {
    let workers: Vec<_> = view.placeable().map(|worker| worker.id).collect();
    let mut order = rank(RouteKey::of(manifest.id.mount, &manifest.id.folder, number), &workers);
    order.truncate(manifest.dataset.replicas.len());
    order
}

#[cfg(test)]
mod tests {
    use forebay_protocol::DatasetId;
    use forebay_shard_store::{Column, ColumnKind, Columns, Dataset, DatasetShard};
    use forebay_types::{HostId, Key, MountId};

    use super::*;

    fn view(workers: &[WorkerId]) -> ClusterView {
        let worker = |id: &WorkerId| WorkerInfo::new(*id, HostId("host".into()), "127.0.0.1:1");
        ClusterView { workers: workers.iter().map(worker).collect(), ..ClusterView::default() }
    }

    /// A shard with two replicas, and workers in the order in which they hold it.
    fn shard() -> (Arc<Manifest>, Vec<WorkerId>) {
        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
        let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
        let dataset = Dataset::new(columns, vec![0.9, 0.5], vec![DatasetShard::default()]);
        let id = DatasetId { mount: MountId(7), folder: Key::new("orders.shards").unwrap(), manifest: 1, tag: 0 };
        let order = rank(RouteKey::of(id.mount, &id.folder, 0), &(1..=5).map(WorkerId).collect::<Vec<_>>());
        (Arc::new(Manifest { id, dataset, ids: vec![1] }), order)
    }

    #[test]
    fn who_comes_to_hold_a_shard_misses_it_and_it_is_known_how_many_replicas_are_left() {
        let (manifest, order) = shard();
        let missing = |before: &[WorkerId], now: &[WorkerId]| -> Vec<(WorkerId, usize)> {
            let missing = new_holders((Arc::clone(&manifest), 0), &view(before), &view(now));
            missing.iter().map(|missing| (missing.worker.id, missing.left)).collect()
        };
        assert_eq!(missing(&order, &order), [], "nobody was lost");
        assert_eq!(missing(&order, &order[..4]), [], "nor who did not hold it");
        assert_eq!(missing(&order, &order[1..]), [(order[2], 1)]);
        assert_eq!(missing(&order, &order[2..]), [(order[2], 0), (order[3], 0)]);
        assert_eq!(missing(&order[1..], &order), [(order[0], 2)], "one that joins copies from those that are there");
    }
}
