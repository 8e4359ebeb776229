//! The gateway's numbers, and what requests are called in them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_metrics::{Counter, Gauge, Histogram, table};
use http::{Method, StatusCode};
use parking_lot::RwLock;

use crate::dialect::Target;

/// How many answers there were to an operation with a status, and how long those of its class took.
type Answers = HashMap<(&'static str, StatusCode), (Arc<Counter>, Arc<Histogram>)>;

/// The gateway's numbers, for whoever scrapes metrics.
pub(crate) struct Meters {
    answers: RwLock<Answers>,
    hits: Arc<Counter>,
    misses: Arc<Counter>,
    /// Bytes of bodies, to clients.
    pub(crate) sent: Arc<Counter>,
    pub(crate) connections: Arc<Gauge>,
}

impl Meters {
    pub(crate) fn new() -> Self {
        forebay_metrics::begin("gateway");
        Self {
            answers: RwLock::default(),
            hits: table::GATEWAY_OBJECT_READS.with(["hit"]),
            misses: table::GATEWAY_OBJECT_READS.with(["miss"]),
            sent: table::GATEWAY_SENT_BYTES.only(),
            connections: table::GATEWAY_CONNECTIONS.only(),
        }
    }

    /// The head of an answer was ready so long after the request's.
    pub(crate) fn answered(&self, operation: &'static str, status: StatusCode, time: Duration) {
        if let Some((count, seconds)) = self.answers.read().get(&(operation, status)) {
            count.add(1);
            seconds.record(time);
            return;
        }
        let count = table::GATEWAY_REQUESTS.with([operation, status.as_str()]);
        let seconds = table::GATEWAY_REQUEST_SECONDS.with([class(operation)]);
        count.add(1);
        seconds.record(time);
        self.answers.write().insert((operation, status), (count, seconds));
    }

    /// The first bytes of an object's answer were in a tier, or not.
    pub(crate) fn read(&self, hit: bool) {
        if hit { &self.hits } else { &self.misses }.add(1);
    }
}

/// Bytes of bodies, from clients.
pub(crate) fn received(bytes: usize) {
    table::GATEWAY_RECEIVED_BYTES.only().add(bytes as u64);
}

/// Operations that take about as long as each other.
fn class(operation: &str) -> &'static str {
    match operation {
        "get_object" => "read",
        "head_object" | "head_bucket" => "stat",
        "list_buckets" | "list_objects" | "list_uploads" | "list_parts" => "list",
        "put_object" | "copy_object" | "create_bucket" | "create_upload" | "upload_part" | "complete_upload" => "write",
        "delete_object" | "delete_objects" | "delete_bucket" | "abort_upload" => "delete",
        _ => "other",
    }
}

/// What a request asks for, in S3's words; few enough to be a label.
pub(crate) fn operation(method: &Method, target: &Target, copies: bool) -> &'static str {
    let has = |name: &str| target.query.has(name);
    let get = matches!(*method, Method::GET | Method::HEAD);
    let aside = ["acl", "attributes", "legal-hold", "restore", "retention", "tagging", "torrent"].into_iter().any(has);
    match (&target.bucket, &target.key) {
        (None, _) => "list_buckets",
        (Some(_), None) => match *method {
            Method::HEAD => "head_bucket",
            Method::POST if has("delete") => "delete_objects",
            Method::GET if has("uploads") => "list_uploads",
            Method::GET if has("list-type") || ["prefix", "delimiter", "marker", "max-keys"].into_iter().any(has) => {
                "list_objects"
            }
            Method::GET if target.query.0.is_empty() => "list_objects",
            Method::PUT if target.query.0.is_empty() => "create_bucket",
            Method::DELETE if target.query.0.is_empty() => "delete_bucket",
            _ => "bucket_configuration",
        },
        (Some(_), Some(_)) => match *method {
            Method::POST if has("uploads") => "create_upload",
            Method::POST if has("uploadId") => "complete_upload",
            Method::DELETE if has("uploadId") => "abort_upload",
            Method::PUT if has("uploadId") => "upload_part",
            _ if get && has("uploadId") => "list_parts",
            _ if aside => "object_aside",
            Method::PUT if copies => "copy_object",
            Method::GET => "get_object",
            Method::HEAD => "head_object",
            Method::PUT => "put_object",
            Method::DELETE => "delete_object",
            _ => "other",
        },
    }
}
