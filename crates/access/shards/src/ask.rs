//! Questions to one shard, wherever it is served.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::ShardQueue;
use forebay_placement::rank;
use forebay_shard_store::Answered;
use forebay_types::{Error, ErrorKind, Result, RouteKey, WorkerId};
use serde_json::Value as Json;

use crate::Shards;
use crate::choose::Ended;

/// Pause before all are asked again, the first time; it doubles up to the second one.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl Shards {
    /// The answer to each question, from one worker; from the next one where a worker can't. What is wrong with a question is
    /// its answer.
    pub(crate) async fn ask(&self, shard: usize, questions: &[Json]) -> Result<Vec<Answered>> {
        let mut lines = Vec::new();
        for question in questions {
            serde_json::to_writer(&mut lines, question).map_err(|error| Error::invalid(error.to_string()))?;
            lines.push(b'\n');
        }
        let answers = self.ask_lines(shard, lines.into()).await?;
        let answers: Vec<Answered> = serde_json::Deserializer::from_slice(&answers)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| Error::internal(format!("{}: an answer can't be read: {error}", self.path)))?;
        match answers.len() == questions.len() {
            true => Ok(answers),
            false => Err(Error::internal(format!("{}: {} answers to {} questions", self.path, answers.len(), questions.len()))),
        }
    }

    /// The same for a question by itself.
    pub(crate) async fn ask_one(&self, shard: usize, question: Json) -> Result<Json> {
        let answer = self.ask(shard, &[question]).await?.pop();
        answer.ok_or_else(|| Error::internal(format!("{}: no answer to a question", self.path)))?.into_result()
    }

    async fn ask_lines(&self, shard: usize, lines: Bytes) -> Result<Bytes> {
        let ask = |worker, within| {
            let asking = self.client.shards().ask(worker, &self.id, shard as u32, lines.clone(), within);
            self.ask_worker(worker, shard, asking)
        };
        self.until_answered(|| self.whom_to_ask(shard), ask).await
    }

    /// Asks workers, one after the other, until one of them answers, in the order that is right at the time.
    pub(crate) async fn until_answered<T, A: Future<Output = Result<T>>>(
        &self,
        order: impl Fn() -> Vec<WorkerId>,
        ask: impl Fn(WorkerId, Duration) -> A,
    ) -> Result<T> {
        let deadline = forebay_runtime::now() + self.within;
        let mut pause = PAUSE;
        loop {
            let mut failed = Failed::default();
            let order = order();
            for (place, worker) in order.iter().enumerate() {
                let left = deadline.saturating_duration_since(forebay_runtime::now());
                if left.is_zero() {
                    return Err(failed.into_error(false).context(&self.path));
                }
                let within = patience(left, place + 1 == order.len());
                match ask(*worker, within).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) if is_final(&error) => return Err(error.context(&self.path)),
                    Err(error) => {
                        tracing::debug!(%worker, %error, "another replica is asked");
                        failed.add(error);
                    }
                }
            }
            let wait = pause.max(failed.after()).min(PAUSE_MAX);
            if failed.is_in_vain() || forebay_runtime::now() + wait >= deadline {
                return Err(failed.into_error(true).context(&self.path));
            }
            forebay_runtime::time::sleep(wait).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Asks one worker, and remembers how it did.
    pub(crate) async fn ask_worker(
        &self,
        worker: WorkerId,
        shard: usize,
        asking: impl Future<Output = Result<(Bytes, ShardQueue)>>,
    ) -> Result<Bytes> {
        let mut call = Call::begin(self, shard, worker);
        match asking.await {
            Ok((answers, queue)) => {
                call.ended = Ended::Answered(queue);
                Ok(answers)
            }
            Err(error) => {
                call.ended = ended(&error);
                Err(error)
            }
        }
    }

    /// The workers to ask for a shard, the best first.
    pub(crate) fn whom_to_ask(&self, shard: usize) -> Vec<WorkerId> {
        let holders = self.holders(shard);
        let (chance, now) = (forebay_runtime::random(), forebay_runtime::now());
        self.workers.lock().order(shard, &holders, self.dataset.replicas.len(), chance, now)
    }

    /// The workers in the order in which they hold a shard.
    pub(crate) fn holders(&self, shard: usize) -> Arc<[WorkerId]> {
        let view = self.client.view();
        let rank = || {
            let workers: Vec<_> = view.placeable().map(|worker| worker.id).collect();
            rank(RouteKey::of(self.id.mount, &self.id.folder, shard as u32), &workers)
        };
        self.workers.lock().holders(shard, (view.epoch, view.version), rank)
    }

    /// The holders in that order, but those that are away behind all others.
    pub(crate) fn in_rank(&self, shard: usize) -> Vec<WorkerId> {
        let holders = self.holders(shard);
        self.workers.lock().in_rank(shard, &holders, forebay_runtime::now())
    }
}

