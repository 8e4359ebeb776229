//! A plan that was made begins: elsewhere, where it can run there and that pays, else here.

use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use forebay_types::Result;

use super::away;
use super::rows::Waiter;
use super::written::shown_whole;
use crate::distribute::{DistributedRun, Progress};
use crate::engine::Engine;
use crate::engine::session::QuerySession;
use crate::error::from_engine;
use crate::hot;
use crate::prefetch::Prefetching;
use crate::shards::with_keys;

/// A plan whose rows come when they are asked for.
pub(super) struct Begun {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) stream: SendableRecordBatchStream,
    pub(super) waiter: Waiter,
    pub(super) prefetching: Prefetching,
    pub(super) elsewhere: Option<Arc<dyn Fn() -> Progress + Send + Sync>>,
    pub(super) notice: Option<String>,
}

/// Looks what a plan will read, and has it read ahead here, or run elsewhere.
pub(super) async fn begin(engine: &Engine, session: &QuerySession, sql: &str, plan: Arc<dyn ExecutionPlan>) -> Result<Begun> {
    let waiter = Waiter::new();
    let notice = match away::begin(engine, session, sql, &plan).await? {
        away::Begun::There(DistributedRun { stream, progress }) => {
            let (prefetching, elsewhere) = (Prefetching::default(), Some(progress));
            return Ok(Begun { plan, stream, waiter, prefetching, elsewhere, notice: None });
        }
        away::Begun::Here(notice) => notice,
    };
    let plan = away::as_here(engine, session, plan)?;
    let context = with_keys(&plan, session.context.task_ctx());
    let prefetching = Prefetching::start(&plan, &context, session.fetcher.clone(), session.cells.as_ref());
    let plan = match &session.cells {
        Some(cells) => hot::apply(plan, cells, &context.runtime_env()).map_err(from_engine)?,
        None => plan,
    };
    let whole = shown_whole(Arc::clone(&plan), &session.seen).map_err(from_engine)?;
    let stream = execute_stream(engine.ready(whole, Some(&waiter.waited()))?, context).map_err(from_engine)?;
    Ok(Begun { plan, stream, waiter, prefetching, elsewhere: None, notice })
}
