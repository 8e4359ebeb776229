//! Asking one worker after the other.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::WorkerInfo;
use forebay_runtime::deadline;
use forebay_runtime::time::{Instant, instant};
use forebay_types::{Error, ErrorKind, RouteKey, WorkerId};
use futures::stream::{FuturesUnordered, StreamExt};

use super::Routes;
use super::known::Known;
use crate::connect::{Failure, Link, late};

/// Workers tried for one call at most; past these the cluster has worse trouble than another try would mend.
const TRIES: usize = 3;
/// For so long a call is made again for which workers say that too much waits for shared storage; then another way is looked for.
const BUSY_WITHIN: Duration = Duration::from_secs(60);
/// Once one worker was waited for as long as it may take, all others together have half as long, and this at least: what kept the one mostly
/// keeps them too, storage that hangs say, and somebody waits.
const OTHERS_WITHIN_MIN: Duration = Duration::from_secs(5);

/// Why no worker gave an answer that stands.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// A worker said what no other would say differently: `Conflict`, `NotFound`, `Denied`, `Invalid`.
    Final(Error),
    /// No worker could; another way may. With the last one's error.
    Away(Error),
}

impl NoAnswer {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Final(error) | Self::Away(error) => error,
        }
    }
}

/// Whether a worker's error is the last word.
pub(crate) fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid)
}

/// How often something may be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Of one worker at a time: to ask for it twice is no matter of time alone.
    Singly,
    /// Of a second worker too, while the first says nothing: it only reads.
    Beside,
}

impl Routes {
    /// Asks the workers that are a route's home, whoever holds its bytes, until one gives an answer that stands. For what only reads.
    pub(crate) async fn at_home<T, Fut>(&self, route: RouteKey, ask: impl Fn(Link) -> Fut) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let known = self.view.known_arc();
        let order = self.failures.order(route, &known.workers);
        self.in_order(&known, order, Asked::Beside, ask).await
    }

    /// The same for what changes something.
    pub(crate) async fn at_home_singly<T, Fut>(&self, route: RouteKey, ask: impl Fn(Link) -> Fut) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let known = self.view.known_arc();
        let order = self.failures.order(route, &known.workers);
        self.in_order(&known, order, Asked::Singly, ask).await
    }

    /// Asks the holders of a route for so many bytes until one gives an answer that stands; `first` before all others, whatever their queues are.
    pub(crate) async fn at_holders<T, Fut>(
        &self,
        route: RouteKey,
        bytes: u64,
        first: Option<WorkerId>,
        ask: impl Fn(Link) -> Fut,
    ) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let known = self.view.known_arc();
        let first = first.filter(|first| known.worker(*first).is_some());
        let mut order = self.holders(route, &known, if first.is_some() { 0 } else { bytes }).await;
        if let Some(first) = first {
            order.retain(|worker| *worker != first);
            order.insert(0, first);
        }
        self.in_order(&known, order, Asked::Beside, ask).await
    }

    /// The first answer that stands. Where workers have too much to do, they are asked again when they say so.
    async fn in_order<T, Fut>(
        &self,
        known: &Known,
        order: Vec<WorkerId>,
        how: Asked,
        ask: impl Fn(Link) -> Fut,
    ) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let began = forebay_runtime::now();
        loop {
            let error = match self.once_in_order(known, order.clone(), how, &ask).await {
                Err(NoAnswer::Away(error)) => error,
                answer => return answer,
            };
            let after = error.retry_after().filter(|_| began.elapsed() < BUSY_WITHIN);
            let Some(after) = after else { return Err(NoAnswer::Away(error)) };
            // Not all of them at once.
            let spread = forebay_runtime::random_range(50..150u32);
            forebay_runtime::time::sleep(after * spread / 100).await;
        }
    }

    /// The first answer that stands; from two workers at most at a time.
    async fn once_in_order<T, Fut>(
        &self,
        known: &Known,
        order: Vec<WorkerId>,
        how: Asked,
        ask: impl Fn(Link) -> Fut,
    ) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let (began, mut until) = (instant(), None::<Instant>);
        let mut last = Error::retry("the cluster has no worker");
        let mut left = order.into_iter().take(TRIES).filter_map(|worker| known.worker(worker)).peekable();
        let mut asked = FuturesUnordered::new();
        if how == Asked::Beside {
            self.count_read();
        }
        loop {
            let Some(next) = left.next_if(|_| until.is_none_or(|until| instant() < until)) else {
                let Some(outcome) = asked.next().await else { return Err(NoAnswer::Away(last)) };
                match self.stands(outcome, &mut last) {
                    Some(answer) => return answer,
                    None => continue,
                }
            };
            asked.push(self.attempt(next, until, &ask));
            debug_assert!(asked.len() <= 2, "a read is asked of two workers at most at a time");
            let may_be_beside = how == Asked::Beside && asked.len() == 1 && left.peek().is_some();
            let silent = async { if may_be_beside { self.silent(next).await } else { std::future::pending().await } };
            tokio::select! {
                biased;
                Some(outcome) = asked.next() => {
                    if let Some(answer) = self.stands(outcome, &mut last) {
                        return answer;
                    }
                    until = until.or_else(|| self.others_until(began));
                }
                () = silent => {}
            }
        }
    }

    /// Until when further workers may be waited for, where what began then has waited for one as long as that may take.
    fn others_until(&self, began: Instant) -> Option<Instant> {
        let (waited, patience) = (began.elapsed(), self.connections.read_deadline());
        debug_assert!(!patience.is_zero(), "a worker is waited for some time");
        (waited >= patience).then(|| instant() + (waited / 2).max(OTHERS_WITHIN_MIN.min(patience)))
    }

    /// Asks one worker, until then at most; with its outcome.
    async fn attempt<T, Fut>(
        &self,
        info: &Arc<WorkerInfo>,
        until: Option<Instant>,
        ask: impl Fn(Link) -> Fut,
    ) -> (WorkerId, Result<T, Failure>)
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let _waiting = self.queues.enter(info.id);
        let began = forebay_runtime::now();
        let asked = async {
            match self.connections.link(info).await {
                Ok(link) => ask(link).await,
                Err(error) => Err(Failure::Unreached(error)),
            }
        };
        let asked = async {
            match until {
                Some(until) => deadline::by(until, asked).await.unwrap_or_else(|_| Err(late(info.id, began.elapsed()))),
                None => asked.await,
            }
        };
        let gone = || Err(Failure::Lost(Error::retry(format!("worker {} was lost before it answered", info.id))));
        let outcome = self.unless_lost(info, asked).await.unwrap_or_else(gone);
        if outcome.is_ok() {
            self.late.took(info.id, began.elapsed());
        }
        (info.id, outcome)
    }

    /// What an outcome comes to: an answer, or none, and why is kept.
    fn stands<T>(&self, (worker, outcome): (WorkerId, Result<T, Failure>), last: &mut Error) -> Option<Result<T, NoAnswer>> {
        match outcome {
            Ok(answer) => {
                self.failures.answered(worker);
                return Some(Ok(answer));
            }
            Err(Failure::Answered(error)) if is_final(&error) => return Some(Err(NoAnswer::Final(error))),
            Err(Failure::Answered(error)) => keep(last, error),
            Err(Failure::Unreached(error) | Failure::Lost(error)) => {
                tracing::debug!(%worker, %error, "worker does not answer");
                self.lost(worker);
                keep(last, error);
            }
        }
        None
    }
}

/// The last error is the one to tell, unless a worker has said when to ask again.
fn keep(last: &mut Error, error: Error) {
    if last.retry_after().is_none() || error.retry_after().is_some() {
        *last = error;
    }
}
