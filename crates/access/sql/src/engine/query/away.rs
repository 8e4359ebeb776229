//! Where a query runs: on a cluster, or in this process, and why there.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::common::format::ExplainFormat;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Explain;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion_datasource::memory::MemorySourceConfig;
use forebay_client::{Client, Drafts};
use forebay_types::{Error, ErrorKind, OperationId, Result, format_bytes};

use super::planner::attempt;
use super::point;
use crate::distribute::{Distribute, DistributedQuery, DistributedRun, Stays, scan_bytes, stays};
use crate::drafts::{self, Writing};
use crate::engine::session::QuerySession;
use crate::engine::{Backend, Engine};
use crate::error::from_engine;
use crate::hot::at_chunks;
use crate::rules::with_join_filters;
use crate::shards::{is_shard_scan, takes_keys};

/// Where a query was begun.
pub(super) enum Begun {
    There(DistributedRun),
    /// Nothing has begun yet: it is to run in this process. With what whoever asked is to know of that.
    Here(Option<String>),
}

/// Begins a query on the cluster, if it can run there.
pub(super) async fn begin(engine: &Engine, session: &QuerySession, sql: &str, plan: &Arc<dyn ExecutionPlan>) -> Result<Begun> {
    let (Some(elsewhere), Some(snapshot)) = (&engine.inner.elsewhere, &session.snapshot) else { return Ok(Begun::Here(None)) };
    if let Some(stays) = keeps(engine, plan) {
        tracing::debug!(why = %stays.why, "a query runs in this process");
        return Ok(Begun::Here(stays.surprises.then(|| notice(&stays.why))));
    }
    let written = match Written::open(engine, session, plan).await {
        // Workers of the release before know of no drafts.
        Err(error) if error.kind() == ErrorKind::Retry => {
            tracing::info!(%error, "a statement's files are written by this process alone");
            return Ok(Begun::Here(Some(notice(&format!("no worker takes drafts of its files ({})", error.message())))));
        }
        written => written?,
    };
    let whole = written.as_ref().map_or(plan, |written| &written.plan);
    let sent = match &session.cells {
        Some(cells) => at_chunks(Arc::clone(whole), cells).map_err(from_engine)?,
        None => Arc::clone(whole),
    };
    let mut config = session.context.copied_config();
    if !Arc::ptr_eq(&sent, whole) {
        // The scheduler would cut files again where it cuts the plan into stages, evenly, and so past all chunks. Scans of other files
        // lose nothing by it: they were cut for all tasks when this process planned the query, by the same rules and settings.
        config.options_mut().optimizer.repartition_file_scans = false;
    }
    let query = DistributedQuery {
        operation: session.operation,
        sql: sql.to_string(),
        plan: sent,
        config,
        pins: snapshot.pinned(),
        who: Arc::clone(&engine.inner.settings.who),
    };
    if let Some(run) = elsewhere.run(query).await? {
        return Ok(Begun::There(if let Some(written) = written { written.committed(run, plan) } else { run }));
    }
    let why = elsewhere.stays(whole);
    tracing::info!(?why, "a query that would be distributed runs in this process alone");
    Ok(Begun::Here(why.map(|why| notice(&why))))
}

/// A plan as it runs in this process. Joins of one that was made for a cluster hand nothing down, since its tasks can't tell each other what
/// they find; here datasets of shards are asked for that all the same.
pub(super) fn as_here(engine: &Engine, session: &QuerySession, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if engine.inner.elsewhere.is_none() || !plan.exists(|node| Ok(is_shard_scan(node))).map_err(from_engine)? {
        return Ok(plan);
    }
    let handing = with_join_filters(Arc::clone(&plan), session.context.copied_config().options()).map_err(from_engine)?;
    // Where no dataset looks at it joins stay silent, and files would wait for what they never say.
    Ok(if takes_keys(&handing) { handing } else { plan })
}

/// Files that executors write for a statement.
struct Written {
    writing: Writing,
    client: Client,
    drafts: Drafts,
    /// What executors run.
    plan: Arc<dyn ExecutionPlan>,
}

impl Written {
    /// Lets executors write the files of a statement; none for one that writes none.
    async fn open(engine: &Engine, session: &QuerySession, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        let (Some(writing), Backend::Cluster(client)) = (Writing::of(plan)?, &engine.inner.backend) else { return Ok(None) };
        let drafts = writing.open(client, session.operation).await?;
        let plan = writing.plan(session.operation, drafts.workers())?;
        Ok(Some(Self { writing, client: client.clone(), drafts, plan }))
    }

    /// The rows of the statement, which come when what its tasks have written is there.
    fn committed(self, run: DistributedRun, plan: &Arc<dyn ExecutionPlan>) -> DistributedRun {
        let DistributedRun { stream, progress } = run;
        let stream = drafts::committed(stream, &self.writing, &self.client, self.drafts, plan.schema());
        DistributedRun { stream, progress }
    }
}

/// Why the engine itself keeps a plan here.
fn keeps(engine: &Engine, plan: &Arc<dyn ExecutionPlan>) -> Option<Stays> {
    let (bytes, from_bytes) = (scan_bytes(plan), engine.inner.settings.distribute_from_bytes);
    let is_little = || Stays {
        why: format!("it reads {}, less than `distribute-from` ({})", format_bytes(bytes), format_bytes(from_bytes)),
        surprises: false,
    };
    stays(plan).or_else(|| (bytes < from_bytes).then(is_little))
}

fn notice(why: &str) -> String {
    format!("the query runs in this process alone, not on the cluster: {why}")
}

/// The rows of EXPLAIN, and more that say where the statement would run, if there are two places, and that it is read by its key alone, if it is.
pub(super) async fn explained(
    engine: &Engine,
    session: &QuerySession,
    explain: &Explain,
    is_by_key: bool,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !matches!(explain.explain_format, ExplainFormat::Indent | ExplainFormat::Tree) {
        return Ok(plan);
    }
    let mut more = Vec::new();
    // What has no plan says so in its own row.
    if let Some(elsewhere) = &engine.inner.elsewhere
        && let Ok(own) = Box::pin(attempt(engine, &session.context.state(), &explain.plan)).await
    {
        let place = match place(engine, elsewhere.as_ref(), &own) {
            Some(why) => format!("in this process: {why}"),
            None => "on the cluster".to_string(),
        };
        more.push(("distribution", place));
    }
    if is_by_key {
        more.push(("by key", point::TOLD.to_string()));
    }
    if more.is_empty() {
        return Ok(plan);
    }
    let mut rows = collect(Arc::clone(&plan), session.context.task_ctx()).await.map_err(from_engine)?;
    let (kinds, texts): (Vec<_>, Vec<_>) = more.into_iter().unzip();
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(kinds)), Arc::new(StringArray::from(texts))];
    rows.push(RecordBatch::try_new(plan.schema(), columns).map_err(|error| Error::internal(error.to_string()))?);
    let rows: Arc<dyn ExecutionPlan> = MemorySourceConfig::try_new_exec(&[rows], plan.schema(), None).map_err(from_engine)?;
    Ok(rows)
}

/// Why a plan would run here; none when it would run on the cluster.
fn place(engine: &Engine, elsewhere: &dyn Distribute, plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    keeps(engine, plan).map(|stays| stays.why).or_else(|| elsewhere.stays(&as_sent(plan)))
}

/// A plan as executors would run it.
fn as_sent(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let writes =
        Writing::of(plan).and_then(|writing| writing.map(|writing| writing.plan(OperationId(0), Vec::new())).transpose());
    writes.ok().flatten().unwrap_or_else(|| Arc::clone(plan))
}
