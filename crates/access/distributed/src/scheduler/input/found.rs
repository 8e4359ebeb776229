//! From a stage's plan to the page runs that each of its partitions reads, the workers that have them already, and those where others look for them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use forebay_client::Client;
use forebay_scheduling::{BlockRange, TaskInput};
use forebay_sql::{Engine, Ranges, inputs};
use forebay_types::{MountId, ObjectVersion, PageRun, Result, SegmentId, WorkerId, split_range};

use crate::travel::Ticket;

/// The segments of a stage's input, with the versions that they are of.
pub(in crate::scheduler) type Versions = HashMap<SegmentId, (Arc<ObjectVersion>, u32)>;

/// Finds out what the partitions of a stage read, to the page, and which of these workers hold it already.
pub(in crate::scheduler) async fn of_stage(
    engine: &Engine,
    client: &Client,
    ticket: &Ticket,
    plan: &Arc<dyn ExecutionPlan>,
    workers: &[WorkerId],
) -> Result<(Vec<Vec<TaskInput>>, Versions)> {
    // A mount may be younger than what is known here of the cluster.
    let known = client.view();
    let is_known = |id: MountId| id == MountId::TEMPORARY || known.mounts.iter().any(|mount| mount.id == id);
    if !ticket.pins.iter().all(|pin| is_known(pin.version.mount)) {
        client.refresh_view().await?;
    }
    let runtime = engine.runtime_of(ticket.operation, ticket.pins.clone())?;
    let partitions = inputs(plan, &runtime).await;
    let view = client.view();
    // Temporary data is not brought anywhere: it lies where it was written.
    let mut by_path = HashMap::new();
    for pin in &ticket.pins {
        if let Some(mount) = view.mounts.iter().find(|mount| mount.id == pin.version.mount) {
            by_path.insert(format!("{}/{}", mount.name, pin.version.key), Arc::new(pin.version.clone()));
        }
    }
    let mut versions = Versions::new();
    let partitions: Vec<Vec<BlockRange>> = partitions.into_iter().map(|files| blocks(files, &by_path, &mut versions)).collect();

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
    Ok((partitions.into_iter().map(|ranges| ranges.into_iter().map(input).collect()).collect(), versions))
}

/// The pages of one partition's files.
fn blocks(files: Ranges, by_path: &HashMap<String, Arc<ObjectVersion>>, versions: &mut Versions) -> Vec<BlockRange> {
    let mut blocks = Vec::new();
    for (meta, ranges) in files {
        let Some(version) = by_path.get(meta.location.as_ref()) else { continue };
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
    blocks
}
