//! What runs beside its caller.

use tokio::task::JoinHandle;

use crate::simulated::is_simulated;

pub use tokio::spawn;

/// Runs what blocks on a thread that is there for that.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match is_simulated() {
        true => spawn(async move { work() }),
        false => tokio::task::spawn_blocking(work),
    }
}
