//! Bytes of shared storage in the tiers.
//!
//! Owns: the mounts and their bounds, the requests that run (so many a mount, each page by one of them for everyone who waits),
//! what is in the tiers of which object, and what is held there until the operation that it was brought for has read it.
//!
//! Never does: say which version is the current one, which `catalogue` does, or who may read.
//!
//! Start with [`Origin::obtain`]: `flights` (who fetches it already?) -> `elsewhere` (who has it?) -> `admission` (whose turn is it?) -> `pour`
//! (one request, and where its bytes go).

mod admission;
mod claims;
mod download;
mod elsewhere;
mod flight;
mod flights;
mod means;
mod mounts;
mod obtain;
mod piece;
mod pins;
mod pour;
mod prefetch;
mod transfer;

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_block_store::BlockStore;
use forebay_protocol::ClusterView;
use forebay_types::{Error, Key, MountId, ObjectVersion, OperationId, PlanTurn, Result, SegmentId, Standing, VersionTag};

pub(crate) use admission::Priority;
use admission::Standings;
pub(crate) use claims::{Bringer, Claims, HeldFor};
pub(crate) use elsewhere::Elsewhere;
use flights::Flights;
pub(crate) use flights::Ticket;
pub(crate) use means::Means;
pub(crate) use mounts::{MountDoor, Mounts};
pub(crate) use obtain::parts;
pub(crate) use piece::{Missed, Obtained};
use pins::Pins;
pub(crate) use prefetch::Ahead;
pub(crate) use transfer::Source;

use crate::cluster::Cluster;
use crate::segment::Segment;
use crate::signals::{Meters, Signals};
use flight::Wanted;

/// The tiers, and shared storage behind them.
pub(crate) struct Origin {
    pub(crate) store: BlockStore,
    pub(crate) mounts: Mounts,
    pub(crate) flights: Arc<Flights>,
    pub(crate) claims: Arc<Claims>,
    standings: Standings,
    pins: Pins,
    dram_bytes: u64,
    cluster: Arc<Cluster>,
    signals: Arc<Signals>,
}

impl Origin {
    pub(crate) fn new(means: Means, mounts: Mounts, dram_bytes: u64, cluster: Arc<Cluster>) -> Self {
        let (store, signals) = (means.store.clone(), Arc::clone(&means.signals));
        let (claims, flights) = (Arc::clone(&means.claims), Arc::new(Flights::new(means)));
        let (standings, pins) = (Standings::default(), Pins::default());
        Self { store, mounts, flights, claims, standings, pins, dram_bytes, cluster, signals }
    }

    /// Takes over the mounts and pins of a view; gives the ids of mounts that are gone.
    pub(crate) fn follow(&self, view: &ClusterView) -> Vec<MountId> {
        self.let_go(self.pins.set(view.pins.clone()));
        self.mounts.set(view)
    }

    /// An object was written, and is this version `now` where that is known, or deleted: nothing else of it is kept.
    pub(crate) fn forget_kept(&self, mount: MountId, key: &Key, now: Option<&VersionTag>) {
        self.let_go(self.pins.forget(mount, key, now));
    }

    /// A segment of a version is kept: versions from long before are not.
    pub(crate) fn note_kept(&self, version: &ObjectVersion, segment: SegmentId) {
        self.let_go(self.pins.note(version, segment));
    }

    /// These are kept no longer, but for those that are known to be of what is to be kept.
    pub(crate) fn keep_no_longer(&self, segments: &BTreeSet<SegmentId>) {
        self.let_go(segments.difference(&self.pins.noted()).copied());
    }

    fn let_go(&self, segments: impl IntoIterator<Item = SegmentId>) {
        for segment in segments {
            self.store.set_keep(segment, false);
        }
    }

    /// The mount's door. One that is not known may be newer than the view: the coordinator is asked before it is
    /// `NotFound`.
    pub(crate) async fn mount(&self, id: MountId) -> Result<Arc<MountDoor>> {
        let door = match self.mounts.find(id) {
            Some(door) => Some(door),
            None => Box::pin(self.cluster.newest(|| self.mounts.find(id))).await,
        };
        door.ok_or_else(|| Error::not_found(format!("mount {} is not mounted any more: see `forebay mount ls`", id.0)))
    }

    /// What is measured of reads: room of the tiers is weighed by it.
    pub(crate) fn meters(&self) -> &Meters {
        &self.signals.meters
    }

    /// The turn of an operation's plan. Its reads on demand go by the plan's priority from now on.
    pub(crate) fn plan(&self, operation: OperationId, standing: Standing) -> PlanTurn {
        self.standings.learn(operation, standing.priority);
        standing.turn(operation, forebay_runtime::unix_ms())
    }

    /// What a reader's fetch of `segment` has to know.
    pub(crate) fn wanted_by(&self, operation: OperationId, door: &Arc<MountDoor>, segment: Segment) -> Wanted {
        let mut wanted = self.wanted(door, segment, Priority::Demand, false);
        wanted.turn.standing.priority = self.standings.of(operation);
        wanted
    }

    /// What a fetch of `segment` has to know that no plan has asked for: among plans it stands as one that was made now.
    pub(crate) fn wanted(&self, door: &Arc<MountDoor>, segment: Segment, priority: Priority, keep: bool) -> Wanted {
        let keep = keep || self.pins.keep(segment.version.mount, &segment.version.key);
        if keep {
            self.note_kept(&segment.version, segment.id);
        }
        let turn = Standing::default().turn(OperationId(0), forebay_runtime::unix_ms());
        Wanted { door: Arc::clone(door), segment: Arc::new(segment), priority, turn, keep, cache: true }
    }
}
