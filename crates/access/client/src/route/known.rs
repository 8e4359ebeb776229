//! The view of the cluster with what every read looks up in it.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_protocol::{ClusterView, RouteTable, WorkerInfo};
use forebay_types::{Error, Key, Mount, MountId, Result, WorkerId};

/// The view with what every read looks up in it.
pub(crate) struct Known {
    pub(crate) view: Arc<ClusterView>,
    pub(crate) workers: Vec<WorkerId>,
    pub(crate) routes: Arc<RouteTable>,
    pub(super) infos: HashMap<WorkerId, Arc<WorkerInfo>>,
    pub(super) mounts: Vec<Arc<Mount>>,
}

impl Known {
    /// A view, and workers that are not in it but are to be asked all the same.
    pub(super) fn new(view: Arc<ClusterView>, presumed: &[Arc<WorkerInfo>], routes: Arc<RouteTable>) -> Self {
        let mut infos: HashMap<_, _> = presumed.iter().map(|worker| (worker.id, Arc::clone(worker))).collect();
        infos.extend(view.workers.iter().map(|worker| (worker.id, Arc::new(worker.clone()))));
        // A worker that is being drained is asked for what it has, and given nothing new.
        let all_drain = infos.values().all(|worker| worker.draining);
        let stay = infos.values().filter(|worker| all_drain || !worker.draining);
        let mut workers: Vec<_> = stay.map(|worker| worker.id).collect();
        workers.sort();
        let mounts = view.mounts.iter().cloned().map(Arc::new).collect();
        Self { view, workers, routes, infos, mounts }
    }

    pub(crate) fn worker(&self, id: WorkerId) -> Option<&Arc<WorkerInfo>> {
        self.infos.get(&id)
    }

    /// All workers, in no order: those that are being drained too, and those that are presumed to be there.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<WorkerInfo>> {
        self.infos.values()
    }

    pub(crate) fn mount(&self, id: MountId) -> Option<&Arc<Mount>> {
        self.mounts.iter().find(|mount| mount.id == id)
    }

    pub(crate) fn mount_named(&self, name: &str) -> Option<&Arc<Mount>> {
        self.mounts.iter().find(|mount| mount.name.as_str() == name)
    }

    /// The mount of an id, as versions carry it; `NotFound` once it was removed.
    pub(crate) fn mount_of(&self, id: MountId) -> Result<Arc<Mount>> {
        self.mount(id)
            .cloned()
            .ok_or_else(|| Error::not_found(format!("mount {} was removed: add it again and open its objects anew", id.0)))
    }

    /// The bandwidth bound of a mount in bytes a second, where it has one.
    pub(crate) fn bound(&self, id: MountId) -> Option<u64> {
        self.mount(id)?.options.bandwidth.map(|rate| rate.bytes_per_sec())
    }

    /// `/MOUNT/KEY` for messages.
    pub(crate) fn path_text(&self, mount: MountId, key: &Key) -> String {
        if let Some(mount) = self.mount(mount) { format!("/{}/{key}", mount.name) } else { format!("/(mount {})/{key}", mount.0) }
    }
}
