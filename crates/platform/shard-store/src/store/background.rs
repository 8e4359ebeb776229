//! The thread beside a store that works when there is work, tries failed work again, and ends with it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_types::{Error, Result};
use parking_lot::{Condvar, Mutex};

use super::Store;

/// After a failure the work is tried again later and later, up to this.
const RETRY_MAX: Duration = Duration::from_secs(60);
const RETRY_MIN: Duration = Duration::from_millis(500);

/// A thread that does a piece of a store's work whenever there is some. It ends with the store: what it has begun is done.
pub(super) struct Background {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and those who wait for it tell each other.
#[derive(Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    /// Why the last attempt failed.
    failed: Option<Error>,
}

impl Background {
    /// Starts it: `work` is done whenever `wanted` says so, at the start and after each [`Signal::wake`].
    pub(super) fn start(
        name: &'static str,
        signal: Arc<Signal>,
        store: Store,
        wanted: impl Fn(&Store) -> bool + Send + 'static,
        work: impl Fn(&Store) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let theirs = signal.clone();
        let run = move || {
            let mut retry = RETRY_MIN;
            while theirs.wait_for_work(|| wanted(&store)) {
                let outcome = work(&store);
                let mut state = theirs.state.lock();
                state.failed = outcome.err();
                theirs.changed.notify_all();
                if let Some(error) = &state.failed {
                    tracing::warn!(path = %store.path.display(), %error, name, "updates stay as they are for now");
                    theirs.changed.wait_while_for(&mut state, |state| !state.stop, retry);
                    retry = (retry * 2).min(RETRY_MAX);
                } else {
                    retry = RETRY_MIN;
                }
            }
        };
        Ok(Self { thread: Some(std::thread::Builder::new().name(name.to_string()).spawn(run)?), signal })
    }
}

impl Signal {
    /// Says that there may be work.
    pub(super) fn wake(&self) {
        // Under the lock, so that it does not fall between the thread's look and its sleep.
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Waits until `enough` holds, as it may after each piece of work; an error if the work fails.
    pub(super) fn wait_until(&self, enough: impl Fn() -> bool) -> Result<()> {
        let mut state = self.state.lock();
        while !enough() {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
        Ok(())
    }

    /// False when it is over.
    fn wait_for_work(&self, wanted: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        while !state.stop && !wanted() {
            self.changed.wait(&mut state);
        }
        !state.stop
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.signal.state.lock().stop = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::warn!("a thread that takes care of a shard's updates failed");
        }
    }
}
