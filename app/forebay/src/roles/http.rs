use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use forebay_api::{Cluster, Readers};
use forebay_client::ClientSettings;
use forebay_coordinator::Coordinator;
use forebay_protocol::{ClusterStatus, PlacementStatus};
use forebay_types::{Result, ResultExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::metrics::Metrics;

/// How often recorded times are summed up.
const UPKEEP: Duration = Duration::from_secs(5);

/// The cluster of this process's coordinator.
struct Known(Arc<Coordinator>);

impl Cluster for Known {
    fn status(&self) -> ClusterStatus {
        self.0.status()
    }

    fn placement(&self, limit: usize) -> PlacementStatus {
        self.0.placement(limit)
    }
}

/// What an answer of metrics is made of, and to whom it is given.
struct Shown {
    metrics: Metrics,
    /// None for everybody.
    readers: Option<Readers>,
}

/// `/metrics` for Prometheus, `/healthz` for whoever restarts processes, and beside a coordinator the console and `/api/v1`.
pub(crate) struct Http {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Http {
    /// Listens and answers from now on, metrics and `/api/v1` to `readers`; metrics to everybody where they are open. Questions
    /// to datasets go to workers as `client` says.
    pub(crate) async fn start(
        address: &str,
        metrics: Metrics,
        client: ClientSettings,
        readers: Readers,
        metrics_are_open: bool,
    ) -> Result<Self> {
        let place = || format!("can't listen at {address}; choose another address with --http");
        let listener = TcpListener::bind(address).await.context(place)?;
        let address = listener.local_addr().context(place)?;
        let recorded = metrics.handle.clone();
        let cluster = metrics.coordinator.clone().map(|coordinator| Arc::new(Known(coordinator)));
        let api = cluster.map(|cluster| forebay_api::router(cluster, client, readers.clone()));
        let readers = (!metrics_are_open).then_some(readers);
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route(
                "/metrics",
                get(|State(shown): State<Arc<Shown>>, headers: HeaderMap| async move {
                    if shown.readers.as_ref().is_some_and(|readers| !readers.let_in(&headers, "metrics", "/metrics")) {
                        let how = "send a token that may read as `authorization: Bearer TOKEN`, or set metrics-anonymous\n";
                        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], how).into_response();
                    }
                    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shown.metrics.render()).into_response()
                }),
            )
            .with_state(Arc::new(Shown { metrics, readers }))
            .merge(api.unwrap_or_default());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = forebay_runtime::spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(async {
                // Dropping the sender stops it as well.
                let _ = stopped.await;
            });
            // What was recorded gathers until somebody asks for it, or until here.
            let tidy = async {
                let mut tick = forebay_runtime::time::interval(UPKEEP);
                loop {
                    tick.tick().await;
                    recorded.run_upkeep();
                }
            };
            tokio::select! {
                served = served.into_future() => if let Err(error) = served {
                    tracing::warn!(%error, "http stopped");
                },
                () = tidy => {}
            }
        });
        Ok(Self { address, stop: Some(stop), task })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers what was asked already, for at most a second, then ends.
    pub(crate) async fn shutdown(mut self) {
        drop(self.stop.take());
        // Connections that are kept open and silent don't hold the shutdown up.
        let _ = forebay_runtime::time::timeout(Duration::from_secs(1), &mut self.task).await;
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.task.abort();
    }
}
