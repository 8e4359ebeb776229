//! The byte ranges of one scan in the order of reading, by playing the streams that will share its files.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use object_store::ObjectMeta;

use crate::albis::TableInput;
use crate::hot::{Cells, TextScan};
use crate::prefetch::order::streams;
use crate::prefetch::parquet;
use crate::scans::{Extent, Footer, config, parquet_source};

/// Byte ranges of files in the order of reading.
pub type Ranges = Vec<(ObjectMeta, Vec<Range<u64>>)>;

/// What a scan will read, in order. Nothing for what can't be told: memory, a scan with a limit, a file whose footer or
/// metadata is not known.
pub(crate) fn ranges(
    plan: &Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
    options: &ConfigOptions,
    cells: Option<&Cells>,
) -> Ranges {
    let Some(config) = config(plan) else { return Vec::new() };
    if config.limit.is_some() {
        return Vec::new();
    }
    let text = cells.and_then(|cells| Some((cells, TextScan::of(config)?)));
    let tables = TableInput::of(config, runtime);
    let parts_of = |file: &PartitionedFile| -> Vec<Vec<Range<u64>>> {
        let parts = match (parquet_source(config), &tables, &text) {
            (Some(source), _, _) => {
                let Some(footer) = Footer::cached(runtime, &file.object_meta) else {
                    return Vec::new();
                };
                parquet::row_groups(config, source, file, &footer, cells, Extent::Likely)
            }
            (None, Some(tables), _) => tables.known(file),
            (None, None, Some((cells, scan))) => Ok(scan.left(file, cells)),
            (None, None, None) => {
                let (start, end) = file.range();
                Ok(if start < end { vec![vec![start..end]] } else { Vec::new() })
            }
        };
        parts.unwrap_or_else(|error| {
            tracing::debug!(path = %file.object_meta.location, %error, "no prefetch for a file");
            Vec::new()
        })
    };
    let shared =
        options.execution.enable_file_stream_work_stealing && !config.preserve_order && config.output_partitioning.is_none();
    let queues: Vec<VecDeque<&PartitionedFile>> = match shared {
        true => vec![config.file_groups.iter().flat_map(|group| group.files().iter()).collect()],
        false => config.file_groups.iter().map(|group| group.files().iter().collect()).collect(),
    };
    let files = interleave(queues, streams(plan), parts_of);
    together(files)
}

/// The parts of a file that a stream has yet to read.
type Parts = VecDeque<Vec<Range<u64>>>;

/// Plays the scan: each stream takes a part (a row group) in turn, and the next file of its queue when it is through.
fn interleave(
    mut queues: Vec<VecDeque<&PartitionedFile>>,
    streams: usize,
    parts_of: impl Fn(&PartitionedFile) -> Vec<Vec<Range<u64>>>,
) -> Vec<(&PartitionedFile, Vec<Range<u64>>)> {
    let shared = queues.len() == 1;
    let count = if shared { streams } else { queues.len() };
    let mut reading: Vec<Option<(&PartitionedFile, Parts)>> = vec![None; count];
    let mut order = Vec::new();
    loop {
        let mut idle = true;
        for (stream, current) in reading.iter_mut().enumerate() {
            while current.as_ref().is_none_or(|(_, parts)| parts.is_empty()) {
                let queue = if shared { &mut queues[0] } else { &mut queues[stream] };
                match queue.pop_front() {
                    Some(file) => *current = Some((file, parts_of(file).into())),
                    None => break,
                }
            }
            if let Some((file, parts)) = current
                && let Some(part) = parts.pop_front()
            {
                order.push((*file, part));
                idle = false;
            }
        }
        if idle {
            return order;
        }
    }
}

/// One version of each file, and neighbours of the same file in one entry.
fn together(files: Vec<(&PartitionedFile, Vec<Range<u64>>)>) -> Ranges {
    let mut entries: Ranges = Vec::new();
    let mut metas: HashMap<_, ObjectMeta> = HashMap::new();
    for (file, ranges) in files {
        let location = &file.object_meta.location;
        let meta = metas.entry(location.clone()).or_insert_with(|| file.object_meta.clone());
        match entries.last_mut() {
            Some((last, known)) if last.location == meta.location => known.extend(ranges),
            _ => entries.push((meta.clone(), ranges)),
        }
    }
    entries
}