/// What no other worker would say differently.
pub(crate) fn is_final(error: &Error) -> bool {
    !error.is_here_alone()
        && matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Conflict)
}

/// What an error says of the worker that answered with it.
pub(crate) fn ended(error: &Error) -> Ended {
    if let Some(after) = error.retry_after() {
        return Ended::Busy(after);
    }
    match error.is_here_alone() {
        // A worker that only lacks what was before its time has room.
        true if error.kind() == ErrorKind::Invalid => Ended::Unable,
        false if !is_final(error) => Ended::Failed,
        _ => Ended::GivenUp,
    }
}

/// What was said by the workers of one round.
#[derive(Default)]
struct Failed {
    /// By the last one that may do it later.
    later: Option<Error>,
    /// By the last one that never will, as others may.
    never: Option<Error>,
}

impl Failed {
    fn add(&mut self, error: Error) {
        match error.is_here_alone() {
            true => self.never = Some(error),
            false => self.later = Some(error),
        }
    }

    /// Whether none of those that were asked will ever do it.
    fn is_in_vain(&self) -> bool {
        self.later.is_none() && self.never.is_some()
    }

    /// When it makes sense to ask again, where the last one said so.
    fn after(&self) -> Duration {
        debug_assert!(self.later.as_ref().is_none_or(|error| !error.is_here_alone()), "that one never will");
        self.later.as_ref().and_then(Error::retry_after).unwrap_or_default()
    }

    /// The end of it: that it can't be done only where all were asked and none can.
    fn into_error(self, were_all_asked: bool) -> Error {
        debug_assert!(self.never.as_ref().is_none_or(Error::is_here_alone), "others may do what this one never will");
        match (self.later, self.never) {
            (Some(later), _) => later,
            (None, Some(never)) if were_all_asked => never,
            (None, Some(never)) => Error::retry(never.message()),
            (None, None) => Error::retry("no worker is there to ask: see `forebay status`"),
        }
    }
}

/// What one worker gets of the time that is left: one that hangs must leave some for the others.
fn patience(left: Duration, is_last: bool) -> Duration {
    if is_last { left } else { left / 2 }
}

/// A call under way.
pub(crate) struct Call<'a> {
    shards: &'a Shards,
    shard: usize,
    worker: WorkerId,
    began: Instant,
    pub(crate) ended: Ended,
}

impl<'a> Call<'a> {
    pub(crate) fn begin(shards: &'a Shards, shard: usize, worker: WorkerId) -> Self {
        shards.workers.lock().begin(shard, worker);
        Self { shards, shard, worker, began: forebay_runtime::now(), ended: Ended::GivenUp }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut workers = self.shards.workers.lock();
        workers.end(self.shard, self.worker, self.began.elapsed(), self.ended, forebay_runtime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_hang_leave_time_for_the_last_one() {
        let (mut left, all) = (Duration::from_secs(60), 3);
        for place in 1..all {
            left -= patience(left, place == all);
        }
        assert_eq!(patience(left, true), Duration::from_secs(15));
    }

    #[test]
    fn it_can_t_be_done_where_none_of_the_workers_can_alone() {
        let no_room = || Error::invalid("no room").here_alone();
        assert!(!is_final(&no_room()) && is_final(&Error::invalid("no such column")));
        let said = |errors: &[Error], were_all_asked| {
            let mut failed = Failed::default();
            errors.iter().for_each(|error| failed.add(error.clone()));
            (failed.is_in_vain(), failed.into_error(were_all_asked).kind())
        };
        assert_eq!(said(&[no_room(), no_room()], true), (true, ErrorKind::Invalid));
        assert_eq!(said(&[no_room()], false), (true, ErrorKind::Retry), "the others have not said it");
        for away in [[no_room(), Error::retry("away")], [Error::retry("away"), no_room()]] {
            assert_eq!(said(&away, true), (false, ErrorKind::Retry), "one of them may, later");
        }
        assert_eq!(said(&[], true), (false, ErrorKind::Retry));
    }

    #[test]
    fn it_is_asked_again_when_a_worker_said_so() {
        let mut failed = Failed::default();
        assert_eq!(failed.after(), Duration::ZERO);
        failed.add(Error::retry("many wait").after(Duration::from_millis(300)));
        assert_eq!(failed.after(), Duration::from_millis(300));
        failed.add(Error::retry("away"));
        assert_eq!(failed.after(), Duration::ZERO, "that one may be back at once");
    }

    #[test]
    fn who_has_no_room_for_a_shard_is_not_away_for_others() {
        assert_eq!(ended(&Error::invalid("no room").here_alone()), Ended::Unable);
        let others = [Error::retry("who knows").here_alone(), Error::invalid("no"), Error::retry("away")];
        assert_eq!(others.map(|error| ended(&error)), [Ended::GivenUp, Ended::GivenUp, Ended::Failed]);
        let after = Duration::from_millis(300);
        assert_eq!(ended(&Error::retry("many wait").after(after)), Ended::Busy(after));
    }
}
