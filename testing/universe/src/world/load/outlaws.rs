//! Clients that ask for what nobody may have: it is refused, and changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, CreateOptions, NodeType};
use forebay_nodes::{BlockRef, NodeResult, ROOT, StorageClass};
use forebay_oracle::Rule;
use forebay_oracle::load::{GIVEN_UP_AFTER, pause};
use forebay_protocol::{NodeCall, NodeOp, NodeReply};
use forebay_runtime::time::timeout;
use forebay_transport::{Answer, Connection};
use forebay_types::{BLOCK_BYTES, Result};
use rand::Rng;
use rand::rngs::StdRng;

use crate::world::course::Course;
use crate::world::hosts;

const PAUSE: Duration = Duration::from_secs(4);
/// A file of less is written behind this byte.
const FAR_BYTES: u64 = 1 << 20;

/// Writes far behind the end of an empty file.
pub(super) async fn reaches_far(client: Client, course: Arc<Course>, number: usize, mut chance: StdRng) {
    let (nodes, path) = (client.nodes(), format!("/tmp/far-{number}"));
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        let offset = FAR_BYTES + chance.random_range(0..FAR_BYTES);
        let written = async {
            // It is there as a rule.
            let _ = nodes.create(&path, CreateOptions::new(NodeType::File)).await;
            nodes.write(&path, offset, &b"far"[..]).await
        };
        if let Ok(Ok(len)) = timeout(GIVEN_UP_AFTER, written).await {
            course.wrong(Rule::Refused, format!("{path} had no bytes, was written at byte {offset}, and has {len} now"));
        }
    }
}

/// Puts values in blocks that it names with another length than they have, and deletes them.
pub(super) async fn forges(course: Arc<Course>, number: usize, mut chance: StdRng) {
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        let worker = chance.random_range(0..course.crowd.workers);
        let forged = timeout(GIVEN_UP_AFTER, forge(&course, worker, &format!("forged-{number}"))).await;
        tracing::debug!(?forged, "a value of another length than its block");
    }
}

async fn forge(course: &Course, worker: usize, name: &str) -> Result<()> {
    // Without a node it is kept for minutes, also where nobody hears of it.
    course.counts.unclaimed.fetch_add(1, SeqCst);
    let write = NodeOp::BlockWrite { class: StorageClass::Dram };
    let NodeReply::Block(block) = reply(&ask(worker, "", write, Some(Bytes::from_static(b"few bytes"))).await?)?? else {
        return Ok(());
    };
    let forged = BlockRef { len: BLOCK_BYTES as u32, ..block };
    // The root is with one of them, and the others say so.
    for at in 0..course.crowd.workers {
        let put = ask(at, name, NodeOp::PutBlocks { blocks: vec![forged] }, None).await?;
        if reply(&put)?.is_ok() {
            reply(&ask(at, name, NodeOp::Delete { recursive: false }, None).await?)?.map(drop)?;
            course.counts.unclaimed.fetch_sub(1, SeqCst);
        }
    }
    Ok(())
}

/// Asks a worker as a client of another make may.
async fn ask(worker: usize, path: &str, op: NodeOp<'_>, payload: Option<Bytes>) -> Result<Answer> {
    let connection = Connection::connect(&hosts::worker_address(worker), &hosts::security()).await?;
    let call = NodeCall { from: ROOT, moves: 0, path, op, number: None };
    connection.call(call.encode(), payload.into_iter().collect()).await
}

fn reply(answer: &Answer) -> Result<NodeResult<NodeReply<'_>>> {
    Ok(match NodeReply::decode(&answer.meta)? {
        NodeReply::Failed(error) => Err(error),
        reply => Ok(reply),
    })
}
