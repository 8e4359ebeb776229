//! Who asks the gateway for what his access key does not allow, or has none: it is refused, and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_oracle::load::pause;
use forebay_oracle::{Rule, contents};
use http::Method;
use rand::Rng;
use rand::rngs::StdRng;

use super::TEMPORARY;
use super::asking::{Ask, Bucket};
use super::reads::name;
use crate::world::course::Course;
use crate::world::gateway::{ELSEWHERE, READER, STRANGER};
use crate::world::load::{ALL, MOUNTS};

const PAUSE: Duration = Duration::from_secs(4);
/// A version that nobody writes who may.
const NEVER: u32 = 1_000_000_001;

/// Asks until the load ends.
pub(super) async fn intrude(course: Arc<Course>, mut chance: StdRng) {
    // What each of them is for the first mount, which all others read.
    let objects = [READER, ELSEWHERE, STRANGER].map(|key| Bucket::open(MOUNTS[0], key));
    let values = [READER, ELSEWHERE, STRANGER].map(|key| Bucket::open(TEMPORARY, key));
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        let (who, object) = (chance.random_range(0..objects.len()), name(ALL.start));
        let (bucket, ask) = match chance.random_range(0..4) {
            0 => (&objects[who], Ask::new(Method::PUT, &object).body(contents::bytes(ALL.start, NEVER))),
            1 => (&objects[who], Ask::new(Method::DELETE, &object)),
            2 => (&objects[who], Ask::new(Method::POST, &object).query("uploads", "")),
            _ => (&values[who], Ask::new(Method::PUT, "storm/forbidden").body(Bytes::from_static(b"nothing"))),
        };
        match bucket.ask(ask).await {
            Ok(said) => course.wrong(Rule::Refused, format!("access key {who} of {}: {}", bucket.name, said.status)),
            Err(failure) if failure.kind == "403" => course.note_refused(),
            Err(failure) => tracing::debug!(?failure, "not even refused"),
        }
    }
}
