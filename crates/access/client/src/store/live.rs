//! What is current.

use std::fmt;

use forebay_types::{ForebayPath, ObjectInfo, OperationId};

use super::Objects;
use super::versioned::Store;
use super::versions::Versions;

/// What is current: nothing is pinned, each call is an operation of its own.
#[derive(Clone)]
pub struct Live {
    objects: Objects,
}

/// A store of what is current under each mount's rule. From [`Client::object_store`](crate::Client::object_store).
pub type LiveStore = Store<Live>;

impl Versions for Live {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn operation(&self) -> OperationId {
        OperationId(forebay_runtime::random())
    }

    fn pinned(&self, _: &ForebayPath) -> Option<ObjectInfo> {
        None
    }

    fn seen(&self, _: &ForebayPath, info: ObjectInfo) -> ObjectInfo {
        info
    }

    fn written(&self, _: &ForebayPath, _: Option<&ObjectInfo>) {}
}

impl LiveStore {
    pub(crate) fn live(objects: Objects) -> Self {
        Self::new(Live { objects })
    }
}

impl fmt::Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forebay")
    }
}
