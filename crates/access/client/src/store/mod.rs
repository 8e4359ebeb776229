//! [`object_store::ObjectStore`] over a client: paths are `MOUNT/KEY`.
//!
//! [`LiveStore`] reads what is current under each mount's rule; [`SnapshotStore`] pins every object at the version that
//! it saw first. Such a path can't say every key: keys with an empty part (`a//b`, a trailing `/`), with parts `.` or
//! `..`, or with control characters are left out of listings here; [`crate::Client`] itself knows them all.
//!
//! [`DraftStore`] writes what another process makes visible.
//!
//! Owns: how the trait's paths, versions, conditions and errors are Forebay's, and which versions a snapshot has pinned.
//!
//! Never does: keep bytes, or read past its rooms `read` and `write`.
//!
//! Start with `versioned`, which is the trait.

mod drafts;
mod errors;
mod get;
mod listing;
mod live;
mod paths;
mod snapshot;
mod upload;
mod versioned;
mod versions;

pub use drafts::DraftStore;
pub use live::LiveStore;
pub use snapshot::SnapshotStore;

use std::sync::Arc;

use forebay_protocol::ClusterView;

use crate::read::Reads;
use crate::route::Routes;
use crate::write::Writes;

/// What a store reads and writes.
#[derive(Clone)]
pub struct Objects {
    pub(crate) routes: Arc<Routes>,
    pub(crate) reads: Arc<Reads>,
    pub(crate) writes: Arc<Writes>,
}

impl Objects {
    fn view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.routes.view.known().view)
    }
}
