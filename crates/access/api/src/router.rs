//! Paths and what they answer.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use bytes::Bytes;
use forebay_client::ClientSettings;
use forebay_protocol::{ClusterStatus, PlacementStatus};
use forebay_rights::{cut_status, needs};
use forebay_types::Error;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::asking::OwnCluster;
use crate::describe::{Content, Described, Routes, Shape, Verb, document};
use crate::events::Events;
use crate::placement::SEGMENTS_MAX;
use crate::placement::filled::{Filled, PARTS_MAX};
use crate::placement::recent::Recent;
use crate::refusal::Refusal;
use crate::visitor::Sender;
use crate::{Doors, Placement, Price, Readers, Savings, Status, Token, console, jobs, loads, nodes, placement, shards, sql};

/// A cluster, as its coordinator knows it.
pub trait Cluster: Send + Sync + 'static {
    /// Mounts, workers and tiers.
    fn status(&self) -> ClusterStatus;

    /// The most popular segments.
    fn placement(&self, limit: usize) -> PlacementStatus;

    /// What workers hold by mounts and by tables: so many of each at most.
    fn filled(&self, limit: usize) -> forebay_protocol::Filled;

    /// The tokens.
    fn tokens(&self) -> Vec<Token>;
}

#[derive(Clone)]
struct Served {
    cluster: Arc<dyn Cluster>,
    events: Arc<Events>,
    recent: Arc<Recent<PlacementStatus>>,
    filled: Arc<Recent<forebay_protocol::Filled>>,
    readers: Readers,
}

/// `/api/v1` for `readers`, and the console for everybody: it has nothing in it. `client` says how the workers that answer for datasets are
/// reached; what it shows has to be let in to all mounts, as who may ask which is looked at here. `doors` may be opened later.
pub fn router(cluster: Arc<dyn Cluster>, client: ClientSettings, readers: Readers, doors: Doors) -> Router {
    let seen = Arc::clone(&cluster);
    let events = Events::new(move || json!(Status::of(&seen.status())).to_string());
    let looked = Arc::clone(&cluster);
    let recent = Recent::new(placement::LOOKS, move |limit| looked.placement(limit));
    let looked = Arc::clone(&cluster);
    let filled = Recent::new(placement::filled::LOOKS, move |limit| looked.filled(limit));
    let (shown, mut paths) = shown().into_parts();
    let (scheduled, of_jobs) = jobs::routes(doors.scheduler);
    let served = Served { cluster, events, recent, filled, readers: readers.clone() };
    let (saved, of_savings) = saved().into_parts();
    let saved = saved.with_state(served.clone());
    let shown = shown.with_state(served).merge(scheduled);
    let shown = shown.route_layer(middleware::from_fn_with_state(readers.clone(), let_in));
    let own = OwnCluster::new(client);
    let (explained, of_objects) = placement::explain::routes(Arc::clone(&own), readers.clone());
    let (listed, of_nodes) = nodes::routes(Arc::clone(&own), readers.clone());
    let (asked, of_shards) = shards::routes(own, readers.clone(), doors.workshop);
    let (brought, of_loads) = loads::routes(readers.clone(), doors.loads);
    let (run, of_sql) = sql::routes(readers, doors.statements);
    paths.extend(
        of_savings.into_iter().chain(of_jobs).chain(of_objects).chain(of_nodes).chain(of_shards).chain(of_loads).chain(of_sql),
    );
    let api = shown
        .merge(saved)
        .merge(explained)
        .merge(listed)
        .merge(asked)
        .merge(brought)
        .merge(run)
        .merge(description(paths))
        .method_not_allowed_fallback(no_such_method);
    api.route("/api/v1", any(no_such_path)).route("/api/v1/{*path}", any(no_such_path)).merge(console::routes())
}

async fn no_such_path(path: Uri) -> Refusal {
    Error::not_found(format!("{}: there is no such path: /api/v1/openapi.json has them", path.path())).into()
}

async fn no_such_method(method: Method, path: Uri) -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, Error::invalid(format!("{} takes no {method}", path.path())))
}

/// What a cluster says of itself.
fn shown() -> Routes<Served> {
    fn path<T: JsonSchema>(path: &'static str, about: &'static str) -> Described {
        Described::new(Verb::Get, path, about, Content::json::<T>(about))
    }
    fn asked_by<P: JsonSchema, T: JsonSchema>(of: &'static str, about: &'static str) -> Described {
        path::<T>(of, about).asked_by::<P>().refused_with(&[400])
    }
    let status_of = path::<Status<'static>>("/api/v1/status", "Mounts with their counters, pins, workers with their tiers.");
    let segments_of =
        asked_by::<Limit, Placement<'static>>("/api/v1/segments", "The most popular segments, as placement knows them.");
    let about = "What workers hold of the segments that placement knows, by mounts and by tables.";
    let filled_of = asked_by::<Parts, Filled>("/api/v1/filled", about);
    let tokens_of = path::<Tokens>("/api/v1/tokens", "Tokens: what each lets its holder do, where, and how long.");
    let events = Content {
        kind: "text/event-stream",
        about: "Server-sent events of the name `status`, one a second, with what /api/v1/status answers as data.",
        shape: |generator| {
            json_schema!({
                "type": "object",
                "properties": {
                    "event": {"type": "string", "enum": ["status"]},
                    "data": {
                        "type": "string",
                        "contentMediaType": "application/json",
                        "contentSchema": generator.subschema_for::<Status<'static>>(),
                    },
                },
                "required": ["event", "data"],
            })
        },
        example: None,
    };
    let events_of = Described::new(Verb::Get, "/api/v1/events", "The status as it changes.", events).refused_with(&[503]);
    Routes::new()
        .with(status_of, status)
        .with(segments_of, segments)
        .with(filled_of, filled)
        .with(tokens_of, tokens)
        .with(events_of, watch)
}

