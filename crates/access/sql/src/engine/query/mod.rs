//! The life of a statement: planned, begun here or on a cluster, planned anew after an overwrite or with smaller batches, and read batch by batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ParamValues;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use forebay_types::{Error, ErrorKind, OperationId, Result};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::copy;
use crate::distribute::Progress;
use crate::engine::Engine;
use crate::engine::session::QuerySession;
use crate::error::from_engine;
use crate::panics::caught;
use crate::prefetch::Prefetching;
use crate::repeated;
use crate::slow::{Spending, Spent, Watch};
use crate::statement::one;
use crate::stores::Seen;

mod away;
mod begun;
mod heeded;
mod kept;
mod planner;
mod planning;
mod point;
mod remote;
mod rows;
mod sizes;
mod text;
mod written;

use begun::{Begun, begin};
pub(crate) use planner::physical;
pub(crate) use planning::logical_plan;
use planning::{Planned, plan};
pub(super) use point::Points;
use rows::Rows;

/// How often a query is planned again when an object was overwritten between planning and its first row.
const RETRIES_ON_CONFLICT: u32 = 1;

/// One statement, running. Dropping it ends it and everything that it has begun.
pub struct Query {
    asked: Arc<Asked>,
    running: Running,
    retries_left: u32,
    /// Rows of a batch, where the session's are too many for how wide they are.
    batch_rows: Option<usize>,
    /// A row was given out, or the statement writes: it must not be planned again.
    committed: bool,
    ended: bool,
    watch: Watch,
}

/// What a statement may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    /// What the rights of who asks allow.
    All,
    /// Give rows, and change nothing.
    Read,
}

/// One attempt at a statement.
struct Running {
    operation: OperationId,
    schema: SchemaRef,
    /// None for a statement without rows.
    rows: Option<Rows>,
    /// None for such a one, and for an attempt that was given up.
    plan: Option<Arc<dyn ExecutionPlan>>,
    seen: Arc<Seen>,
    prefetching: Prefetching,
    /// How far it is, where it runs elsewhere.
    elsewhere: Option<Arc<dyn Fn() -> Progress + Send + Sync>>,
    /// What whoever asked is to know of where and how it runs.
    notice: Option<String>,
    writes: bool,
    /// None where it was begun by what is kept of the statement.
    session: Option<QuerySession>,
}

/// What an attempt at a statement goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// What is kept of it, where that holds.
    Kept,
    /// Its text.
    Text,
}

impl Engine {
    /// Plans one statement and makes it ready to run. Rows come when they are asked for; a statement without rows
    /// (CREATE, DROP, SET) is done when this returns.
    pub async fn execute(&self, sql: &str) -> Result<Query> {
        Query::start(self.clone(), one(sql)?, None, May::All).await
    }

    /// The same with values for the statement's parameters: `$1`, `$2` by their order, or `$name` by name.
    pub async fn execute_with(&self, sql: &str, parameters: ParamValues) -> Result<Query> {
        Query::start(self.clone(), one(sql)?, Some(parameters), May::All).await
    }

    /// The same for a statement that changes nothing; `Invalid` for any other, of which nothing is done.
    pub async fn read(&self, sql: &str) -> Result<Query> {
        Query::start(self.clone(), one(sql)?, None, May::Read).await
    }
}

impl Query {
    async fn start(engine: Engine, sql: String, parameters: Option<ParamValues>, may: May) -> Result<Self> {
        let settings = &engine.inner.settings;
        let mut watch = Watch::begin(settings.slow_query, &settings.who, &sql);
        let asked = Arc::new(Asked { engine, sql, parameters, may });
        let running = watch.span.around(Arc::clone(&asked).running(RETRIES_ON_CONFLICT));
        let running = asked.engine.compute(running).await.flatten();
        let (running, retries_left) = running.inspect_err(|error| watch.ended(Some(error)))?;
        watch.runs(running.operation, || running.spending());
        if running.rows.is_none() {
            watch.ended(None);
        }
        let committed = running.writes;
        Ok(Self { asked, running, retries_left, batch_rows: None, committed, ended: false, watch })
    }

