//! Asking one worker after the other.

use std::future::Future;

use forebay_types::{Error, ErrorKind, RouteKey, WorkerId};

use super::Routes;
use super::known::Known;
use crate::connect::{Failure, Link};

/// Workers tried for one call at most; past these the cluster has worse trouble than another try would mend.
const TRIES: usize = 3;

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

impl Routes {
    /// Asks the workers that are a route's home, whoever holds its bytes, until one gives an answer that stands.
    pub(crate) async fn at_home<T, Fut>(&self, route: RouteKey, ask: impl FnMut(Link) -> Fut) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let known = self.view.known_arc();
        let order = self.failures.order(route, &known.workers);
        self.in_order(&known, order, ask).await
    }

    /// Asks the holders of a route for so many bytes until one gives an answer that stands; `first` before all others.
    pub(crate) async fn at_holders<T, Fut>(
        &self,
        route: RouteKey,
        bytes: u64,
        first: Option<WorkerId>,
        ask: impl FnMut(Link) -> Fut,
    ) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let known = self.view.known_arc();
        let mut order = self.holders(route, &known, bytes).await;
        if let Some(first) = first.filter(|first| known.worker(*first).is_some()) {
            order.retain(|worker| *worker != first);
            order.insert(0, first);
        }
        self.in_order(&known, order, ask).await
    }

    async fn in_order<T, Fut>(&self, known: &Known, order: Vec<WorkerId>, mut ask: impl FnMut(Link) -> Fut) -> Result<T, NoAnswer>
    where
        Fut: Future<Output = Result<T, Failure>>,
    {
        let mut last = Error::retry("the cluster has no worker");
        for worker in order.into_iter().take(TRIES) {
            let Some(info) = known.worker(worker) else { continue };
            let _waiting = self.queues.enter(worker);
            let outcome = match self.connections.link(info).await {
                Ok(link) => ask(link).await,
                Err(error) => Err(Failure::Unreached(error)),
            };
            match outcome {
                Ok(answer) => {
                    self.failures.answered(worker);
                    return Ok(answer);
                }
                Err(Failure::Answered(error)) if is_final(&error) => return Err(NoAnswer::Final(error)),
                Err(Failure::Answered(error)) => last = error,
                Err(Failure::Unreached(error) | Failure::Lost(error)) => {
                    tracing::debug!(%worker, %error, "worker does not answer");
                    self.lost(worker);
                    last = error;
                }
            }
        }
        Err(NoAnswer::Away(last))
    }
}
