//! From a stage's plan to the page runs that each of its partitions reads, the workers that have them already, and those where others look for them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use forebay_client::Client;
use forebay_jobs::{Ticket, Versions, blocks, found};
use forebay_scheduling::{BlockRange, TaskInput};
use forebay_sql::{Engine, Ranges, inputs};
use forebay_types::{MountId, ObjectVersion, Result, WorkerId};

/// Finds out what the partitions of a stage read, to the page, and which of these workers hold it already.
pub(super) async fn of_stage(
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
    let partitions: Vec<Vec<BlockRange>> =
        partitions.into_iter().map(|files| of_partition(files, &by_path, &mut versions)).collect();

    let found = found(client, partitions, &versions, workers).await;
    Ok((found, versions))
}

/// The pages of one partition's files.
fn of_partition(files: Ranges, by_path: &HashMap<String, Arc<ObjectVersion>>, versions: &mut Versions) -> Vec<BlockRange> {
    let mut all = Vec::new();
    for (meta, ranges) in files {
        if let Some(version) = by_path.get(meta.location.as_ref()) {
            blocks(version, ranges, versions, &mut all);
        }
    }
    all
}
