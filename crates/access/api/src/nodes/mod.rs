//! `/api/v1/nodes`: what is in a container of temporary data.
//!
//! Owns: who may look, how much at once and how long.
//!
//! Never does: change a node, or hand out what is in one.
//!
//! Start with [`routes`].

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router};
use forebay_client::NodeEntry;
use forebay_rights::needs;
use forebay_runtime::time::{instant, timeout_at};
use forebay_types::{Error, format_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Readers;
use crate::asking::{Asked, OwnCluster, Places, PlacesMax, TIMEOUT_PATTERN, Timeout};
use crate::describe::{Content, Described, Routes, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

/// Nodes of an answer where a request does not say how many, and at most.
const NODES: u32 = 1000;
const NODES_MAX: u32 = 10_000;
/// Requests at a time.
const PLACES: PlacesMax = PlacesMax { all: 64, of_one: 16 };

/// What stands behind the `?`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodesAsked {
    /// The container.
    #[serde(default = "root")]
    #[schemars(extend("pattern" = "^/tmp(/|$)"), example = &"/tmp")]
    path: String,
    /// Nodes at most. Where there are more, go on with `after` and the last name.
    #[serde(default = "nodes_of_one")]
    #[schemars(range(min = 1, max = NODES_MAX), example = 10)]
    limit: u32,
    /// The name after which they begin.
    #[schemars(example = &"job7")]
    after: Option<String>,
    /// How long the answer may take, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

fn root() -> String {
    "/tmp".to_string()
}

fn nodes_of_one() -> u32 {
    NODES
}

/// Nodes of a container.
#[derive(JsonSchema, Serialize)]
struct Nodes {
    /// By their names, in the order of bytes.
    nodes: Vec<Node>,
    /// There are no more after these.
    is_whole: bool,
}

/// A temporary node.
#[derive(JsonSchema, Serialize)]
struct Node {
    /// Its name in its container.
    name: String,
    /// `file`, `key-value`, `table`, `directory` or `bag`.
    #[serde(rename = "type")]
    kind: String,
    /// Bytes of a file or value; 0 of a container.
    bytes: u64,
}

impl From<NodeEntry> for Node {
    fn from(NodeEntry { name, kind, bytes }: NodeEntry) -> Self {
        Self { name, kind: kind.as_str().to_string(), bytes }
    }
}

/// What all requests share.
struct Door {
    readers: Readers,
    places: Arc<Places>,
    cluster: Arc<OwnCluster>,
}

/// The path, for `readers` that may read temporary data, which a client of the process's own cluster lists.
pub(crate) fn routes(cluster: Arc<OwnCluster>, readers: Readers) -> (Router, Vec<Described>) {
    let (about, answer) = ("What is in a container of temporary data.", "Its nodes, without what is in them.");
    let path = Described::new(Verb::Get, "/api/v1/nodes", about, Content::json::<Nodes>(answer))
        .asked_by::<NodesAsked>()
        .refused_with(&[400, 404, 409, 429, 500, 503, 504]);
    let (router, described) = Routes::new().with(path, nodes).into_parts();
    let door = Door { readers, places: Places::new(PLACES), cluster };
    (router.with_state(Arc::new(door)), described)
}

async fn nodes(
    State(door): State<Arc<Door>>,
    sender: Sender,
    asked: Result<Asked<NodesAsked>, Refusal>,
) -> Result<Json<Nodes>, Refusal> {
    let who = door.readers.check(&sender, &needs::temporary(), "nodes", "/api/v1/nodes")?;
    let Asked(asked) = asked?;
    if !(1..=NODES_MAX).contains(&asked.limit) {
        return Err(Refusal::invalid(format!("limit is a number from 1 to {NODES_MAX}: go on with `after` and the last name")));
    }
    let _place = door.places.take(&who.to_string())?;
    let timeout = asked.timeout.unwrap_or_default().duration();
    let listed = async {
        let listed = door.cluster.client().await?.nodes().list(&asked.path, asked.after.as_deref(), asked.limit).await;
        listed.map_err(Error::from)
    };
    let listed = timeout_at(instant() + timeout, listed).await.map_err(|_| {
        let (path, timeout) = (&asked.path, format_duration(timeout));
        let message = format!("{path}: not answered within {timeout}: ask for less, or with a longer `timeout`");
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, Error::retry(message))
    })?;
    let (entries, is_whole) = listed?;
    debug_assert!(entries.len() <= asked.limit as usize, "an answer has an end");
    Ok(Json(Nodes { nodes: entries.into_iter().map(Node::from).collect(), is_whole }))
}
