//! Objects at the version that was seen first.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use forebay_types::{ForebayPath, Key, MountId, MountName, ObjectInfo, OperationId};
use object_store::ObjectMeta;
use object_store::path::Path;
use parking_lot::RwLock;

use super::Objects;
use super::paths::{from_store, meta, to_store};
use super::versioned::Store;
use super::versions::Versions;

/// Objects pinned at the version that was seen first.
#[derive(Clone)]
pub struct Snapshot {
    objects: Objects,
    operation: OperationId,
    pinned: Arc<RwLock<HashMap<(MountId, Key), ObjectInfo>>>,
}

/// A store for one query. The first listing, opening or reading of an object pins its version, and all later reads get
/// that version or fail with `Precondition`; then the query must be planned again, with a new snapshot. What is
/// written through it is seen by it. Clones share the pins. From [`Client::snapshot`](crate::Client::snapshot).
pub type SnapshotStore = Store<Snapshot>;

impl SnapshotStore {
    /// A store that reads these versions, and pins others when it sees them.
    pub(crate) fn of(objects: Objects, operation: OperationId, versions: impl IntoIterator<Item = ObjectInfo>) -> Self {
        let pinned = versions.into_iter().map(|info| ((info.version.mount, info.version.key.clone()), info)).collect();
        Self::new(Snapshot { objects, operation, pinned: Arc::new(RwLock::new(pinned)) })
    }

    /// The operation that its reads carry.
    pub fn operation(&self) -> OperationId {
        self.versions.operation
    }

    /// All that is pinned, to make the same snapshot elsewhere.
    pub fn pinned(&self) -> Vec<ObjectInfo> {
        self.versions.pinned.read().values().cloned().collect()
    }

    /// All that is pinned, as a store shows it.
    pub fn pinned_meta(&self) -> Vec<ObjectMeta> {
        let known = self.versions.objects.view();
        let shown = |info: &ObjectInfo| {
            let name = match info.version.mount {
                MountId::TEMPORARY => MountName::temporary(),
                id => known.mounts.iter().find(|mount| mount.id == id)?.name.clone(),
            };
            Some(meta(to_store(&name, info.version.key.as_str())?, info))
        };
        self.versions.pinned.read().values().filter_map(shown).collect()
    }

    /// What is pinned at a path below a mount: of temporary data, which lies in the tiers, nothing is brought there or decoded.
    pub fn pinned_at(&self, location: &Path) -> Option<ObjectInfo> {
        let path = from_store(location).ok()?;
        self.versions.pinned(&path).filter(|_| !path.mount().is_temporary())
    }
}

impl Snapshot {
    fn place(&self, path: &ForebayPath) -> Option<(MountId, Key)> {
        if path.mount().is_temporary() {
            return Some((MountId::TEMPORARY, path.key().clone()));
        }
        let known = self.objects.routes.view.known();
        known.mount_named(path.mount().as_str()).map(|mount| (mount.id, path.key().clone()))
    }
}

impl Versions for Snapshot {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn operation(&self) -> OperationId {
        self.operation
    }

    fn pinned(&self, path: &ForebayPath) -> Option<ObjectInfo> {
        self.pinned.read().get(&self.place(path)?).cloned()
    }

    fn seen(&self, _: &ForebayPath, info: ObjectInfo) -> ObjectInfo {
        let place = (info.version.mount, info.version.key.clone());
        if let Some(pinned) = self.pinned.read().get(&place) {
            return pinned.clone();
        }
        self.pinned.write().entry(place).or_insert(info).clone()
    }

    fn written(&self, path: &ForebayPath, info: Option<&ObjectInfo>) {
        match info {
            Some(info) => {
                self.pinned.write().insert((info.version.mount, info.version.key.clone()), info.clone());
            }
            None => {
                if let Some(place) = self.place(path) {
                    self.pinned.write().remove(&place);
                }
            }
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Forebay snapshot {:016x}", self.operation.0)
    }
}
