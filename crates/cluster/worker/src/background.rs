//! Work beside the task that wants it: what goes on after a request or session has ended, and what blocks.

use std::time::Duration;

use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::task::JoinSet;

/// What is tidied up after a session's or a request's end.
#[derive(Default)]
pub(crate) struct Background(Mutex<JoinSet<()>>);

impl Background {
    /// Does something later.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.0.lock();
        while running.try_join_next().is_some() {}
        running.spawn(work);
    }

    /// Gives up what is running.
    pub(crate) fn stop(&self) {
        self.0.lock().abort_all();
    }

    /// Waits until all has ended, and gives up what has not after `patience`.
    pub(crate) async fn stopped(&self, patience: Duration) {
        let mut running = std::mem::take(&mut *self.0.lock());
        let tidy = async { while running.join_next().await.is_some() {} };
        if forebay_runtime::time::timeout(patience, tidy).await.is_err() {
            running.shutdown().await;
        }
    }
}

/// Does what blocks on a thread that is there for that. `Internal`, with what it is, where it ends without an answer.
pub(crate) async fn aside<T: Send + 'static>(what: &str, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = forebay_runtime::spawn_blocking(work).await;
    done.map_err(|error| Error::internal(format!("{what} ended early: {error}")))?
}
