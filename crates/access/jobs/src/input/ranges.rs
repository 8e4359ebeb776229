//! From the ranges that each partition of a stage reads to page runs, the workers that have them already, and those where others look for them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use forebay_client::Client;
use forebay_scheduling::{BlockRange, TaskInput};
use forebay_types::{MountId, ObjectVersion, PageRun, SegmentId, WorkerId, split_range};

/// The segments of a stage's input, with the versions that they are of.
pub type Versions = HashMap<SegmentId, (Arc<ObjectVersion>, u32)>;

/// The pages of ranges of one version, each once, beside those that are there already; what is behind its end is none.
pub fn blocks(
    version: &Arc<ObjectVersion>,
    ranges: impl IntoIterator<Item = Range<u64>>,
    versions: &mut Versions,
    blocks: &mut Vec<BlockRange>,
) {
    for range in ranges.into_iter().filter(|range| range.start < range.end && range.end <= version.size) {
        for part in split_range(range) {
            let bytes = u64::from(part.start)..u64::from(part.start) + u64::from(part.len);
            let Some(pages) = PageRun::covering(bytes) else { continue };
            let segment = SegmentId::of(version, part.index);
            versions.entry(segment).or_insert_with(|| (Arc::clone(version), part.index));
            let block = BlockRange { segment, pages };
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
    }
}

/// What the partitions of a stage read, with who of these workers holds it already.
pub async fn found(
    client: &Client,
    partitions: Vec<Vec<BlockRange>>,
    versions: &Versions,
    workers: &[WorkerId],
) -> Vec<Vec<TaskInput>> {
    let all: Vec<BlockRange> = partitions.iter().flatten().copied().collect::<HashSet<_>>().into_iter().collect();
    let runs: Vec<(SegmentId, PageRun)> = all.iter().map(|range| (range.segment, range.pages)).collect();
    let mut holders: HashMap<BlockRange, Vec<WorkerId>> = HashMap::new();
    let asked = workers.iter().map(|worker| {
        let (worker, runs) = (*worker, &runs);
        async move { (worker, client.present(worker, runs).await) }
    });
    for (worker, present) in futures::future::join_all(asked).await {
        match present {
            Ok(present) => {
                for (range, _) in all.iter().zip(present).filter(|(_, present)| *present) {
                    holders.entry(*range).or_default().push(worker);
                }
            }
            // Taken for one that holds nothing.
            Err(error) => tracing::debug!(%worker, %error, "a worker does not say what it holds"),
        }
    }
    // Where S3 and Python will look for it, of those that run tasks.
    let routed = |version: &ObjectVersion, index: u32| -> Vec<WorkerId> {
        client.routed(version, index).into_iter().filter(|worker| workers.contains(worker)).collect()
    };
    let routed: HashMap<SegmentId, Vec<WorkerId>> =
        versions.iter().map(|(segment, (version, index))| (*segment, routed(version, *index))).collect();
    let input = |range: BlockRange| TaskInput {
        range,
        storage: versions.get(&range.segment).map_or(MountId(0), |(version, _)| version.mount),
        holders: holders.get(&range).cloned().unwrap_or_default(),
        routed: routed.get(&range.segment).cloned().unwrap_or_default(),
    };
    partitions.into_iter().map(|ranges| ranges.into_iter().map(input).collect()).collect()
}
