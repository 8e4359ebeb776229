//! `/api/v1/explain`: where an object is, why, and what reading it would cost now.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router};
use forebay_client::{Client, SegmentPlace};
use forebay_protocol::{ClusterView, Held};
use forebay_rights::needs;
use forebay_runtime::time::{instant, timeout_at};
use forebay_types::{Error, ForebayPath, HotForm, Result, WorkerId, format_duration, segment_count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Readers;
use crate::asking::{Asked, OwnCluster, PATH_PATTERN, Places, PlacesMax, TIMEOUT_PATTERN, Timeout, from_text};
use crate::describe::{Content, Described, Routes, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;

const PATH: &str = "/api/v1/explain";
/// Requests at a time: each asks all workers.
const PLACES: PlacesMax = PlacesMax { all: 64, of_one: 16 };
/// Segments of an object that is explained over HTTP: all of them are in the answer, and in this process's memory until it is sent.
const SEGMENTS_MAX: u32 = 10_000;

/// Where an object is, and why.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Explained {
    /// Its path.
    pub path: String,
    /// All of its bytes.
    pub bytes: u64,
    /// The version that an open gives now.
    pub version: String,
    /// The URL that its mount stands for.
    pub storage: String,
    /// When shared storage is asked whether it is still this version: `always`, `immutable`, or `ttl:` and a duration.
    pub validate: String,
    /// The mount's bound.
    pub bandwidth_bytes_per_sec: Option<u64>,
    /// Columns that are read often are kept decoded as well.
    pub hot_form: bool,
    /// In their order.
    pub segments: Vec<ExplainedSegment>,
    /// Of each segment what the worker lacks that has most of it.
    pub missing_bytes: u64,
    /// How long these take by the bound.
    pub missing_secs: Option<f64>,
}

/// Where a segment is, and why.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ExplainedSegment {
    /// Its place in the object.
    pub segment: u32,
    /// Its bytes.
    pub bytes: u64,
    /// What says who is asked for it: the routing `table`, since it is read much, or `hashing`.
    #[schemars(extend("enum" = ["table", "hashing"]))]
    pub routed_by: &'static str,
    /// Who is asked for it; nobody where there is no worker, and clients read shared storage.
    pub asked: Vec<AskedWorker>,
    /// Who has some of it.
    pub held: Vec<HeldThere>,
}

/// A worker that a segment is asked of.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AskedWorker {
    /// Its address.
    pub worker: String,
    /// The part of the reads that goes there.
    pub percent: u64,
}

/// What a worker has of a segment.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct HeldThere {
    /// Its address.
    pub worker: String,
    /// Bytes that it has.
    pub bytes: u64,
    /// Of these, in memory.
    pub dram_bytes: u64,
    /// And on disk; some may be in both.
    pub disk_bytes: u64,
    /// They stay: a pin says so.
    pub kept: bool,
}

impl Explained {
    /// What a client knows of an object, and hears of workers. `NotFound` when there is none.
    pub async fn of(client: &Client, path: &ForebayPath) -> Result<Self> {
        Self::of_at_most(client, path, u32::MAX).await
    }

    /// The same; `Invalid` for an object of more segments than these.
    async fn of_at_most(client: &Client, path: &ForebayPath, segments_max: u32) -> Result<Self> {
        let info = client.open(path).await?;
        check_segments(path, info.version.size, segments_max)?;
        let (mount, places) = (client.mount(path.mount()).await?, client.segment_places(&info.version).await?);
        let view = client.view();
        let missing_bytes = places.iter().map(missing_of).sum();
        let bandwidth = mount.options.bandwidth.map(|rate| rate.bytes_per_sec());
        Ok(Self {
            path: path.to_string(),
            bytes: info.version.size,
            version: info.version.tag.to_string(),
            storage: mount.url.clone(),
            validate: mount.options.validate.to_string(),
            bandwidth_bytes_per_sec: bandwidth,
            hot_form: mount.options.hot_form == HotForm::Table,
            segments: places.into_iter().map(|place| segment(&view, place)).collect(),
            missing_bytes,
            missing_secs: bandwidth.filter(|rate| *rate > 0).map(|rate| missing_bytes as f64 / rate as f64),
        })
    }
}

