//! The gateway's numbers.

use std::collections::HashMap;
use std::time::Duration;

use http::{Method, StatusCode};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use parking_lot::RwLock;

use crate::dialect::Target;

/// How many answers there were to an operation with a status, and how long they took.
type Answers = HashMap<(&'static str, StatusCode), (Counter, Histogram)>;

/// The gateway's numbers, for whoever scrapes metrics. The process's recorder must be in place before.
pub(crate) struct Meters {
    answers: RwLock<Answers>,
    hits: Counter,
    misses: Counter,
    /// Bytes of bodies, to clients.
    pub(crate) sent: Counter,
    pub(crate) connections: Gauge,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            answers: RwLock::default(),
            hits: counter!("forebay_gateway_object_reads", "cache" => "hit"),
            misses: counter!("forebay_gateway_object_reads", "cache" => "miss"),
            sent: counter!("forebay_gateway_sent_bytes"),
            connections: gauge!("forebay_gateway_connections"),
        }
    }

    /// The head of an answer was ready so long after the request's.
    pub(crate) fn answered(&self, operation: &'static str, status: StatusCode, time: Duration) {
        if let Some((count, seconds)) = self.answers.read().get(&(operation, status)) {
            count.increment(1);
            seconds.record(time);
            return;
        }
        let count = counter!("forebay_gateway_requests", "operation" => operation, "status" => status.as_u16().to_string());
        let seconds = histogram!("forebay_gateway_seconds", "operation" => operation);
        count.increment(1);
        seconds.record(time);
        self.answers.write().insert((operation, status), (count, seconds));
    }

    /// The first bytes of an object's answer were in a tier, or not.
    pub(crate) fn read(&self, hit: bool) {
        if hit { &self.hits } else { &self.misses }.increment(1);
    }
}

/// Bytes of bodies, from clients.
pub(crate) fn received(bytes: usize) {
    counter!("forebay_gateway_received_bytes").increment(bytes as u64);
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
