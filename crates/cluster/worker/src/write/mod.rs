//! Changes of objects: those that are made here, and those that are found.
//!
//! Owns: writes, uploads and drafts under way, telling everyone of a change before its writer hears that it is done, looking for changes
//! that others make, and the new versions of which the coordinator has not heard.
//!
//! Never does: acknowledge a write that shared storage has not.
//!
//! Start with [`Writes::put`].

mod changes;
mod discover;
mod drafts;
mod fresh;
mod noted;
mod put;
mod uploads;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use forebay_types::{Key, MountId};
use parking_lot::Mutex;

use crate::background::Background;
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::origin::Origin;
use crate::signals::Signals;
use changes::Overlap;
use discover::Discoveries;
use drafts::Drafts;
use fresh::Fresh;
pub(crate) use noted::Notes;
pub(crate) use uploads::SessionUploads;

/// Writes to mounts.
pub(crate) struct Writes {
    /// By name.
    under_way: Mutex<HashMap<(MountId, Key), Overlap>>,
    pub(crate) fresh: Fresh,
    discoveries: Discoveries,
    drafts: Drafts,
    notes: Notes,
    /// Of uploads and of the connections that begin them.
    next_number: AtomicU64,
    origin: Arc<Origin>,
    catalogue: Arc<Catalogue>,
    cluster: Arc<Cluster>,
    signals: Arc<Signals>,
    background: Arc<Background>,
}

impl Writes {
    pub(crate) fn new(
        origin: Arc<Origin>,
        catalogue: Arc<Catalogue>,
        cluster: Arc<Cluster>,
        signals: Arc<Signals>,
        background: Arc<Background>,
        notes: Notes,
    ) -> Self {
        Self {
            under_way: Mutex::default(),
            fresh: Fresh::default(),
            discoveries: Discoveries::default(),
            drafts: Drafts::default(),
            notes,
            next_number: AtomicU64::new(forebay_runtime::random::<u32>().into()),
            origin,
            catalogue,
            cluster,
            signals,
            background,
        }
    }

    /// Begins and ends looking for changes as the view in force wants it.
    pub(crate) fn follow(self: &Arc<Self>) {
        self.discoveries.follow(self);
    }

    /// Ends looking for changes.
    pub(crate) fn stop(&self) {
        self.discoveries.stop();
    }
}
