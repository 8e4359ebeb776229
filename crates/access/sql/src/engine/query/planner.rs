//! Makes plans of execution, large ones in turn.

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use forebay_types::Result;

use crate::engine::Engine;
use crate::error::from_engine;
use crate::steps;

/// The plan that runs. The rule that takes fields out of structs early gives two of them one name now and then: what it makes a plan of that
/// can't be is planned without it.
pub(crate) async fn physical(engine: &Engine, mut state: SessionState, logical: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    // EXPLAIN has an error for one of its rows.
    let explained = match logical {
        LogicalPlan::Explain(explain) => Some(explain.plan.as_ref()),
        _ => None,
    };
    let planned = attempt(engine, &state, explained.unwrap_or(logical)).await;
    match planned {
        Err(error) if is_of_extraction(&error) => {
            state.config_mut().options_mut().optimizer.enable_leaf_expression_pushdown = false;
        }
        planned if explained.is_none() => return planned.map_err(from_engine),
        _ => {}
    }
    attempt(engine, &state, logical).await.map_err(from_engine)
}

fn is_of_extraction(error: &DataFusionError) -> bool {
    let text = error.to_string();
    ["push_down_leaf_projections", "__datafusion_extracted_"].iter().any(|name| text.contains(name))
}

/// The plan that the engine makes. What is large takes long, and its turn where others have their statements planned as well.
pub(super) async fn attempt(
    engine: &Engine,
    state: &SessionState,
    logical: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let planning = state.create_physical_plan(logical);
    match &engine.inner.settings.computing {
        Some(computing) if steps::is_large(logical) => computing.in_turns(planning).await,
        _ => planning.await,
    }
}