fn check_segments(path: &ForebayPath, bytes: u64, most: u32) -> Result<()> {
    match segment_count(bytes) {
        segments if segments <= most => Ok(()),
        segments => Err(Error::invalid(format!(
            "{path}: it has {segments} segments, and one of {most} at most is explained here: ask by `forebay explain {path}`"
        ))),
    }
}

fn missing_of(place: &SegmentPlace) -> u64 {
    let most = place.held.iter().map(|(_, held)| held.bytes).max().unwrap_or(0);
    place.bytes.saturating_sub(most)
}

fn segment(view: &ClusterView, place: SegmentPlace) -> ExplainedSegment {
    let name = |id: WorkerId| {
        let worker = view.workers.iter().find(|worker| worker.id == id);
        worker.map_or_else(|| id.to_string(), |worker| worker.address.clone())
    };
    let (routed_by, asked) = match place.routed.is_empty() {
        true => ("hashing", place.hashed.into_iter().map(|worker| (worker, 100)).collect()),
        false => ("table", place.routed),
    };
    let there = |(worker, held): (WorkerId, Held)| HeldThere {
        worker: name(worker),
        bytes: held.bytes,
        dram_bytes: held.dram_bytes,
        disk_bytes: held.disk_bytes,
        kept: held.keep,
    };
    ExplainedSegment {
        segment: place.index,
        bytes: place.bytes,
        routed_by,
        asked: asked.into_iter().map(|(worker, percent)| AskedWorker { worker: name(worker), percent }).collect(),
        held: place.held.into_iter().map(there).collect(),
    }
}

/// What stands behind the `?`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExplainAsked {
    /// The object.
    #[schemars(with = "String", extend("pattern" = PATH_PATTERN), example = &"/lake/table.csv")]
    #[serde(deserialize_with = "from_text")]
    path: ForebayPath,
    /// How long the answer may take, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

/// What all requests share.
struct Door {
    readers: Readers,
    places: Arc<Places>,
    cluster: Arc<OwnCluster>,
}

/// The path, for `readers` that may read the object's mount.
pub(crate) fn routes(cluster: Arc<OwnCluster>, readers: Readers) -> (Router, Vec<Described>) {
    let answer = Content::json::<Explained>("Its segments: who is asked for each, and who has it.");
    let path = Described::new(Verb::Get, PATH, "Where an object is, why, and what reading it would cost now.", answer)
        .asked_by::<ExplainAsked>()
        .refused_with(&[400, 404, 409, 429, 500, 503, 504]);
    let (router, described) = Routes::new().with(path, explain).into_parts();
    (router.with_state(Arc::new(Door { readers, places: Places::new(PLACES), cluster })), described)
}

async fn explain(
    State(door): State<Arc<Door>>,
    sender: Sender,
    asked: std::result::Result<Asked<ExplainAsked>, Refusal>,
) -> std::result::Result<Json<Explained>, Refusal> {
    let ExplainAsked { path, timeout } = door.readers.asked(&sender, "explain", PATH, asked)?;
    let who = door.readers.check(&sender, &needs::object(path.mount()), "explain", &path.to_string())?;
    let _place = door.places.take(&who.to_string())?;
    let timeout = timeout.unwrap_or_default().duration();
    let explained = async { Explained::of_at_most(door.cluster.client().await?, &path, SEGMENTS_MAX).await };
    let explained = timeout_at(instant() + timeout, explained).await.map_err(|_| {
        let message = format!("{path}: not answered within {}: ask again, with a longer `timeout`", format_duration(timeout));
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, Error::retry(message))
    })?;
    Ok(Json(explained?))
}

#[cfg(test)]
mod tests {
    use forebay_types::SEGMENT_BYTES;

    use super::*;

    #[test]
    fn an_object_of_more_segments_than_an_answer_has_is_refused() {
        let path = "/lake/sparse".parse().unwrap();
        let most = u64::from(SEGMENTS_MAX) * SEGMENT_BYTES;
        check_segments(&path, most, SEGMENTS_MAX).unwrap();
        let refused = check_segments(&path, most + 1, SEGMENTS_MAX).unwrap_err();
        assert!(refused.message().contains("forebay explain /lake/sparse"), "{refused}");
        check_segments(&path, u64::MAX, u32::MAX).unwrap();
    }
}