    /// The columns; none for a statement without rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.running.schema)
    }

    /// The operation that all of the query's reads carry.
    pub fn operation(&self) -> OperationId {
        self.running.operation
    }

    /// The next rows; none at the end. A version that is gone before the first row makes a new snapshot and a new plan;
    /// after it, it is a `Conflict`. A row that a join or `unnest` repeats, and that is too wide for it, makes a new plan with fewer rows
    /// in a batch; after the first row it is `Invalid`.
    pub async fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        self.watch.resume();
        let next = self.next().await;
        match &next {
            Some(Ok(batch)) => self.watch.gave(batch.num_rows()),
            Some(Err(error)) => self.watch.ended(Some(error)),
            None => self.watch.ended(None),
        }
        next
    }

    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        while !self.ended {
            let next = match self.running.rows.as_mut()?.next().await {
                Ok(next) => next,
                Err(panicked) => {
                    self.ended = true;
                    return Some(Err(panicked));
                }
            };
            let error = match next {
                Some(Ok(batch)) => {
                    self.committed |= batch.num_rows() > 0;
                    return Some(Ok(batch));
                }
                Some(Err(error)) => self.running.told(error),
                None => {
                    self.ended = true;
                    return None;
                }
            };
            if self.committed || !self.runs_again(&error) {
                self.ended = true;
                return Some(Err(error));
            }
            // Should who waits stop waiting in the midst of the next attempt, this one's end is not taken for the rows' end.
            if let Some(rows) = &mut self.running.rows {
                rows.give_up();
            }
            // What its joins have gathered is there as long as it is, and the next one gathers as much.
            self.running.plan = None;
            match self.again().await {
                Ok(()) => {}
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Whether another attempt may answer that has given no row, after such an error.
    fn runs_again(&mut self, error: &Error) -> bool {
        let Some(session) = &self.running.session else {
            // What is kept of a dataset may be of before, and planning looks anew.
            return matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound);
        };
        if error.kind() == ErrorKind::Conflict && self.retries_left > 0 {
            self.retries_left -= 1;
            tracing::info!(%error, "an object changed before the first row: planning again");
            return true;
        }
        let Some(rows) = repeated::fewer_rows(error.message(), session.batch_rows()) else { return false };
        self.batch_rows = Some(rows);
        tracing::info!(%error, rows, "a row is too wide for those of a batch: running again with fewer");
        true
    }

    async fn again(&mut self) -> Result<()> {
        assert!(!self.committed && !self.ended, "a query that gave rows, or has ended, is planned again");
        let schema = self.schema();
        let (asked, batch_rows) = (Arc::clone(&self.asked), self.batch_rows);
        let again = async move { Running::start(&asked, batch_rows, By::Text).await };
        self.running = self.asked.engine.compute(self.watch.span.around(again)).await??;
        self.watch.reads(self.running.operation, || self.running.spending());
        match self.running.schema == schema {
            true => Ok(()),
            false => Err(Error::conflict("the files were overwritten with other columns while the query began: run it again")),
        }
    }

    /// All rows.
    pub async fn collect(&mut self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next_batch().await {
            batches.push(batch?);
        }
        Ok(batches)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.watch()()
    }

    /// What tells how far it is, while its next batch is waited for.
    pub fn watch(&self) -> Arc<dyn Fn() -> Progress + Send + Sync> {
        self.running.watch()
    }

    /// Whether it changes something: what it writes is there once its rows were read to their end.
    pub fn writes(&self) -> bool {
        self.running.writes
    }

    /// What whoever asked is to know beside its rows: why it runs in this process alone, though it was to be distributed, and from its first
    /// row on that it ran again.
    pub fn notice(&self) -> Option<&str> {
        self.running.notice.as_deref()
    }

    /// The physical plan, one operator a line; empty for a statement without rows.
    pub fn plan_text(&self) -> String {
        let plan = self.running.plan.as_ref();
        plan.map(|plan| displayable(plan.as_ref()).indent(false).to_string()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("sql", &self.asked.sql).field("operation", &self.running.operation).finish_non_exhaustive()
    }
}

/// A statement, with all that an attempt at it needs.
struct Asked {
    engine: Engine,
    sql: String,
    parameters: Option<ParamValues>,
    may: May,
}

impl Asked {
    /// The statement as it runs, after as many attempts as it takes and may, and how many more it may have.
    async fn running(self: Arc<Self>, mut retries_left: u32) -> Result<(Running, u32)> {
        let (mut mounts_asked, mut by) = (false, By::Kept);
        loop {
            match Running::start(&self, None, std::mem::replace(&mut by, By::Text)).await {
                Err(error) if error.kind() == ErrorKind::Conflict && retries_left > 0 => retries_left -= 1,
                Err(error) if error.kind() == ErrorKind::NotFound && !mounts_asked => {
                    mounts_asked = true;
                    if !self.engine.mounts_changed().await {
                        return Err(error);
                    }
                }
                other => return other.map(|running| (running, retries_left)),
            }
        }
    }
}

impl Running {
    /// One attempt. Boxed, since what planning waits for makes types that are too deep for callers to be compiled.
    fn start(asked: &Asked, batch_rows: Option<usize>, by: By) -> BoxFuture<'_, Result<Self>> {
        async move {
            let kept = if by == By::Kept { point::begin(asked).await? } else { None };
            match kept {
                Some(running) => Ok(running),
                None => Self::attempt(asked, batch_rows).await,
            }
        }
        .boxed()
    }

    async fn attempt(Asked { engine, sql, parameters, may }: &Asked, batch_rows: Option<usize>) -> Result<Self> {
        let (parameters, may) = (parameters.as_ref(), *may);
        let mut session = QuerySession::open(engine, sql).await?;
        if let Some(rows) = batch_rows {
            session.set_batch_rows(rows);
        }
        let seen = Arc::clone(&session.seen);
        copy::prepare(&mut session.statement, session.namespace.as_ref())?;
        let planned = caught(&seen, plan(engine, &session, sql, parameters, may)).await?;
        let Planned { plan, writes } = planned.map_err(|error| seen_instead(&seen, error))?;
        let Some(plan) = plan else {
            return Ok(Self {
                operation: session.operation,
                schema: Arc::new(Schema::empty()),
                rows: None,
                plan: None,
                seen,
                prefetching: Prefetching::default(),
                elsewhere: None,
                notice: None,
                writes,
                session: Some(session),
            });
        };
        let begun = caught(&seen, begin(engine, &session, sql, plan)).await;
        let Begun { plan, stream, waiter, prefetching, elsewhere, notice } = begun??;
        let notice = notice.into_iter().chain(batch_rows.map(repeated::ran_again)).reduce(|one, other| format!("{one}; {other}"));
        let rows = Rows::of(stream, waiter, Arc::clone(&seen), engine.inner.settings.computing.clone());
        Ok(Self {
            operation: session.operation,
            schema: plan.schema(),
            rows: Some(rows),
            plan: Some(plan),
            seen,
            prefetching,
            elsewhere,
            notice,
            writes,
            session: Some(session),
        })
    }

    fn told(&self, error: DataFusionError) -> Error {
        // Sinks say what became of their files.
        let error = self.seen.rows_error().map_or(error, DataFusionError::Shared);
        seen_instead(&self.seen, text::named(self.plan.as_ref(), from_engine(error)))
    }

    fn watch(&self) -> Arc<dyn Fn() -> Progress + Send + Sync> {
        if let Some(elsewhere) = &self.elsewhere {
            return Arc::clone(elsewhere);
        }
        let (planned, seen) = (self.prefetching.planned(), Arc::clone(&self.seen));
        Arc::new(move || Progress {
            bytes_planned: planned.load(Ordering::Relaxed),
            bytes_read: seen.bytes_read(),
            ..Progress::default()
        })
    }

    fn spending(&self) -> Spending {
        let progress = self.watch();
        Arc::new(move || Spent { bytes_read: progress().bytes_read, tasks: progress().tasks })
    }
}

/// What a store said, when the engine's wrapping has lost what the caller must do.
fn seen_instead(seen: &Seen, error: Error) -> Error {
    match seen.error() {
        Some(below) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::Invalid | ErrorKind::Corrupt) => below,
        _ => error,
    }
}
