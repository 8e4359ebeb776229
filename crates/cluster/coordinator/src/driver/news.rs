//! The long question of each worker whether there is news for it, so that orders need not wait for its next heartbeat.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_protocol::ControlReply;
use forebay_types::{Error, Result, WorkerId};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a worker waits that there is nothing to tell: less than it waits for any answer.
const NOTHING_WITHIN: Duration = Duration::from_secs(3);
/// Workers that are remembered at most; beyond, all are forgotten and come back with their next question.
const WORKERS_MAX: usize = 40_000;

/// Wakes workers that have a reason to send a heartbeat before its time: orders reach them within a round trip, and a
/// window's counts come in at once.
#[derive(Default)]
pub(crate) struct News {
    waiting: Mutex<HashMap<WorkerId, Arc<Notify>>>,
    closed: AtomicBool,
}

impl News {
    /// Waits until there is something for a worker. What comes while nobody waits is there for the next question.
    pub(crate) async fn wait(&self, worker: WorkerId) -> Result<ControlReply> {
        self.wait_for(worker, NOTHING_WITHIN).await
    }

    async fn wait_for(&self, worker: WorkerId, within: Duration) -> Result<ControlReply> {
        let news = {
            let mut waiting = self.waiting.lock();
            if waiting.len() >= WORKERS_MAX {
                waiting.clear();
            }
            let news = Arc::clone(waiting.entry(worker).or_default());
            assert!(waiting.len() <= WORKERS_MAX, "{} workers wait", waiting.len());
            news
        };
        let there = news.notified();
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed("the coordinator is shutting down: ask its successor"));
        }
        Ok(match forebay_runtime::time::timeout(within, there).await {
            Ok(()) => ControlReply::Done,
            Err(_) => ControlReply::Unchanged,
        })
    }

    /// There is something for these workers.
    pub(crate) fn tell(&self, workers: &[WorkerId]) {
        let waiting = self.waiting.lock();
        workers.iter().filter_map(|worker| waiting.get(worker)).for_each(|news| news.notify_one());
    }

    /// There is something for everyone.
    pub(crate) fn tell_all(&self) {
        self.waiting.lock().values().for_each(|news| news.notify_one());
    }

    /// Nobody waits any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.tell_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_told_and_so_is_who_comes_late() {
        let news = News::default();
        let (one, other) = (WorkerId(1), WorkerId(2));
        let (moment, long) = (Duration::from_millis(1), Duration::from_secs(60));
        assert_eq!(news.wait_for(one, moment).await.unwrap(), ControlReply::Unchanged);
        let (told, ()) = tokio::join!(news.wait_for(one, long), async { news.tell(&[one, other]) });
        assert_eq!(told.unwrap(), ControlReply::Done);
        assert_eq!(news.wait_for(other, moment).await.unwrap(), ControlReply::Unchanged, "it had never asked");
        news.tell_all();
        assert_eq!(news.wait_for(other, long).await.unwrap(), ControlReply::Done, "told between two questions");
        news.close();
        assert!(news.wait_for(one, long).await.is_err());
    }
}
