//! Directories that are moved into each other at the same time: one of them comes first, and none is lost.

use std::sync::Arc;
use std::time::Duration;

use forebay_client::{Client, CreateOptions, NodeResult, NodeType, Nodes};
use forebay_oracle::Rule;
use forebay_oracle::load::{GIVEN_UP_AFTER, pause};
use forebay_runtime::time::{sleep, timeout};
use futures::future::join;
use rand::Rng;
use rand::rngs::StdRng;

use crate::world::course::Course;

const PAUSE: Duration = Duration::from_secs(3);
/// Between two moves at a time, at most.
const APART: Duration = Duration::from_millis(20);
const DIRECTORIES: usize = 3;
/// Directories in each other, at most.
const DEPTH_MAX: usize = 8;

/// Makes directories, moves them, and looks for them.
pub(super) async fn moves(client: Client, course: Arc<Course>, mut chance: StdRng) {
    let nodes = client.nodes();
    let mut number = 0;
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        number += 1;
        let root = format!("/tmp/tree-{number}");
        let apart = APART.mul_f64(chance.random());
        let lost = timeout(GIVEN_UP_AFTER, async {
            make(&nodes, &root).await?;
            let lost_before = course.losses();
            let [a, b] = [format!("{root}/0"), format!("{root}/1")];
            let (into_b, into_a) = (format!("{b}/0"), format!("{a}/1"));
            let later = async {
                sleep(apart).await;
                nodes.rename(&b, &into_a).await
            };
            let moved = join(nodes.rename(&a, &into_b), later).await;
            let found = count(&nodes, &root, 0).await?;
            // What is lost with a worker is nobody's fault.
            let may_be_lost = lost_before > 0 || course.losses() > 0;
            NodeResult::Ok((found != DIRECTORIES && !may_be_lost).then_some((found, moved)))
        });
        if let Ok(Ok(Some((found, moved)))) = lost.await {
            course.wrong(Rule::NotLost, format!("{found} of {DIRECTORIES} directories are left in {root}: {moved:?}"));
        }
    }
}

async fn make(nodes: &Nodes, root: &str) -> NodeResult<()> {
    nodes.create(root, CreateOptions::new(NodeType::Directory)).await?;
    for directory in 0..DIRECTORIES {
        nodes.create(&format!("{root}/{directory}"), CreateOptions::new(NodeType::Directory)).await?;
    }
    Ok(())
}

/// Directories below one.
async fn count(nodes: &Nodes, path: &str, depth: usize) -> NodeResult<usize> {
    if depth > DEPTH_MAX {
        return Ok(0);
    }
    let mut found = 0;
    for entry in nodes.list(path, None, DIRECTORIES as u32).await?.0 {
        found += 1 + Box::pin(count(nodes, &format!("{path}/{}", entry.name), depth + 1)).await?;
    }
    Ok(found)
}
