//! Hands a query's ranges to the client as its plan begins, each once, and ends the fetching when the query ends.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use object_store::path::Path;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::hot::Cells;
use crate::prefetch::dynamic::{When, complete, join_filters, when};
use crate::prefetch::order::scans;
use crate::prefetch::scan::{Ranges, ranges};
use crate::scans::config;

/// Takes ranges that a query is about to read. What it gives back ends the fetching when it is dropped.
pub(crate) type Fetcher = Arc<dyn Fn(Ranges) -> Box<dyn Any + Send + Sync> + Send + Sync>;

/// The prefetch of a query; dropping it ends all of it.
#[derive(Default)]
pub(crate) struct Prefetching {
    planned: Arc<AtomicU64>,
    _now: Vec<Box<dyn Any + Send + Sync>>,
    _later: JoinSet<()>,
}

impl Prefetching {
    /// Starts what can be told of a plan that is about to run. Without a fetcher the bytes are counted only.
    ///
    /// Scans whose row groups a join's filter may still spare wait for that filter: the join's build side is read
    /// before them anyway, so the link has work until then, and what is fetched afterwards is what will be read.
    /// What is read decoded is not fetched.
    pub(crate) fn start(
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
        fetcher: Option<Fetcher>,
        cells: Option<&Cells>,
    ) -> Self {
        let runtime = context.runtime_env();
        let options = Arc::clone(context.session_config().options());
        let joins = join_filters(plan);
        let planned = Arc::new(AtomicU64::new(0));
        let (mut first, mut later) = (Vec::new(), JoinSet::new());
        let known = Arc::new(Mutex::new(HashSet::new()));
        for scan in scans(plan) {
            let Some(config) = config(&scan) else { continue };
            match when(config, &runtime, &joins) {
                When::Never => {}
                When::Now => first.extend(once(ranges(&scan, &runtime, &options, cells), &known)),
                When::After(filters) => {
                    let (runtime, options) = (Arc::clone(&runtime), Arc::clone(&options));
                    let (planned, fetcher, known) = (Arc::clone(&planned), fetcher.clone(), Arc::clone(&known));
                    let cells = cells.cloned();
                    later.spawn(async move {
                        complete(&filters).await;
                        let left = once(ranges(&scan, &runtime, &options, cells.as_ref()), &known);
                        planned.fetch_add(bytes(&left), Ordering::Relaxed);
                        let _running = fetcher.map(|fetcher| fetcher(left));
                        // Held until the query ends, which aborts this task.
                        std::future::pending::<()>().await;
                    });
                }
            }
        }
        planned.fetch_add(bytes(&first), Ordering::Relaxed);
        let now = match fetcher {
            Some(fetcher) if !first.is_empty() => vec![fetcher(first)],
            _ => Vec::new(),
        };
        Self { planned, _now: now, _later: later }
    }

    /// Bytes of the ranges that were told so far.
    pub(crate) fn planned(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.planned)
    }
}

fn bytes(ranges: &Ranges) -> u64 {
    ranges.iter().flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum()
}

/// Ranges that are told already.
type Known = HashSet<(Path, u64, u64)>;

/// Leaves out what an earlier scan of the same query reads already.
fn once(ranges: Ranges, known: &Mutex<Known>) -> Ranges {
    let mut known = known.lock();
    ranges
        .into_iter()
        .filter_map(|(meta, mut ranges)| {
            ranges.retain(|range| known.insert((meta.location.clone(), range.start, range.end)));
            (!ranges.is_empty()).then_some((meta, ranges))
        })
        .collect()
}
