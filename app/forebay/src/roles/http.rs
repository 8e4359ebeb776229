use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use forebay_types::{Result, ResultExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::metrics::Metrics;

/// How often recorded times are summed up.
const UPKEEP: Duration = Duration::from_secs(5);

/// `/metrics` for Prometheus and `/healthz` for whoever restarts processes.
pub(crate) struct Http {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Http {
    /// Listens and answers from now on.
    pub(crate) async fn start(address: &str, metrics: Metrics) -> Result<Self> {
        let place = || format!("can't listen at {address}; choose another address with --http");
        let listener = TcpListener::bind(address).await.context(place)?;
        let address = listener.local_addr().context(place)?;
        let recorded = metrics.handle.clone();
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route(
                "/metrics",
                get(|State(metrics): State<Arc<Metrics>>| async move {
                    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render()).into_response()
                }),
            )
            .with_state(Arc::new(metrics));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(async {
                // Dropping the sender stops it as well.
                let _ = stopped.await;
            });
            // What was recorded gathers until somebody asks for it, or until here.
            let tidy = async {
                let mut tick = tokio::time::interval(UPKEEP);
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
        let _ = tokio::time::timeout(Duration::from_secs(1), &mut self.task).await;
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.task.abort();
    }
}
