//! What a plan is made of: the snapshot, the settings, and the capacities that follow from both.

mod settings;
mod snapshot;

pub use settings::{Concurrency, PlanSettings, Policy};
pub use snapshot::{Holdings, SegmentDemand, Snapshot, WorkerRoom};

/// Accesses a window that each worker may be given.
///
/// A worker's own capacity is taken as it is. The others share the whole by speed: ceil(sum/n) when all are equal
/// (Getafix, section 3.1). With slack it is the largest whole number within (1 + slack) times the share, and never less
/// than without.
pub(super) fn capacities(snapshot: &Snapshot<'_>, settings: &PlanSettings) -> Vec<u64> {
    let total: u64 = snapshot.segments.iter().map(|segment| segment.count).sum();
    let speed = |speed: f64| if speed.is_finite() && speed > 0.0 { speed } else { 0.0 };
    let sum: f64 = snapshot.workers.iter().map(|worker| speed(worker.speed)).sum();
    let slack = if settings.policy == Policy::Getafix { settings.slack } else { 0.0 };
    let equal = snapshot.workers.iter().all(|worker| worker.speed == snapshot.workers[0].speed) || sum == 0.0;
    let of = |own: f64| {
        if equal {
            let n = snapshot.workers.len() as u64;
            // Whole numbers as long as floating point isn't needed: the paper's examples must come out exactly.
            let wide = (total as f64 / n as f64 * (1.0 + slack)).floor() as u64;
            total.div_ceil(n).max(if slack > 0.0 { wide } else { 0 })
        } else {
            let share = total as f64 * (speed(own) / sum);
            (share.ceil() as u64).max((share * (1.0 + slack)).floor() as u64)
        }
    };
    snapshot.workers.iter().map(|worker| worker.capacity.unwrap_or_else(|| of(worker.speed))).collect()
}
