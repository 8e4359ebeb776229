//! Workers that say nothing: calls that wait for one that is lost are ended, and reads asked of another one.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use forebay_placement::{Allowance, Usual};
use forebay_protocol::WorkerInfo;
use forebay_runtime::time::{Instant, instant, sleep, sleep_until, timeout};
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

/// Why an answer is not waited for any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The view has lost the worker, or has another process of it.
    Lost,
    /// It had its time.
    Late,
}

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
        self.answered_by(info, None, answer).await.ok()
    }

    /// The same until then at the latest. One timer does for both, as each takes a part of the time of a call that takes microseconds.
    pub(crate) fn answered_by<T>(
        &self,
        info: &WorkerInfo,
        until: Option<Instant>,
        answer: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T, Unanswered>> {
        let losses = self.view.known().view.losses;
        let is_live = move |round: u32| {
            let is_live = self.is_live(info, losses);
            let is_heard = || self.queues.is_fresh(info.id, LOOK_AFTER.as_micros() as u64);
            if is_live && (round.is_multiple_of(ROUNDS_WHEN_HEARD) || !is_heard()) {
                self.view.surprised();
            }
            is_live
        };
        answered(answer, until, is_live)
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

/// Waits for an answer, until then at the latest, and looks again and again whether who is asked lives, by the number of looks before.
async fn answered<T>(
    answer: impl Future<Output = T>,
    until: Option<Instant>,
    is_live: impl Fn(u32) -> bool,
) -> Result<T, Unanswered> {
    let silence = async {
        let (mut pause, mut round) = (LOOK_AFTER, 0u32);
        loop {
            debug_assert!(!pause.is_zero(), "who is asked is not looked for without a pause");
            let look = instant() + pause;
            sleep_until(until.map_or(look, |until| until.min(look))).await;
            if until.is_some_and(|until| instant() >= until) {
                return Unanswered::Late;
            }
            if !is_live(round) {
                return Unanswered::Lost;
            }
            round = round.wrapping_add(1);
            pause = LOOK_EVERY;
        }
    };
    tokio::select! {
        biased;
        answer = answer => Ok(answer),
        why = silence => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_waited_for_while_who_is_asked_lives_and_has_time() {
        let (looks, began) = (Cell::new(0u32), instant());
        let lives = |round: u32| {
            assert_eq!(looks.replace(round + 1), round);
            true
        };
        let until = Some(began + Duration::from_millis(2_700));
        assert_eq!(answered(pending::<()>(), until, lives).await, Err(Unanswered::Late));
        let took = began.elapsed();
        assert!((Duration::from_millis(2_700)..Duration::from_millis(2_800)).contains(&took), "{took:?}");
        assert_eq!(looks.get(), 4, "after one second, and each half");

        let began = instant();
        let lost = |round: u32| round < 2;
        assert_eq!(answered(pending::<()>(), None, lost).await, Err(Unanswered::Lost));
        let took = began.elapsed();
        assert!((Duration::from_secs(2)..Duration::from_millis(2_100)).contains(&took), "{took:?}");

        assert_eq!(answered(ready(7), Some(began), |_| false).await, Ok(7), "what is there is taken, however late");
    }
}
