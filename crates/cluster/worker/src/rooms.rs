//! The rooms of a worker, and which of them hear of what.

use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::{BlockStore, TierUsage};
use forebay_protocol::{ClusterView, DrainReport, ReadCounters, Warning, WorkerReport};
use forebay_types::{Owner, Result, WorkerId};

use crate::background::Background;
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::forms::Forms;
use crate::in_place::InPlace;
use crate::nodes::Nodes;
use crate::origin::{Claims, Elsewhere, Means, Mounts, Origin};
use crate::read::Reads;
use crate::replicas::Replicas;
use crate::settings::{Tuning, WorkerSettings};
use crate::shards::{Limits, Shards};
use crate::signals::Signals;
use crate::versions::Versions;
use crate::write::{Notes, Writes};

/// Mounts of whose shared storage it is told what is wrong, at most.
const TROUBLES_MAX: usize = 8;

/// What answers requests: made once, and seen whole by `session` and `process` only.
pub(crate) struct Rooms {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) reads: Reads,
    pub(crate) writes: Arc<Writes>,
    pub(crate) forms: Arc<Forms>,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) shards: Arc<Shards>,
    pub(crate) in_place: Arc<InPlace>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) background: Arc<Background>,
}

impl Rooms {
    pub(crate) fn new(id: WorkerId, store: BlockStore, settings: &WorkerSettings, tuning: &Tuning) -> Result<Self> {
        let (versions, background) = (Arc::new(Versions::default()), Arc::new(Background::default()));
        let signals = Arc::new(Signals::new(settings.serve_bytes_per_sec));
        let heard = Arc::clone(&signals);
        store.tell_changes(move |segment, run, change| heard.changes.add(segment, run, change));
        let cluster = Arc::new(Cluster::new(id, settings.coordinator.clone(), &settings.security));
        let elsewhere = Elsewhere::new(Arc::clone(&cluster));
        let (dram_bytes, disk_bytes) = (settings.store.dram_bytes, store.disk_bytes());
        let claims = Arc::new(Claims::new(store.clone(), dram_bytes));
        let means = Means {
            store: store.clone(),
            versions: Arc::clone(&versions),
            signals: Arc::clone(&signals),
            elsewhere,
            claims: Arc::clone(&claims),
            judged_within: tuning.judged_within,
        };
        let in_place = Arc::new(InPlace::new(store.clone(), claims, settings.unix_socket.is_some()));
        let mounts = Mounts::new(tuning.storage.clone(), settings.storage_queue_bytes);
        let origin = Arc::new(Origin::new(means, mounts, dram_bytes, Arc::clone(&cluster)));
        let nodes = Nodes::new(
            store,
            (dram_bytes, disk_bytes),
            settings.temporary_share,
            tuning.reclaim_after,
            Arc::clone(&cluster),
            Arc::clone(&background),
        );
        let catalogue = Arc::new(Catalogue::new(versions, Arc::clone(&origin), Arc::clone(&cluster)));
        let all = || (Arc::clone(&origin), Arc::clone(&catalogue), Arc::clone(&cluster));
        let (from, known, to) = all();
        let reads = Reads::new(from, known, to, Arc::clone(&in_place), Arc::clone(&signals));
        let (from, known, to) = all();
        let notes = Notes::open(settings.store.folder.join("uploads"))?;
        let writes = Writes::new(from, known, to, Arc::clone(&signals), Arc::clone(&background), notes);
        let (from, _, to) = all();
        let forms = Arc::new(Forms::new(from, to, Arc::clone(&signals)));
        let (from, _, to) = all();
        let replicas = Replicas::new(settings.storage_share, from, to, Arc::clone(&forms), Arc::clone(&signals));
        let (from, _, to) = all();
        let (folder, claims) = (settings.store.folder.join("shards"), settings.store.folder.join("claims"));
        let writes = Arc::new(writes);
        let limits = Limits {
            bytes_max: settings.shard_bytes,
            garbage_after: tuning.garbage_after,
            copy_bytes_per_sec: tuning.copy_bytes_per_sec,
        };
        let behind = Arc::clone(&background);
        let shards = Arc::new(Shards::open((folder.as_path(), claims.as_path()), limits, Arc::clone(&writes), from, to, behind)?);
        let (replicas, nodes) = (Arc::new(replicas), Arc::new(nodes));
        Ok(Self { cluster, origin, catalogue, reads, writes, forms, replicas, nodes, shards, in_place, signals, background })
    }

