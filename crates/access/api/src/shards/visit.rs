//! A request about a dataset, let in.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use forebay_client::Client;
use forebay_rights::{Need, Who, needs};
use forebay_runtime::time::Instant;
use forebay_shard_store::DatasetOrders;
use forebay_shards::Shards;
use forebay_trace::Span;
use forebay_transport::{Deed, is_audited, tell};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use serde::de::DeserializeOwned;

use super::Datasets;
use crate::asking::{Asked, Place, Timeout};
use crate::refusal::Refusal;
use crate::visitor::Sender;

/// A request as it has come.
pub(super) struct Come<T> {
    datasets: Arc<Datasets>,
    sender: Sender,
    asked: Result<Asked<T>, Refusal>,
}

impl<T: DeserializeOwned> FromRequestParts<Arc<Datasets>> for Come<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, datasets: &Arc<Datasets>) -> Result<Self, Infallible> {
        let (datasets, sender) = (Arc::clone(datasets), Sender::of(&parts.headers, &parts.extensions));
        Ok(Self { datasets, sender, asked: Asked::of(&parts.uri) })
    }
}

impl<T> Come<T> {
    /// The request, by the name that the audit log has for it, with its parameters. Who is nobody's hears of that, and not of what is wrong
    /// with them.
    pub(super) fn by_name(self, what: &'static str) -> Result<(Coming, T), Refusal> {
        let Self { datasets, sender, asked } = self;
        let asked = datasets.readers.asked(&sender, what, "/api/v1/shards", asked)?;
        Ok((Coming { datasets, sender, what }, asked))
    }
}

/// A request that was not let in yet.
pub(super) struct Coming {
    datasets: Arc<Datasets>,
    sender: Sender,
    what: &'static str,
}

impl Coming {
    /// Whether who sends it has a right beside the one that it is let in by.
    pub(super) fn may(&self, need: &Need) -> bool {
        self.datasets.readers.may(&self.sender, need)
    }

    /// Lets it in: 401 or 403 for who may not read the mount, 429 or 503 where too many are under way.
    pub(super) fn read(&self, dataset: ForebayPath, timeout: Option<Timeout>) -> Result<Visit, Refusal> {
        let need = needs::dataset(dataset.mount());
        self.enter(dataset, timeout, &need).map(|(_, visit)| visit)
    }

    /// The same for who may write in the mount. The audit log is told of it.
    pub(super) fn change(&self, dataset: ForebayPath, timeout: Option<Timeout>) -> Result<Changing, Refusal> {
        let need = needs::dataset_change(dataset.mount());
        self.enter_to_change(dataset, timeout, &need)
    }

    /// The same for who may administer the mount.
    pub(super) fn administer(&self, dataset: ForebayPath, timeout: Option<Timeout>) -> Result<Administering, Refusal> {
        let need = needs::dataset_orders(dataset.mount());
        self.enter_to_change(dataset, timeout, &need).map(Administering)
    }

    fn enter_to_change(&self, dataset: ForebayPath, timeout: Option<Timeout>, need: &Need) -> Result<Changing, Refusal> {
        let on = dataset.to_string();
        let (who, visit) = self.enter(dataset, timeout, need)?;
        if is_audited() {
            tell(&who, &self.sender.address, &Deed { port: "http", what: self.what, on }, None);
        }
        Ok(Changing { visit })
    }

    fn enter(&self, dataset: ForebayPath, timeout: Option<Timeout>, need: &Need) -> Result<(Who, Visit), Refusal> {
        let Self { datasets, sender, .. } = self;
        let what = self.what;
        let who = datasets.readers.check(sender, need, what, &dataset.to_string())?;
        let place = datasets.places.take(&who.to_string())?;
        let mut span = Span::asked(sender.trace, "http shards");
        span.set("rpc.method", || what);
        span.set("forebay.path", || dataset.to_string());
        let timeout = timeout.unwrap_or_default().duration();
        let deadline = forebay_runtime::time::instant() + timeout;
        let may = MayRead { dataset };
        Ok((who, Visit { datasets: Arc::clone(datasets), may, timeout, deadline, span, _place: place }))
    }
}

/// The caller may read the mount that a dataset lies in. Only [`Coming`] makes one.
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
    /// What all requests about datasets share.
    pub(super) datasets: Arc<Datasets>,
    may: MayRead,
    timeout: Duration,
    /// Until when it is answered.
    pub(super) deadline: Instant,
    /// What is done for it; ends when all of the answer is made.
    span: Span,
    _place: Place,
}

impl Visit {
    pub(super) fn dataset(&self) -> &ForebayPath {
        self.may.dataset()
    }

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

    pub(super) fn late(&self) -> Error {
        let (dataset, timeout) = (&self.may.dataset, forebay_types::format_duration(self.timeout));
        Error::retry(format!("{dataset}: not answered within {timeout}: ask for less at once, or with a longer `timeout`"))
    }
}

/// A request that changes records, let in: who may write reads too. Only [`Coming::change`] makes one.
pub(super) struct Changing {
    visit: Visit,
}

impl Changing {
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

/// A request that orders something of a dataset's replicas, or gives up changes of it, let in: who may administer the mount. Only
/// [`Coming::administer`] makes one.
pub(super) struct Administering(Changing);

impl Administering {
    /// Has the dataset's next manifest say something else, as long as there is time for it; gives the dataset as it is then.
    pub(super) async fn order(&self, change: impl Fn(&mut DatasetOrders) + Send) -> Result<Shards, Refusal> {
        let Visit { datasets, may, .. } = &self.0.visit;
        self.0.make(datasets.opened.order(may, change)).await
    }

    /// Gives up what two workers' disks have lost, who are waited for as long as half of the time that is left; gives the numbers of the shards that
    /// may have lost something.
    pub(super) async fn forgo(&self) -> Result<Vec<usize>, Refusal> {
        let shards = self.0.visit.open().await?;
        let left = self.0.visit.deadline.saturating_duration_since(forebay_runtime::time::instant());
        self.0.make(shards.with_patience(left / 2).forgo()).await
    }

    /// Has the holders bring what they don't have: how many of how many replicas are there, where that is heard in time.
    pub(super) async fn bring(&self, shards: &Shards) -> Option<(usize, usize)> {
        let Visit { deadline, span, .. } = &self.0.visit;
        let left = deadline.saturating_duration_since(forebay_runtime::time::instant());
        let shards = shards.clone().with_patience(left);
        forebay_runtime::time::timeout_at(*deadline, span.around(shards.bring())).await.ok()
    }
}
