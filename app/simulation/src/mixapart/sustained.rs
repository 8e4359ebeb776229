//! The capacity model against the schedule: how many parallel tasks each says that a link feeds.

use forebay_scheduling::sustained_tasks;
use serde::Serialize;

use super::{MixApartSettings, mixapart};

/// How many parallel tasks a cluster sustains: by the capacity model, and by the decision code in the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sustained {
    /// Share of the input that is cached.
    pub reuse: f64,
    /// Bandwidth of shared storage in bytes a second.
    pub bandwidth_bytes_per_sec: f64,
    /// Parallel tasks by the model (MixApart, figure 1).
    pub model: f64,
    /// The most tasks that computed at once, on average, while the cluster kept up with what was offered.
    pub simulated: f64,
}

/// Share of the time in which the link is busy, above which what is brought waits longer and longer.
const BUSY_MAX: f64 = 0.99;

/// The most parallel tasks that are sustained, by halving the load between 0.8 and 1.2 of the model's number.
///
/// The cluster is given slots for twice that number, so that the link and not the slots is the limit.
pub fn sustained(settings: &MixApartSettings) -> Sustained {
    let bytes = settings.task_bytes as f64;
    let model = sustained_tasks(settings.reuse, settings.mean_task_secs(), bytes, settings.bandwidth_bytes_per_sec);
    let workers = (2.0 * model / f64::from(settings.slots)).ceil().max(1.0) as u32;
    let (mut low, mut high, mut simulated) = (0.8 * model, 1.2 * model, 0.0);
    while high - low > 0.01 * model {
        let offered_tasks = f64::midpoint(low, high);
        let outcome = mixapart(&MixApartSettings { workers, offered_tasks, ..settings.clone() });
        if outcome.link < BUSY_MAX {
            (low, simulated) = (offered_tasks, outcome.computing);
        } else {
            high = offered_tasks;
        }
    }
    Sustained { reuse: settings.reuse, bandwidth_bytes_per_sec: settings.bandwidth_bytes_per_sec, model, simulated }
}