/// What is said of some mounts to who may read those alone.
fn saved() -> Routes<Served> {
    let about = "What shared storage of the mounts that the token may read was spared, and what it would have cost.";
    let answer = Content::json::<Savings>(about);
    let savings_of = Described::new(Verb::Get, "/api/v1/savings", about, answer).asked_by::<Price>().refused_with(&[400]);
    Routes::new().with(savings_of, savings)
}

/// The description, which describes itself.
fn description(mut paths: Vec<Described>) -> Router {
    let itself = || {
        let shape: Shape = |_| json_schema!({"type": "object"});
        let answer = Content { kind: "application/json", about: "OpenAPI 3.1.", shape, example: None };
        Described { is_open: true, ..Described::new(Verb::Get, "/api/v1/openapi.json", "This description.", answer) }
    };
    paths.push(itself());
    let document: Bytes = document(&paths).to_string().into();
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], document) };
    Routes::new().with(itself(), answer).into_parts().0
}

async fn let_in(State(readers): State<Readers>, request: Request, next: Next) -> Result<Response, Refusal> {
    let sender = Sender::of(request.headers(), request.extensions());
    readers.check(&sender, &needs::shown(), "api", request.uri().path())?;
    Ok(next.run(request).await)
}

async fn status(State(served): State<Served>) -> Response {
    Json(Status::of(&served.cluster.status())).into_response()
}

/// `?limit=`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Limit {
    /// So many at most.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = SEGMENTS_MAX), example = 10)]
    limit: usize,
}

fn hundred() -> usize {
    100
}

async fn segments(State(served): State<Served>, limit: Result<Query<Limit>, QueryRejection>) -> Result<Response, Refusal> {
    match limit {
        Ok(Query(Limit { limit })) if (1..=SEGMENTS_MAX).contains(&limit) => {
            Ok(Json(Placement::of_first(&served.recent.of(limit), limit)).into_response())
        }
        _ => Err(Refusal::invalid("limit is a number from 1 to 10000, and there is no other parameter")),
    }
}

/// `?limit=`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parts {
    /// So many mounts, and so many tables, at most.
    #[serde(default = "few")]
    #[schemars(range(min = 1, max = PARTS_MAX), example = 5)]
    limit: usize,
}

fn few() -> usize {
    25
}

async fn filled(State(served): State<Served>, limit: Result<Query<Parts>, QueryRejection>) -> Result<Json<Filled>, Refusal> {
    match limit {
        Ok(Query(Parts { limit })) if (1..=PARTS_MAX).contains(&limit) => {
            Ok(Json(Filled::of_first(&served.filled.of(limit), limit)))
        }
        _ => Err(Refusal::invalid("limit is a number from 1 to 100, and there is no other parameter")),
    }
}

async fn savings(
    State(served): State<Served>,
    sender: Sender,
    price: Result<Query<Price>, QueryRejection>,
) -> Result<Json<Savings>, Refusal> {
    let who = served.readers.check(&sender, &needs::statement(), "api", "/api/v1/savings")?;
    match price {
        Ok(Query(price)) if price.is_one() => {
            let mut status = served.cluster.status();
            if let Some(grant) = who.grant() {
                cut_status(&mut status, grant);
            }
            Ok(Json(Savings::of(&status, price)))
        }
        _ => Err(Refusal::invalid("per_gb and per_1000_requests are numbers from 0 to 10^12, and there is no other parameter")),
    }
}

/// The tokens of a cluster.
#[derive(JsonSchema, Serialize)]
struct Tokens {
    /// By their ids.
    tokens: Vec<Token>,
}

async fn tokens(State(served): State<Served>, sender: Sender) -> Result<Json<Tokens>, Refusal> {
    served.readers.check(&sender, &needs::tokens(), "api", "/api/v1/tokens")?;
    Ok(Json(Tokens { tokens: served.cluster.tokens() }))
}

async fn watch(State(served): State<Served>, sender: Sender) -> Result<Response, Refusal> {
    let readers = served.readers.clone();
    match served.events.watch(move || readers.may(&sender, &needs::shown())) {
        Some(events) => Ok(events.into_response()),
        None => Err(Error::retry("too many watch already: ask /api/v1/status now and then").into()),
    }
}
