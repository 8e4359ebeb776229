//! Paths and what they answer.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use forebay_protocol::{ClusterStatus, PlacementStatus};
use serde::Deserialize;
use serde_json::json;

use crate::events::Events;
use crate::{Placement, Price, Readers, Savings, Status, console};

/// Segments that one answer has at most.
const SEGMENTS_MAX: usize = 10_000;

/// A cluster, as its coordinator knows it.
pub trait Cluster: Send + Sync + 'static {
    /// Mounts, workers and tiers.
    fn status(&self) -> ClusterStatus;

    /// The most popular segments.
    fn placement(&self, limit: usize) -> PlacementStatus;
}

#[derive(Clone)]
struct Served {
    cluster: Arc<dyn Cluster>,
    events: Arc<Events>,
}

/// `/api/v1` for `readers`, or for everybody without, and the console for everybody: it has nothing in it.
pub fn router(cluster: Arc<dyn Cluster>, readers: Option<Readers>) -> Router {
    let seen = Arc::clone(&cluster);
    let events = Events::new(move || json!(Status::of(&seen.status())).to_string());
    let api = Router::new()
        .route("/api/v1/status", get(status))
        .route("/api/v1/segments", get(segments))
        .route("/api/v1/savings", get(savings))
        .route("/api/v1/events", get(watch))
        .route_layer(middleware::from_fn_with_state(readers, let_in))
        .with_state(Served { cluster, events });
    api.merge(console::routes())
}

async fn let_in(State(readers): State<Option<Readers>>, request: Request, next: Next) -> Response {
    let is_let_in = readers.is_none_or(|readers| readers.let_in(request.headers(), "api", request.uri().path()));
    if is_let_in { next.run(request).await } else { refused() }
}

fn refused() -> Response {
    let how = "send a token that may read, as `authorization: Bearer TOKEN`: make one with `forebay token add NAME --read`";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], Json(json!({"error": "denied", "message": how}))).into_response()
}

fn invalid(message: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid", "message": message}))).into_response()
}

async fn status(State(served): State<Served>) -> Response {
    Json(Status::of(&served.cluster.status())).into_response()
}

/// `?limit=`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    #[serde(default = "hundred")]
    limit: usize,
}

fn hundred() -> usize {
    100
}

async fn segments(State(served): State<Served>, limit: Result<Query<Limit>, QueryRejection>) -> Response {
    match limit {
        Ok(Query(Limit { limit })) if (1..=SEGMENTS_MAX).contains(&limit) => {
            Json(Placement::of(&served.cluster.placement(limit))).into_response()
        }
        _ => invalid("limit is a number from 1 to 10000, and there is no other parameter"),
    }
}

async fn savings(State(served): State<Served>, price: Result<Query<Price>, QueryRejection>) -> Response {
    match price {
        Ok(Query(price)) if price.is_one() => Json(Savings::of(&served.cluster.status(), price)).into_response(),
        _ => invalid("per_gb and per_1000_requests are numbers from 0 on, and there is no other parameter"),
    }
}

async fn watch(State(served): State<Served>) -> Response {
    match served.events.watch() {
        Some(events) => events.into_response(),
        None => {
            let message = "too many watch already: ask /api/v1/status now and then";
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"error": "retry", "message": message}))).into_response()
        }
    }
}
