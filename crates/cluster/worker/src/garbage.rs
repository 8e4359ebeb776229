use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_placement::{Replica, garbage};
use metrics::counter;
use parking_lot::Mutex;

use crate::serving::Serving;

/// How long a look that changed nothing is not repeated: nothing new is known before the next window.
const PAUSE: Duration = Duration::from_secs(5);

/// When garbage was looked for in vain.
#[derive(Default)]
pub(crate) struct Garbage(Mutex<Option<Instant>>);

impl Serving {
    /// Drops segments that reads are not routed to here any more, the least popular first, until the storage is at
    /// the settings' share or below. What reads are routed to is only evicted block by block, for what needs the room: another
    /// copy of it may not exist. Kept segments stay, pinned pages until their pins end.
    pub(crate) fn collect_garbage(&self) {
        let usage = self.store.usage();
        let tier = if usage.disk.capacity_bytes > 0 { &usage.disk } else { &usage.dram };
        if tier.used_bytes as f64 <= tier.capacity_bytes as f64 * self.storage_share {
            return;
        }
        if self.garbage.0.lock().is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let is_routed_here = self.routed_here();
        let (mut segments, mut replicas) = (Vec::new(), Vec::new());
        for (segment, name, popularity) in self.counts.known() {
            let held = self.store.held(segment);
            if held.bytes == 0 || held.keep || self.replicas.is_settling(segment) || is_routed_here(name.route()) {
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
        let bytes: u64 = dropped.iter().map(|number| self.store.free(segments[*number as usize])).sum();
        if dropped.is_empty() {
            *self.garbage.0.lock() = Some(Instant::now());
            return;
        }
        tracing::info!(segments = dropped.len(), bytes, "replicas dropped that nobody is sent to");
        counter!("forebay_worker_garbage_bytes").increment(bytes);
    }

    /// The same, off the thread that keeps the heartbeat.
    pub(crate) fn collect_garbage_later(self: &Arc<Self>) {
        let serving = Arc::clone(self);
        self.later(async move { serving.collect_garbage() });
    }
}
