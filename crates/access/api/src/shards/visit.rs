//! A request about a dataset, let in.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use forebay_client::Client;
use forebay_rights::{Need, Who, needs};
use forebay_runtime::time::Instant;
use forebay_shard_store::DatasetOrders;
use forebay_shards::Shards;
use forebay_trace::Span;
use forebay_transport::{Deed, is_audited, tell};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};

use super::Datasets;
use super::asked::Timeout;
use crate::asking::Place;
use crate::refusal::Refusal;
use crate::visitor::Sender;

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
    /// What is done for it; ends when all of the answer is made.
    span: Span,
    _place: Place,
}

impl Visit {
    /// Lets a request in: 401 or 403 for who may not read the mount, 429 or 503 where too many are under way.
    pub(super) fn enter(
        datasets: &Arc<Datasets>,
        sender: &Sender,
        what: &'static str,
        dataset: ForebayPath,
        timeout: Option<Timeout>,
    ) -> Result<Self, Refusal> {
        let who = datasets.readers.check(sender, &needs::dataset(dataset.mount()), what, &dataset.to_string())?;
        Self::begin(datasets, &who, dataset, timeout, spanned(sender, what))
    }

    /// Of one who may read the dataset.
    fn begin(
        datasets: &Arc<Datasets>,
        who: &Who,
        dataset: ForebayPath,
        timeout: Option<Timeout>,
        mut span: Span,
    ) -> Result<Self, Refusal> {
        let place = datasets.places.take(&who.to_string())?;
        span.set("forebay.path", || dataset.to_string());
        let timeout = timeout.unwrap_or_default().duration();
        let deadline = forebay_runtime::time::instant() + timeout;
        Ok(Self { datasets: Arc::clone(datasets), may: MayRead { dataset }, timeout, deadline, span, _place: place })
    }

    /// Until when it is answered.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The dataset's folder.
    pub(super) fn dataset(&self) -> &ForebayPath {
        self.may.dataset()
    }

    /// What all requests about datasets share.
    pub(super) fn datasets(&self) -> &Datasets {
        &self.datasets
    }

    /// What asks for it.
    pub(super) async fn client(&self) -> Result<Client, Refusal> {
        self.within(async { self.datasets.opened.client().await.cloned() }).await
    }

    /// The dataset. What it is asked takes no longer than the request has left.
    pub(super) async fn open(&self) -> Result<Shards, Refusal> {
        let shards = self.within(self.datasets.opened.open(&self.may)).await?;
        let left = self.deadline.saturating_duration_since(forebay_runtime::time::instant());
        Ok(shards.with_patience(left))
    }

    /// Work on the answer, as long as there is time for it; 504 after that.
    pub(super) async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T, Refusal> {
        match forebay_runtime::time::timeout_at(self.deadline, self.span.around(work)).await {
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

/// The span of a request that was let in.
fn spanned(sender: &Sender, what: &'static str) -> Span {
    let mut span = Span::asked(sender.trace(), "http shards");
    span.set("rpc.method", || what);
    span
}

/// A request that changes records, let in: who may write reads too. Only [`Changing::enter`] makes one.
pub(super) struct Changing {
    visit: Visit,
}

impl Changing {
    /// As [`Visit::enter`], for who may write in the mount. The audit log is told of it.
    pub(super) fn enter(
        datasets: &Arc<Datasets>,
        sender: &Sender,
        what: &'static str,
        dataset: ForebayPath,
        timeout: Option<Timeout>,
    ) -> Result<Self, Refusal> {
        let need = needs::dataset_change(dataset.mount());
        Self::let_in(datasets, sender, what, dataset, timeout, &need)
    }

    fn let_in(
        datasets: &Arc<Datasets>,
        sender: &Sender,
        what: &'static str,
        dataset: ForebayPath,
        timeout: Option<Timeout>,
        need: &Need,
    ) -> Result<Self, Refusal> {
        let on = dataset.to_string();
        let who = datasets.readers.check(sender, need, what, &on)?;
        let visit = Visit::begin(datasets, &who, dataset, timeout, spanned(sender, what))?;
        if is_audited() {
            tell(&who, sender.address(), &Deed { port: "http", what, on }, None);
        }
        Ok(Self { visit })
    }

    /// What reads for it.
    pub(super) fn visit(&self) -> &Visit {
        &self.visit
    }

    /// A change, as long as there is time for it: 504 after that, and it may be made all the same.
    pub(super) async fn make<T>(&self, change: impl Future<Output = Result<T>>) -> Result<T, Refusal> {
        let Visit { datasets, may, timeout, deadline, span, .. } = &self.visit;
        match forebay_runtime::time::timeout_at(*deadline, span.around(change)).await {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(error)) => {
                // A condition that does not hold is `Conflict`, and says nothing of the manifest.
                if error.kind() == ErrorKind::NotFound {
                    datasets.opened.failed(may, &error);
                }
                Err(error.into())
            }
            Err(_) => {
                let (dataset, timeout) = (&may.dataset, forebay_types::format_duration(*timeout));
                let what = "the change may be made all the same: look at it, or send it again";
                let late = Error::retry(format!("{dataset}: not answered within {timeout}: {what}"));
                Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, late))
            }
        }
    }

    /// Has the dataset's next manifest say how often it is refreshed; gives the dataset as it is then.
    pub(super) async fn refresh_every(&self, every: Option<Duration>) -> Result<Shards, Refusal> {
        let Visit { datasets, may, .. } = &self.visit;
        self.make(datasets.opened.refresh_every(may, every)).await
    }
}

/// A request that orders something of a dataset's replicas, let in: who may administer the mount. Only [`Administering::enter`] makes one.
pub(super) struct Administering(Changing);

impl Administering {
    /// As [`Changing::enter`], for who may administer the mount.
    pub(super) fn enter(
        datasets: &Arc<Datasets>,
        sender: &Sender,
        what: &'static str,
        dataset: ForebayPath,
        timeout: Option<Timeout>,
    ) -> Result<Self, Refusal> {
        let need = needs::dataset_orders(dataset.mount());
        Changing::let_in(datasets, sender, what, dataset, timeout, &need).map(Self)
    }

    /// Has the dataset's next manifest say something else, as long as there is time for it; gives the dataset as it is then.
    pub(super) async fn order(&self, change: impl Fn(&mut DatasetOrders) + Send) -> Result<Shards, Refusal> {
        let Visit { datasets, may, .. } = &self.0.visit;
        self.0.make(datasets.opened.order(may, change)).await
    }

    /// Has the holders bring what they don't have: how many of how many replicas are there, where that is heard in time.
    pub(super) async fn bring(&self, shards: &Shards) -> Option<(usize, usize)> {
        let Visit { deadline, span, .. } = &self.0.visit;
        let left = deadline.saturating_duration_since(forebay_runtime::time::instant());
        let shards = shards.clone().with_patience(left);
        forebay_runtime::time::timeout_at(*deadline, span.around(shards.bring())).await.ok()
    }
}
