//! Makes plans of execution, large ones in turn.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use crate::engine::Engine;
use crate::steps;

/// The plan that the engine makes. What is large takes long, and its turn where others have their statements planned as well.
pub(super) async fn attempt(engine: &Engine, state: &SessionState, logical: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let planning = state.create_physical_plan(logical);
    match &engine.inner.settings.computing {
        Some(computing) if steps::is_large(logical) => computing.in_turns(planning).await,
        _ => planning.await,
    }
}
