//! Workers that say nothing: calls that wait for one that is lost are ended, and reads asked of another one.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use forebay_placement::{Allowance, Usual};
use forebay_protocol::WorkerInfo;
use forebay_runtime::time::{sleep, timeout};
use forebay_types::WorkerId;
use parking_lot::Mutex;

use super::Routes;

/// A call that has no answer for so long makes the client look at the view, and again every so often; the rarer one where the worker is
/// heard of.
const LOOK_AFTER: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(500);
const ROUNDS_WHEN_HEARD: u32 = 10;
/// How long a worker may take to say that it is there, before a late read goes to another one.
const THERE_WITHIN: Duration = Duration::from_millis(250);
/// When one that said so is asked again.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// Who was heard of within this is there.
const HEARD_WITHIN_US: u64 = 250_000;
/// Workers whose reads are known at most; then all are forgotten.
const WORKERS_MAX: usize = 20_000;

/// What is known for telling that a read is late.
#[derive(Default)]
pub(super) struct Late {
    usual: Mutex<HashMap<WorkerId, Usual>>,
    allowance: Mutex<Allowance>,
}

impl Late {
    /// A read of a worker was answered after so long.
    pub(super) fn took(&self, worker: WorkerId, took: Duration) {
        let mut usual = self.usual.lock();
        if usual.len() >= WORKERS_MAX {
            usual.clear();
        }
        usual.entry(worker).or_default().took(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        assert!(usual.len() <= WORKERS_MAX, "{} workers are remembered", usual.len());
    }

    fn after(&self, worker: WorkerId) -> Duration {
        Duration::from_micros(self.usual.lock().get(&worker).copied().unwrap_or_default().late_us())
    }
}

impl Routes {
    /// Waits for an answer of a worker; none when the view has lost this worker meanwhile, or has another process of it: nothing that it says
    /// counts any more, and it may never say anything.
    pub(crate) async fn unless_lost<T>(&self, info: &WorkerInfo, answer: impl Future<Output = T>) -> Option<T> {
        let losses = self.view.known().view.losses;
        let lost = async {
            sleep(LOOK_AFTER).await;
            let mut round = 0u32;
            while self.is_live(info, losses) {
                if round.is_multiple_of(ROUNDS_WHEN_HEARD) || !self.queues.is_fresh(info.id, LOOK_AFTER.as_micros() as u64) {
                    self.view.surprised();
                }
                round = round.wrapping_add(1);
                sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = lost => None,
        }
    }

    /// Whether the view still has a worker as it was when so many losses were known. Its turn is another one after it was lost, and when
    /// it passed the root on.
    pub(crate) fn is_live(&self, info: &WorkerInfo, losses: u64) -> bool {
        let known = self.view.known();
        known.worker(info.id).is_some_and(|now| now.turn == info.turn || known.view.losses == losses)
    }

    /// A read was asked for.
    pub(super) fn count_read(&self) {
        self.late.allowance.lock().read();
    }

    /// Back when a read that a worker was asked for now is to be asked of another one too: it is late, and the worker does not say that
    /// it is there. Others are asked before it from then on.
    pub(super) async fn silent(&self, info: &Arc<WorkerInfo>) {
        sleep(self.late.after(info.id)).await;
        while self.is_there_now(info).await || !self.late.allowance.lock().take() {
            sleep(ASKED_EVERY).await;
        }
        tracing::debug!(worker = %info.id, "worker says nothing, another one is asked beside");
        self.lost(info.id);
    }

    async fn is_there_now(&self, info: &Arc<WorkerInfo>) -> bool {
        if self.queues.is_fresh(info.id, HEARD_WITHIN_US) {
            return true;
        }
        let asking = async {
            let link = self.connections.link(info).await.ok()?;
            self.says_so(&link, THERE_WITHIN).await.ok()
        };
        timeout(THERE_WITHIN, asking).await.is_ok_and(|there| there.is_some())
    }
}
