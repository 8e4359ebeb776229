//! The answering side's calls that have a task.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The requests of one connection that have a task, by tag.
#[derive(Default)]
pub(crate) struct InFlight {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    running: HashMap<u64, Running>,
    bytes: usize,
}

struct Running {
    task: JoinHandle<()>,
    bytes: usize,
}

impl InFlight {
    /// Spawns the task of a request with `bytes` of payload.
    pub(crate) fn spawn(&self, tag: u64, bytes: usize, task: impl Future<Output = ()> + Send + 'static) {
        // Under the lock, since the task takes itself out when it is done.
        let mut state = self.state.lock();
        let task = forebay_runtime::spawn(task);
        state.running.insert(tag, Running { task, bytes });
        state.bytes += bytes;
    }

    pub(crate) fn contains(&self, tag: u64) -> bool {
        self.state.lock().running.contains_key(&tag)
    }

    /// The task of a request is done; false when it was cancelled.
    pub(crate) fn finish(&self, tag: u64) -> bool {
        self.remove(tag).is_some()
    }

    /// Ends the task of a request, which may have ended already.
    pub(crate) fn cancel(&self, tag: u64) {
        if let Some(task) = self.remove(tag) {
            task.abort();
        }
    }

    /// Ends all tasks and waits until they have ended.
    pub(crate) async fn cancel_all(&self) {
        for task in self.abort_all() {
            // Cancelled, or failed by a defect that it has reported itself.
            let _ = task.await;
        }
    }

    pub(crate) fn abort_all(&self) -> Vec<JoinHandle<()>> {
        let running = {
            let mut state = self.state.lock();
            state.bytes = 0;
            std::mem::take(&mut state.running)
        };
        let tasks: Vec<_> = running.into_values().map(|running| running.task).collect();
        tasks.iter().for_each(JoinHandle::abort);
        self.changed.notify_waiters();
        tasks
    }

    /// Waits until fewer than `calls` are running, with less than `bytes` of payload.
    pub(crate) async fn below(&self, calls: usize, bytes: usize) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                if state.running.len() < calls && state.bytes < bytes {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Whether [`Self::below`] would return at once.
    pub(crate) fn is_below(&self, calls: usize, bytes: usize) -> bool {
        let state = self.state.lock();
        state.running.len() < calls && state.bytes < bytes
    }

    fn remove(&self, tag: u64) -> Option<JoinHandle<()>> {
        let running = {
            let mut state = self.state.lock();
            let running = state.running.remove(&tag)?;
            state.bytes -= running.bytes;
            running
        };
        self.changed.notify_waiters();
        Some(running.task)
    }
}
