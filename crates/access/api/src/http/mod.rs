//! The HTTP port that every role has.

mod entering;
mod last_word;
mod quiet;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use forebay_client::ClientSettings;
use forebay_protocol::{ExecutorNumbers, SchedulerNumbers, StorageCounters};
use forebay_rights::needs;
use forebay_transport::{TlsSettings, caught_future};
use forebay_types::{Error, MountName, Result, WorkerId};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use tower_service::Service;

use crate::metrics::Numbers;
use crate::refusal::Refusal;
use crate::visitor::{Sender, Visitor};
use crate::{Cluster, Doors, Loads, Readers, Readiness, Scheduler, Statements, Workshop, router};

use entering::Entering;

/// Where it listens, and what it shows to whom.
pub struct HttpSettings {
    /// HOST:PORT.
    pub address: String,
    /// With a certificate it speaks HTTPS; with a CA of clients as well, all but `/healthz` and `/readyz` is for those that show one.
    pub tls: Option<TlsSettings>,
    /// Who may read metrics and `/api/v1`.
    pub readers: Readers,
    /// Metrics are for everybody.
    pub metrics_are_open: bool,
    /// What `/readyz` says.
    pub readiness: Readiness,
    /// Connections that are served at a time. Who comes beyond them is told so, but for who asks for `/healthz`.
    pub connections_max: usize,
}

/// What answers are made of.
struct Shown {
    readers: Readers,
    metrics_are_open: bool,
    readiness: Readiness,
    numbers: Numbers,
    /// `/api/v1` and the console, when the coordinator has started.
    api: OnceLock<Router>,
    /// What of that comes later.
    doors: Doors,
}

/// `/metrics` for Prometheus, `/healthz` for whoever restarts processes, `/readyz` for whoever sends them work, and beside a
/// coordinator the console and `/api/v1`. It is there before the roles are; what each shows comes when it has started.
pub struct Http {
    address: SocketAddr,
    https: bool,
    shown: Arc<Shown>,
    stop: Option<oneshot::Sender<()>>,
    task: AbortOnDropHandle<()>,
}

