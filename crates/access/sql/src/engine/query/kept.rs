//! The rows of `CREATE TABLE .. AS`, made as those of any statement: within its bounds, and for as long as somebody waits.

use std::sync::Arc;

use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::collect_partitioned;
use forebay_runtime::deadline;
use forebay_types::Result;

use super::planner::physical;
use crate::engine::Engine;
use crate::engine::session::QuerySession;
use crate::error::{from_engine, twice};

/// What the rows of a table are read from that are made already.
const MADE: &str = "__made";

/// A statement whose table's rows are made, where it makes one; as it is where it does not, or is refused.
pub(super) async fn with_rows(engine: &Engine, session: &QuerySession, logical: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) = logical else { return Ok(logical) };
    if makes_none(session, &table).await {
        return Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)));
    }
    // Planned as it is written: what is optimized already would be looked at once more, and some joins be taken for others.
    let plan = Box::pin(physical(engine, session.context.state(), &table.input)).await?;
    let schema = plan.schema();
    let plan = engine.ready(plan, Some(&deadline::waited()))?;
    let parts = collect_partitioned(plan, session.context.task_ctx()).await.map_err(from_engine)?;
    let rows = Arc::new(MemTable::try_new(schema, parts).map_err(from_engine)?);
    let made = LogicalPlanBuilder::scan(MADE, provider_as_source(rows), None).and_then(LogicalPlanBuilder::build);
    table.input = Arc::new(made.map_err(from_engine)?);
    Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
}

/// Whether the engine makes no rows for a table: there is one already, or it is refused.
async fn makes_none(session: &QuerySession, table: &CreateMemoryTable) -> bool {
    if table.temporary || twice(table.input.schema().fields().iter().map(|field| field.name().as_str())).is_some() {
        return true;
    }
    let is_there = session.context.table_provider(table.name.clone()).await.is_ok();
    is_there && (table.if_not_exists || !table.or_replace)
}