    /// Takes over a view: every room hears of it before anyone can ask by it.
    pub(crate) fn follow(&self, view: ClusterView) {
        for gone in self.origin.follow(&view) {
            tracing::info!(mount = gone.0, "mount removed");
            self.catalogue.forget_mount(gone);
        }
        self.nodes.follow(&view);
        let before = self.cluster.view();
        self.cluster.set_view(view);
        self.writes.follow();
        self.shards.follow(&before);
    }

    /// Forgets what others may have changed: this worker may not have been told.
    pub(crate) fn refresh_all(&self) {
        self.writes.refresh_all();
        self.shards.refresh_all();
    }

    /// The worker's own numbers.
    pub(crate) fn report(&self) -> WorkerReport {
        let usage = self.origin.store.usage();
        let (dram, disk) = (&usage.dram, &usage.disk);
        let ReadCounters { reads, bytes_served, bytes_hit, storage_reads, storage_read_us, tier_read_us } =
            self.signals.meters.totals();
        let for_columns = self.forms.room();
        let picos = |secs: f64| (secs * 1e12) as u64;
        let of_tiers = usage.warnings.into_iter().map(Warning::of_worker);
        WorkerReport {
            dram: (dram.capacity_bytes, dram.used_bytes, (dram.pinned_bytes + dram.kept_bytes).min(dram.used_bytes)),
            disk: (disk.capacity_bytes, disk.used_bytes, disk.kept_bytes),
            form_bytes: dram.bytes_of(Owner::Form),
            // Temporary blocks can't be evicted either, and count as what they are.
            kept: (kept(dram), kept(disk)),
            own: (dram.own_bytes(), disk.own_bytes()),
            segments: usage.segments,
            reads,
            bytes_served,
            bytes_hit,
            storage: self.origin.mounts.counters(),
            warnings: of_tiers.chain(self.origin.mounts.troubles(TROUBLES_MAX)).collect(),
            drain: self.drain_report(),
            disk_form_bytes: disk.bytes_of(Owner::Form),
            layer_bytes: disk.bytes_of(Owner::Shard),
            storage_reads,
            storage_read_us,
            tier_read_us,
            mount_reads: self.origin.mounts.reads(),
            form_room_bytes: for_columns.bytes,
            form_saves_ps: picos(for_columns.saves.0),
            block_saves_ps: picos(for_columns.saves.1),
        }
    }

    /// How far it is with giving up what only it has, or it and another worker, while it is draining.
    fn drain_report(&self) -> Option<DrainReport> {
        let nodes = self.nodes.drain_report()?;
        let (logs, bytes) = self.shards.on_two_disks();
        Some(DrainReport { bytes: nodes.bytes + bytes, done: nodes.done && logs == 0, ..nodes })
    }

    /// Ends all work that goes on without a request.
    pub(crate) fn stop(&self) {
        self.stop_following();
        self.origin.flights.stop();
        self.background.stop();
    }

    /// The same, and waits until it has ended; what is being tidied up gets `patience`.
    pub(crate) async fn stopped(&self, patience: Duration) {
        self.stop_following();
        self.background.stopped(patience).await;
        self.origin.flights.stopped().await;
    }

    fn stop_following(&self) {
        self.writes.stop();
        self.shards.stop();
        self.replicas.stop();
        self.forms.stop();
    }
}

fn kept(tier: &TierUsage) -> u64 {
    tier.kept_bytes.saturating_sub(tier.bytes_of(Owner::Temporary))
}
