//! A program of the first worker's host: it reads values in place, in the worker's memory, and they stay as they were read, whatever becomes
//! of the value.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, CreateOptions, NodeResult, NodeType, Nodes};
use forebay_oracle::Rule;
use forebay_oracle::load::nodes::ROOT;
use forebay_oracle::load::{GIVEN_UP_AFTER, pause};
use forebay_runtime::time::{sleep, timeout};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::world::course::Course;
use crate::world::hosts;

const PAUSE: Duration = Duration::from_secs(2);
/// Tables that its values are in. Some of them are with its own worker, which has their values in its memory.
const TABLES: u32 = 8;
/// Bytes of a value: more than lies beside its name.
const VALUE_BYTES: usize = 40_000;
/// What was read is looked at again after so long, in milliseconds.
const LOOKS_AFTER_MS: std::ops::Range<u64> = 20..600;

/// Puts and reads values until the load ends.
pub(in crate::world) async fn resident(course: Arc<Course>) {
    let client = hosts::client_beside(course.crowd.has_standby).await;
    let mut chance = StdRng::seed_from_u64(course.crowd.seed ^ 0x7265_7369);
    let mut version = 0;
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        let Some(_working) = course.works_beside() else { continue };
        version += 2;
        let (table, looks_after) = (chance.random_range(0..TABLES), chance.random_range(LOOKS_AFTER_MS));
        let looked = look(&client, table, version, Duration::from_millis(looks_after));
        match timeout(GIVEN_UP_AFTER, looked).await {
            Ok(Ok(Some(now))) => {
                course.wrong(Rule::OneVersion, format!("a value that was read in place as {version} is {now:?} now"))
            }
            other => tracing::debug!(?other, "a value in place"),
        }
    }
}

/// Reads a value, and puts another one in its place. Gives what is there a moment later where it was read, if that is something else.
async fn look(client: &Client, table: u32, version: u32, looks_after: Duration) -> NodeResult<Option<Vec<u8>>> {
    let (nodes, folder) = (client.nodes(), format!("{ROOT}/beside-{table}"));
    make(&nodes, &folder).await;
    let path = format!("{folder}/value");
    nodes.put(&path, value(version)).await?;
    let read = nodes.get(&path).await?;
    if read != value(version) {
        // Of a put before it, whose answer was lost; or of a worker that was lost.
        return Ok(None);
    }
    nodes.put(&path, value(version + 1)).await?;
    sleep(looks_after).await;
    Ok((read != value(version)).then(|| read[..read.len().min(8)].to_vec()))
}

async fn make(nodes: &Nodes, folder: &str) {
    for (path, kind) in [(ROOT, NodeType::Directory), (folder, NodeType::Table)] {
        // It is there as a rule.
        let _ = nodes.create(path, CreateOptions::new(kind)).await;
    }
}

fn value(version: u32) -> Bytes {
    Bytes::from(version.to_le_bytes().repeat(VALUE_BYTES / 4))
}
