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
mod noted;
mod put;
mod uploads;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use forebay_types::{Key, MountId, ObjectVersion};
use parking_lot::Mutex;

use crate::background::Background;
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::origin::Origin;
use crate::signals::Signals;
use changes::Overlap;
use discover::Discoveries;
use drafts::Drafts;
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

/// Object versions that wait to be told at most; more are as good as old ones.
const FRESH_MAX: usize = 10_000;
/// Of these in one heartbeat.
const FRESH_BATCH: usize = 1000;

/// Object versions that were written through this worker or discovered by it, of which the coordinator has not heard.
#[derive(Default)]
pub(crate) struct Fresh(Mutex<Vec<ObjectVersion>>);

impl Fresh {
    fn add(&self, version: &ObjectVersion) {
        let mut waiting = self.0.lock();
        if version.size > 0 && waiting.len() < FRESH_MAX {
            waiting.push(version.clone());
        }
    }

    /// What the next heartbeat tells.
    pub(crate) fn first(&self) -> Vec<ObjectVersion> {
        let waiting = self.0.lock();
        waiting[..waiting.len().min(FRESH_BATCH)].to_vec()
    }

    /// The coordinator has heard of the first `count`.
    pub(crate) fn heard(&self, count: usize) {
        let mut waiting = self.0.lock();
        assert!(count <= waiting.len(), "only what was told is heard of");
        waiting.drain(..count);
    }
}
