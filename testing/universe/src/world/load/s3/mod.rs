//! Clients of the S3 gateway, beside those of the client's API on the same objects and temporary values: what both are told is judged together.
//!
//! Owns: requests as programs send them ([`asking`]), who reads ([`reads`]) and writes ([`writer`]) objects, who uses temporary values
//! ([`values`]), and who has no right to what he asks for ([`intruders`]).
//!
//! Never does: ask twice. Who was not answered knows nothing, and the oracle takes it so.
//!
//! Start with [`begin`].

mod asking;
mod intruders;
mod reads;
mod values;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use forebay_client::Client;
use forebay_oracle::Rule;
use forebay_runtime::time::sleep;
use http::Method;
use rand::rngs::StdRng;
use tokio::task::JoinHandle;

use super::{ALL, TRIED_AGAIN_AFTER, draw, past};
use crate::world::course::Course;
use crate::world::gateway::{Unfinished, WRITER};
use asking::{Ask, Bucket};
use reads::Way;
use writer::Writer;

/// Objects that are written through the gateway and by the client's API, by one client each, and deleted.
const OWN_TOO: Range<u32> = ALL.end..ALL.end + 4;
/// Objects that all clients write at the same time, each of them by either way; one of each mount.
const MET: Range<u32> = OWN_TOO.end..OWN_TOO.end + 2;
const KEYS: Range<u32> = OWN_TOO.start..MET.end;
/// The bucket of temporary data.
const TEMPORARY: &str = "tmp";
/// How often an upload is given up that nothing stands in the way of any more.
const TRIES: usize = 20;

/// The objects that are there beside all others where there is a gateway.
pub(super) fn keys(course: &Course) -> Range<u32> {
    if course.crowd.has_gateway { KEYS } else { Range::default() }
}

/// What one client has its programs do through the gateway, where there is one.
pub(super) fn begin(client: &Client, course: &Arc<Course>, number: usize, chance: &mut StdRng) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    if !course.crowd.has_gateway {
        return tasks;
    }
    let way = Way::new(course);
    for key in OWN_TOO.filter(|key| *key as usize % course.crowd.clients == number) {
        let writer = Writer::new(way.clone(), client.clone(), key);
        tasks.push(forebay_runtime::spawn(writer.run((key - OWN_TOO.start) as usize, draw(chance))));
    }
    for key in MET {
        tasks.push(forebay_runtime::spawn(writer::meets(way.clone(), client.clone(), key, number, draw(chance))));
    }
    tasks.push(forebay_runtime::spawn(reads::reads(way.clone(), client.clone(), past(), draw(chance))));
    tasks.push(forebay_runtime::spawn(values::uses(Arc::clone(course), client.nodes(), number, draw(chance))));
    tasks.push(forebay_runtime::spawn(intruders::intrude(Arc::clone(course), draw(chance))));
    tasks
}

/// Once nothing goes wrong any more: all objects are read through the gateway, and no upload stays that was not completed.
pub(super) async fn looks(course: &Arc<Course>) {
    if !course.crowd.has_gateway {
        return;
    }
    let (way, temporary) = (Way::new(course), Bucket::open(TEMPORARY, WRITER));
    for key in ALL.start..KEYS.end {
        way.read(key, None).await;
    }
    for upload in course.asked.take_unfinished() {
        let bucket = if upload.bucket == TEMPORARY { &temporary } else { way.named(upload.bucket) };
        give_up(bucket, course, &upload).await;
    }
    // Those that nobody was told of.
    if let Ok(said) = temporary.ask(Ask::of_bucket(Method::GET).query("uploads", "")).await {
        for (key, id) in said.fields("Key").into_iter().zip(said.fields("UploadId")) {
            give_up(&temporary, course, &Unfinished { bucket: TEMPORARY, key, id }).await;
        }
    }
}

/// What was completed after all is not there any more.
async fn give_up(bucket: &Bucket, course: &Course, upload: &Unfinished) {
    let mut told = String::new();
    for _ in 0..TRIES {
        match bucket.ask(Ask::new(Method::DELETE, &upload.key).query("uploadId", &upload.id)).await {
            Ok(_) => return,
            Err(failure) if failure.kind == "404" => return,
            Err(failure) => told = failure.message,
        }
        sleep(TRIED_AGAIN_AFTER).await;
    }
    course.wrong(Rule::Recovers, format!("{upload:?} can't be given up: {told}"));
}
