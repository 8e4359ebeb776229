//! A request about a dataset, let in.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use forebay_rights::needs;
use forebay_runtime::time::Instant;
use forebay_shards::Shards;
use forebay_types::{Error, ForebayPath, Result};

use super::Datasets;
use super::asked::Timeout;
use crate::asking::Place;
use crate::refusal::Refusal;

/// The caller may read the mount that a dataset lies in. Only [`Visit::enter`] makes one.
pub(super) struct MayRead {
    dataset: ForebayPath,
}

impl MayRead {
    pub(super) fn dataset(&self) -> &ForebayPath {
        &self.dataset
    }
}

/// A request that is under way: what it may read, and until when it is answered.
pub(super) struct Visit {
    datasets: Arc<Datasets>,
    may: MayRead,
    timeout: Duration,
    deadline: Instant,
    _place: Place,
}

impl Visit {
    /// Lets a request in: 401 or 403 for who may not read the mount, 429 or 503 where too many are under way.
    pub(super) fn enter(
        datasets: &Arc<Datasets>,
        headers: &HeaderMap,
        what: &'static str,
        dataset: ForebayPath,
        timeout: Option<Timeout>,
    ) -> Result<Self, Refusal> {
        let who = datasets.readers.check(headers, &needs::dataset(dataset.mount()), what, &dataset.to_string())?;
        let place = datasets.places.take(&who.to_string())?;
        let timeout = timeout.unwrap_or_default().duration();
        let deadline = forebay_runtime::time::instant() + timeout;
        Ok(Self { datasets: Arc::clone(datasets), may: MayRead { dataset }, timeout, deadline, _place: place })
    }

    /// Until when it is answered.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The dataset. What it is asked takes no longer than the request has left.
    pub(super) async fn open(&self) -> Result<Shards, Refusal> {
        let shards = self.within(self.datasets.opened.open(&self.may)).await?;
        let left = self.deadline.saturating_duration_since(forebay_runtime::time::instant());
        Ok(shards.with_patience(left))
    }

    /// Work on the answer, as long as there is time for it; 504 after that.
    pub(super) async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T, Refusal> {
        match forebay_runtime::time::timeout_at(self.deadline, work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                self.datasets.opened.failed(&self.may, &error);
                Err(error.into())
            }
            Err(_) => Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, self.late())),
        }
    }

    /// What is said when there is no time left.
    pub(super) fn late(&self) -> Error {
        let (dataset, timeout) = (&self.may.dataset, forebay_types::format_duration(self.timeout));
        Error::retry(format!("{dataset}: not answered within {timeout}: ask for less at once, or with a longer `timeout`"))
    }
}
