use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use forebay_rights::{Need, Place};
use forebay_transport::{Admission, Credential, Deed, tell, unix_now};
use forebay_types::{Error, Result, ResultExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::metrics::Metrics;

/// How often recorded times are summed up.
const UPKEEP: Duration = Duration::from_secs(5);

/// What an answer of metrics is made of, and to whom it is given.
struct Shown {
    metrics: Metrics,
    /// None for everybody.
    readers: Option<Vec<Arc<Admission>>>,
}

/// `/metrics` for Prometheus and `/healthz` for whoever restarts processes.
pub(crate) struct Http {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Http {
    /// Listens and answers from now on: metrics to those whom one of `readers` knows, or to everybody without.
    pub(crate) async fn start(address: &str, metrics: Metrics, readers: Option<Vec<Arc<Admission>>>) -> Result<Self> {
        let place = || format!("can't listen at {address}; choose another address with --http");
        let listener = TcpListener::bind(address).await.context(place)?;
        let address = listener.local_addr().context(place)?;
        let recorded = metrics.handle.clone();
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route(
                "/metrics",
                get(|State(shown): State<Arc<Shown>>, headers: HeaderMap| async move {
                    if let Some(readers) = &shown.readers
                        && !may_read(readers, &headers)
                    {
                        let refused = Error::denied("no token, or none that may read");
                        tell("unknown", "", &Deed { port: "http", what: "metrics", on: "/metrics".to_string() }, Some(&refused));
                        let how = "send a token that may read as `authorization: Bearer TOKEN`, or set metrics-anonymous\n";
                        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], how).into_response();
                    }
                    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shown.metrics.render()).into_response()
                }),
            )
            .with_state(Arc::new(Shown { metrics, readers }));
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

/// Whether a bearer token is of somebody who may read what belongs to no mount.
fn may_read(readers: &[Arc<Admission>], headers: &HeaderMap) -> bool {
    let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
    let Some((scheme, text)) = header.and_then(|header| header.split_once(' ')) else { return false };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return false;
    }
    let candidates = [Credential::token(text), Credential::owner(text)];
    candidates.iter().flatten().any(|credential| {
        let callers = readers.iter().filter_map(|readers| readers.caller(credential).ok());
        callers.into_iter().any(|caller| caller.may(&Need::read(Place::Cluster), unix_now(), |_| None).is_ok())
    })
}

impl Drop for Http {
    fn drop(&mut self) {
        self.task.abort();
    }
}
