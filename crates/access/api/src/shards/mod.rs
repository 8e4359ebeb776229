//! Datasets of shards over HTTP: what `forebay shard get`, `search`, `count`, `batch` and `status` print with `--json`, changes of records,
//! orders of operators, refreshes and other numbers of shards.
//!
//! Owns: who may ask or change which dataset, how much and how long; the datasets that stay open between requests; and what is being made of
//! them in this process.
//!
//! Never does: answer or change anything itself. The workers do, and `forebay-shards` asks them.
//!
//! Start with [`Come`](visit::Come), as which every request comes: it is let in to read, to change records, or to order something.

mod asked;
mod batch;
mod body;
mod change;
mod condition;
mod forgo;
mod get;
mod making;
mod opened;
mod orders;
mod record;
mod search;
mod status;
mod visit;

use std::sync::{Arc, OnceLock};

use axum::Router;
use schemars::{JsonSchema, json_schema};

use crate::Readers;
use crate::asking::{OwnCluster, Places, PlacesMax, lines};
use crate::describe::{Content, Described, Routes, Verb};
use making::Works;
use opened::Opened;

pub use making::Workshop;
pub use search::Count;

/// Requests about datasets at a time.
const PLACES: PlacesMax = PlacesMax { all: 256, of_one: 64 };

/// What all requests about datasets share.
pub(crate) struct Datasets {
    readers: Readers,
    opened: Opened,
    works: Works,
    places: Arc<Places>,
}

/// The paths of datasets: for `readers`, each of the mounts that they may read, answered by the workers of a cluster. What they are made
/// anew with may come later.
pub(crate) fn routes(cluster: Arc<OwnCluster>, readers: Readers, workshop: Arc<OnceLock<Workshop>>) -> (Router, Vec<Described>) {
    let works = Works::new(workshop);
    let datasets = Datasets { readers, opened: Opened::new(cluster), works, places: Places::new(PLACES) };
    let routes = Routes::new()
        .with(get::PATH, get::get)
        .with(search::SEARCH, search::search)
        .with(search::SCAN, search::scan)
        .with(search::COUNT, search::count)
        .with(batch::PATH, batch::batch)
        .with(record::READ, record::read)
        .with(record::PUT, record::put)
        .with(record::DELETE, record::delete)
        .with(change::PATH, change::change)
        .with(status::PATH, status::status)
        .with(orders::PIN, orders::pin)
        .with(orders::UNPIN, orders::unpin)
        .with(orders::FREEZE, orders::freeze)
        .with(orders::THAW, orders::thaw)
        .with(orders::ACK, orders::ack)
        .with(forgo::PATH, forgo::forgo)
        .with(making::REFRESHED, making::refreshed)
        .with(making::REFRESH, making::refresh)
        .with(making::EVERY, making::every)
        .with(making::RESHARDED, making::resharded)
        .with(making::RESHARD, making::reshard);
    let (router, described) = routes.into_parts();
    (router.with_state(Arc::new(datasets)), described)
}

/// What asking a dataset by parameters is refused with.
const REFUSALS: &[u16] = &[400, 404, 409, 429, 500, 503, 504];

/// The same where a body comes with it.
const REFUSALS_OF_BODIES: &[u16] = &[400, 404, 408, 409, 413, 429, 500, 503, 504];

/// A path that asks a dataset by parameters.
const fn described<T: JsonSchema>(verb: Verb, path: &'static str, about: &'static str, answer: Content) -> Described {
    Described::new(verb, path, about, answer).asked_by::<T>().refused_with(REFUSALS)
}

/// A line with a record, or with the columns of it that were asked for.
const RECORDS: Content = Content {
    kind: lines::JSON_LINES,
    about: "JSON lines, an object with columns each.",
    shape: |_| json_schema!({"type": "object", "additionalProperties": true}),
    example: Some("{\"id\": 7, \"name\": \"clerk007\"}\n"),
};