impl Http {
    /// Listens and answers from now on. An error names the address.
    pub async fn start(settings: HttpSettings) -> Result<Self> {
        let HttpSettings { address, tls, readers, metrics_are_open, readiness, connections_max } = settings;
        let place = || format!("can't listen at {address}; choose another address with --http");
        let tls = tls.filter(|tls| tls.cert.is_some());
        let (https, wants_certificates) = (tls.is_some(), tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()));
        let (listener, address) = Entering::bind(&address, tls.as_ref(), connections_max, place).await?;
        let (numbers, api, doors) = (Numbers::default(), OnceLock::new(), Doors::default());
        let shown = Arc::new(Shown { readers, metrics_are_open, readiness, numbers, api, doors });
        let routes = match wants_certificates {
            true => routes(Arc::clone(&shown)).layer(middleware::from_fn(with_certificate)),
            false => routes(Arc::clone(&shown)),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = AbortOnDropHandle::new(forebay_runtime::spawn(async move {
            let routes = routes.into_make_service_with_connect_info::<Visitor>();
            let served = axum::serve(listener, routes).with_graceful_shutdown(async {
                // Dropping the sender stops it as well.
                let _ = stopped.await;
            });
            if let Err(error) = served.await {
                tracing::warn!(%error, "http stopped");
            }
        }));
        Ok(Self { address, https, shown, stop: Some(stop), task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL has it, with `/` at its end.
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.https { "https" } else { "http" }, self.address)
    }

    /// The coordinator of this process has started: its numbers, `/api/v1` and the console are there from now on.
    /// Questions to datasets go to workers as `client` says.
    pub fn show_cluster(&self, cluster: Arc<dyn Cluster>, client: ClientSettings) {
        self.shown.numbers.of_cluster(Arc::clone(&cluster));
        // There is one coordinator in a process at most.
        let api = router(cluster, client, self.shown.readers.clone(), self.shown.doors.clone());
        let _ = self.shown.api.set(api);
    }

    /// The scheduler of the coordinator's cluster can be asked from now on. Nothing happens the second time.
    pub fn show_scheduler(&self, scheduler: Arc<dyn Scheduler>) {
        let _ = self.shown.doors.scheduler.set(scheduler);
    }

    /// Data is brought into the tiers from here from now on. Nothing happens the second time.
    pub fn show_loads(&self, loads: Arc<dyn Loads>) {
        let _ = self.shown.doors.loads.set(loads);
    }

    /// Statements run here from now on. Nothing happens the second time.
    pub fn show_statements(&self, statements: Arc<dyn Statements>) {
        let _ = self.shown.doors.statements.set(statements);
    }

    /// Datasets of shards are refreshed and given other shards here from now on. Nothing happens the second time.
    pub fn show_workshop(&self, workshop: Workshop) {
        let _ = self.shown.doors.workshop.set(workshop);
    }

    /// The workers of this process have started: `storage` says what each asked of the shared storage of its mounts.
    pub fn show_storage(&self, storage: impl Fn() -> Vec<(WorkerId, Vec<(MountName, StorageCounters)>)> + Send + Sync + 'static) {
        self.shown.numbers.of_storage(Box::new(storage));
    }

    /// The scheduler of this process has started: `numbers` says what it has come to.
    pub fn show_scheduling(&self, numbers: impl Fn() -> SchedulerNumbers + Send + Sync + 'static) {
        self.shown.numbers.of_scheduler(Box::new(numbers));
    }

    /// The executors of this process have started: `numbers` says what they have come to.
    pub fn show_executors(&self, numbers: impl Fn() -> ExecutorNumbers + Send + Sync + 'static) {
        self.shown.numbers.of_executors(Box::new(numbers));
    }

    /// Answers what was asked already, for at most a second, then ends.
    pub async fn shutdown(mut self) {
        drop(self.stop.take());
        // Connections that are kept open and silent don't hold the shutdown up.
        let _ = forebay_runtime::time::timeout(Duration::from_secs(1), &mut self.task).await;
    }
}

fn routes(shown: Arc<Shown>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { ([(CACHE_CONTROL, "no-store")], "ok\n") }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(of_cluster)
        .with_state(shown)
        .layer(middleware::from_fn(whatever_happens))
}

/// Lets in who has shown a certificate, and everybody to what is open: whoever restarts processes has none.
async fn with_certificate(from: ConnectInfo<Visitor>, request: Request, next: Next) -> Response {
    if from.0.has_shown_certificate || matches!(request.uri().path(), "/healthz" | "/readyz") {
        return next.run(request).await;
    }
    Refusal::from(Error::denied("show a certificate of a client: this port wants one (tls-client-ca)")).into_response()
}

/// Answers a request that fails by a defect, and nothing else of its connection knows of it. What depends on who asks is kept by nobody on
/// its way.
async fn whatever_happens(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let from = request.extensions().get::<ConnectInfo<Visitor>>().map(|from| from.0.address.to_string()).unwrap_or_default();
    let mut answer = match caught_future(next.run(request)).await {
        Some(answer) => answer,
        None => {
            tracing::error!(from, %method, path, "a request failed by a defect");
            Refusal::from(Error::internal("the request failed by a defect: the log of the process has more")).into_response()
        }
    };
    if needs::http(&path).is_some() {
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    answer
}

async fn ready(State(shown): State<Arc<Shown>>) -> Response {
    let (status, line) = match shown.readiness.look() {
        Ok(()) => (StatusCode::OK, "ready\n".to_string()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason + "\n"),
    };
    (status, [(CACHE_CONTROL, "no-store")], line).into_response()
}

async fn metrics(State(shown): State<Arc<Shown>>, sender: Sender) -> Response {
    if !shown.metrics_are_open
        && let Err(refusal) = shown.readers.let_in(&sender, "metrics", "/metrics")
    {
        let how = format!("{}, or set metrics-anonymous\n", refusal.error().message());
        let mut answer = (refusal.status(), how).into_response();
        if refusal.status() == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        return answer;
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shown.numbers.text()).into_response()
}

async fn of_cluster(State(shown): State<Arc<Shown>>, request: Request) -> Response {
    let why = match shown.api.get() {
        Some(api) => return api.clone().call(request).await.into_response(),
        None if shown.readiness.has("coordinator") => Error::retry("the coordinator is being started: see /readyz"),
        None => Error::not_found("there is no coordinator in this process: ask that one's port"),
    };
    let refusal = Refusal::from(why);
    match request.uri().path().starts_with("/api/") {
        true => refusal.into_response(),
        false => (refusal.status(), format!("{}\n", refusal.error().message())).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use forebay_protocol::{ClusterStatus, Filled, PlacementStatus};
    use futures::{FutureExt, StreamExt};

    use super::*;

    struct Empty;

    impl Cluster for Empty {
        fn status(&self) -> ClusterStatus {
            ClusterStatus { epoch: 7, ..ClusterStatus::default() }
        }

        fn placement(&self, _: usize) -> PlacementStatus {
            PlacementStatus::default()
        }

        fn filled(&self, _: usize) -> Filled {
            Filled::default()
        }

        fn tokens(&self) -> Vec<crate::Token> {
            Vec::new()
        }
    }

    fn shown(metrics_are_open: bool, role: &'static str) -> Arc<Shown> {
        let (numbers, api, doors) = (Numbers::default(), OnceLock::new(), Doors::default());
        let (readers, readiness) = (Readers::new(Vec::new()), Readiness::of([role]));
        Arc::new(Shown { readers, metrics_are_open, readiness, numbers, api, doors })
    }

    /// Nobody is asked.
    fn nowhere() -> ClientSettings {
        ClientSettings::new(forebay_transport::Address::Tcp("127.0.0.1:1".into()))
    }

    fn ask(shown: &Arc<Shown>, path: &str) -> (u16, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = routes(Arc::clone(shown)).call(request).now_or_never().expect("nothing is waited for").unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().into_data_stream().map(Result::unwrap).collect::<Vec<_>>();
        let body = body.now_or_never().expect("all of it is there").concat();
        (status, String::from_utf8(body).unwrap())
    }

    #[test]
    fn health_and_readiness_are_open_and_metrics_are_not() {
        let shown = shown(false, "worker");
        assert_eq!(ask(&shown, "/healthz"), (200, "ok\n".to_string()));
        assert_eq!(ask(&shown, "/readyz"), (503, "worker: it is being started\n".to_string()));
        shown.readiness.started("worker", || Ok(()));
        assert_eq!(ask(&shown, "/readyz"), (200, "ready\n".to_string()));
        assert_eq!(ask(&shown, "/metrics").0, 401);
        let (status, text) = ask(&shown, "/api/v1/status");
        assert!(status == 404 && text.starts_with("{\"error\":\"not found\",\"message\":\"there is no coordinator"), "{text}");
        assert_eq!(ask(&shown, "/"), (404, "there is no coordinator in this process: ask that one's port\n".to_string()));
    }

    #[test]
    fn what_a_coordinator_shows_comes_when_it_has_started() {
        let shown = shown(true, "coordinator");
        assert_eq!(ask(&shown, "/api/v1/status").0, 503);
        shown.numbers.of_cluster(Arc::new(Empty));
        let _ = shown.api.set(router(Arc::new(Empty), nowhere(), shown.readers.clone(), shown.doors.clone()));
        assert_eq!(ask(&shown, "/api/v1/status").0, 401);
        let (status, text) = ask(&shown, "/metrics");
        assert_eq!(status, 200);
        let version = env!("CARGO_PKG_VERSION");
        for line in [
            &format!("forebay_build_info{{version=\"{version}\"}} 1"),
            "forebay_coordinator_epoch 7",
            "forebay_coordinator_plans_total 0",
        ] {
            assert!(text.lines().any(|given| given == line), "{line} is not in {text}");
        }
    }
}
