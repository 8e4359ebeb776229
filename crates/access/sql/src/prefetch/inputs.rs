//! What each partition of a plan reads of files, footers read for it where need be: for a scheduler that brings it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::error::DataFusionError;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{StreamExt, stream};
use object_store::ObjectStore;
use object_store::path::Path;

use crate::albis::TableInput;
use crate::prefetch::parquet;
use crate::prefetch::scan::Ranges;
use crate::scans::{Extent, Footer, config, parquet_source};

/// Files whose footers are read at once.
const AT_ONCE: usize = 16;

/// A file, or a part of one, that a partition reads.
struct Wanted {
    /// Its place among all that are wanted.
    number: usize,
    partition: usize,
    scan: Arc<dyn ExecutionPlan>,
    store: Arc<dyn ObjectStore>,
    file: PartitionedFile,
}

/// What each partition of a plan reads of files: of Parquet and of tables the chunks of the columns that it needs, of the row groups
/// that its predicate leaves over. Reads footers that are not known yet. Nothing for what can't be told.
pub async fn inputs(plan: &Arc<dyn ExecutionPlan>, runtime: &Arc<RuntimeEnv>) -> Vec<Ranges> {
    let mut untold = Vec::new();
    let partitions = find(plan, runtime, Extent::Likely, &mut untold).await;
    for (path, error) in untold {
        tracing::debug!(%path, %error, "a task's input can't be told");
    }
    partitions
}

/// The same for who needs all of it: with what is read only where rows pass, and fails where it can't be told of a file.
pub(crate) async fn all_inputs(
    plan: &Arc<dyn ExecutionPlan>,
    runtime: &Arc<RuntimeEnv>,
) -> datafusion::error::Result<Vec<Ranges>> {
    let mut untold = Vec::new();
    let partitions = find(plan, runtime, Extent::Whole, &mut untold).await;
    if let Some((_, error)) = untold.into_iter().next() { Err(error) } else { Ok(partitions) }
}

async fn find(
    plan: &Arc<dyn ExecutionPlan>,
    runtime: &Arc<RuntimeEnv>,
    extent: Extent,
    untold: &mut Vec<(Path, DataFusionError)>,
) -> Vec<Ranges> {
    let mut partitions = Vec::new();
    let files = wanted(plan, runtime, &mut partitions);
    let runtime = Arc::clone(runtime);
    let reads = files.into_iter().map(move |parts| of_parts(parts, Arc::clone(&runtime), extent));
    let found: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_by_key(|(part, _)| part.number);
    for (Wanted { partition, file, .. }, ranges) in found {
        match ranges {
            Ok(ranges) if ranges.is_empty() => {}
            Ok(ranges) => partitions[partition].push((file.object_meta, ranges)),
            Err(error) => untold.push((file.object_meta.location, error)),
        }
    }
    partitions
}

/// What a plan's scans read, the parts of a file together, so that its footer is read once, and a list for each partition.
fn wanted(plan: &Arc<dyn ExecutionPlan>, runtime: &RuntimeEnv, partitions: &mut Vec<Ranges>) -> Vec<Vec<Wanted>> {
    let mut scans = Vec::new();
    walk(plan, 0, &mut scans);
    let mut files: Vec<Vec<Wanted>> = Vec::new();
    let mut places: HashMap<(ObjectStoreUrl, Path), usize> = HashMap::new();
    let mut number = 0;
    for (first, scan) in scans {
        let Some(config) = config(&scan) else { continue };
        let Ok(store) = runtime.object_store(&config.object_store_url) else { continue };
        if config.limit.is_some() {
            continue;
        }
        for (ix, group) in config.file_groups.iter().enumerate() {
            let partition = first + ix;
            if partitions.len() <= partition {
                partitions.resize_with(partition + 1, Vec::new);
            }
            for file in group.files() {
                let key = (config.object_store_url.clone(), file.object_meta.location.clone());
                let place = *places.entry(key).or_insert(files.len());
                if place == files.len() {
                    files.push(Vec::new());
                }
                let (scan, store, file) = (Arc::clone(&scan), Arc::clone(&store), file.clone());
                files[place].push(Wanted { number, partition, scan, store, file });
                number += 1;
            }
        }
    }
    files
}

/// The folder of the first file that a scan reads; none for what scans no files.
pub fn scanned_folder(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let file = config(plan)?.file_groups.iter().flat_map(|group| group.files()).next()?;
    let path = file.object_meta.location.as_ref();
    Some(path.rsplit_once('/').map_or("", |(folder, _)| folder).to_string())
}

/// The byte ranges of a file's parts, one part after the other: the first leaves the footer to the others.
async fn of_parts(
    parts: Vec<Wanted>,
    runtime: Arc<RuntimeEnv>,
    extent: Extent,
) -> Vec<(Wanted, datafusion::error::Result<Vec<Range<u64>>>)> {
    let mut found = Vec::with_capacity(parts.len());
    for part in parts {
        let ranges = of_part(&part, &runtime, extent).await;
        found.push((part, ranges));
    }
    found
}

async fn of_part(part: &Wanted, runtime: &RuntimeEnv, extent: Extent) -> datafusion::error::Result<Vec<Range<u64>>> {
    let Wanted { scan, store, file, .. } = part;
    let Some(config) = config(scan) else { return Ok(Vec::new()) };
    if let Some(tables) = TableInput::of(config, runtime) {
        return Ok(tables.read(store, file, extent).await?.into_iter().flatten().collect());
    }
    let Some(source) = parquet_source(config) else {
        let (start, end) = file.range();
        return Ok((start < end).then_some(start..end).into_iter().collect());
    };
    let footer = match Footer::cached(runtime, &file.object_meta) {
        Some(footer) => footer,
        None => Footer::read(runtime, store.as_ref(), &file.object_meta).await?,
    };
    let groups = parquet::row_groups(config, source, file, &footer, None, extent)?;
    Ok(groups.into_iter().flatten().collect())
}

/// The scans of a plan, each with the plan's partition that is its first one.
fn walk(plan: &Arc<dyn ExecutionPlan>, first: usize, scans: &mut Vec<(usize, Arc<dyn ExecutionPlan>)>) {
    let children = plan.children();
    if children.is_empty() {
        scans.push((first, Arc::clone(plan)));
        return;
    }
    let is_union = plan.downcast_ref::<UnionExec>().is_some();
    let mut at = first;
    for child in children {
        walk(child, at, scans);
        if is_union {
            at += child.output_partitioning().partition_count();
        }
    }
}
