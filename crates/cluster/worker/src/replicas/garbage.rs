//! What is held though reads are not routed to it any more.

use std::time::Duration;

use forebay_metrics::table;
use forebay_placement::{Replica, garbage};

use super::Replicas;

/// How long a look that changed nothing is not repeated: nothing new is known before the next window.
const PAUSE: Duration = Duration::from_secs(5);

impl Replicas {
    /// Drops segments that reads are not routed to here any more, the least popular first, until the storage is at
    /// the settings' share or below. What reads are routed to is only evicted block by block, for what needs the room: another
    /// copy of it may not exist. Kept segments stay, pinned pages until their pins end.
    pub(crate) fn collect_garbage(&self) {
        let usage = self.origin.store.usage();
        let tier = if usage.disk.capacity_bytes > 0 { &usage.disk } else { &usage.dram };
        if tier.used_bytes as f64 <= tier.capacity_bytes as f64 * self.storage_share {
            return;
        }
        if self.searched.lock().is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let is_routed_here = self.cluster.routed_here();
        let (mut segments, mut replicas) = (Vec::new(), Vec::new());
        for (segment, name, popularity) in self.signals.popularity.known() {
            let held = self.origin.store.held(segment);
            if held.bytes == 0 || held.keep || self.is_settling(segment) || is_routed_here(name.route()) {
                continue;
            }
            if self.forms.is_named(&name.version, name.index) {
                continue;
            }
            let number = segments.len() as u32;
            segments.push(segment);
            // Popularity decides in eighths of an operation.
            replicas.push(Replica {
                segment: number,
                bytes: held.bytes,
                share: 0,
                count: (popularity * 8.0) as u64,
                stays: false,
            });
        }
        let spare: u64 = replicas.iter().map(|replica| replica.bytes).sum();
        let rest = tier.used_bytes.saturating_sub(spare);
        replicas.push(Replica { segment: u32::MAX, bytes: rest, share: 0, count: 0, stays: true });
        let dropped = garbage(&replicas, tier.capacity_bytes, self.storage_share);
        let bytes: u64 = dropped.iter().map(|number| self.origin.store.free(segments[*number as usize])).sum();
        if dropped.is_empty() {
            *self.searched.lock() = Some(forebay_runtime::now());
            return;
        }
        tracing::info!(segments = dropped.len(), bytes, "replicas dropped that nobody is sent to");
        table::WORKER_GARBAGE_BYTES.only().add(bytes);
    }
}
