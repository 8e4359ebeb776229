//! Planning ends where nobody waits for the statement any more: it gives way to nothing else, and of a long statement it takes a thread for
//! minutes. Looked up before each rule, and where the engine goes through a plan for a rule, at each node. And no rule makes large constants,
//! whoever has it optimize.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use forebay_runtime::deadline;
use forebay_types::Error;

use crate::functions::folding;

type Analyzing = dyn AnalyzerRule + Send + Sync;
type Logical = dyn OptimizerRule + Send + Sync;
type Physical = dyn PhysicalOptimizerRule + Send + Sync;

pub(super) fn analyzing(rule: &Arc<Analyzing>) -> Arc<Analyzing> {
    Arc::new(WhileWaited(Arc::clone(rule)))
}

pub(super) fn logical(rule: &Arc<Logical>) -> Arc<Logical> {
    Arc::new(WhileWaited(Arc::clone(rule)))
}

pub(super) fn physical(rule: &Arc<Physical>) -> Arc<Physical> {
    Arc::new(WhileWaited(Arc::clone(rule)))
}

/// A rule, for as long as somebody waits.
#[derive(Debug)]
struct WhileWaited<R: ?Sized>(Arc<R>);

fn check() -> Result<()> {
    match deadline::is_over() {
        true => Err(DataFusionError::External(Box::new(Error::closed("nobody waits for the statement any more")))),
        false => Ok(()),
    }
}

impl AnalyzerRule for WhileWaited<Analyzing> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for WhileWaited<Logical> {
    forebay_types::handed_on! {
        [0]
        fn name(&self) -> &str;
        fn apply_order(&self) -> Option<ApplyOrder>;
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        check()?;
        folding(|| self.0.rewrite(plan, config))
    }
}

impl PhysicalOptimizerRule for WhileWaited<Physical> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize_with_context(plan, context)
    }

    forebay_types::handed_on! {
        [0]
        fn name(&self) -> &str;
        fn schema_check(&self) -> bool;
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::optimizer::{Analyzer, Optimizer, OptimizerContext};
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
    use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
    use datafusion::prelude::lit;
    use forebay_runtime::deadline::Waiting;

    use super::*;

    #[tokio::test]
    async fn nothing_more_is_planned_for_who_is_gone() {
        let plan = LogicalPlanBuilder::empty(true).project([lit(1) + lit(2)]).unwrap().build().unwrap();
        let analyzer = Analyzer::with_rules(Analyzer::new().rules.iter().map(analyzing).collect());
        let optimizer = Optimizer::with_rules(Optimizer::new().rules.iter().map(logical).collect());
        let rules: Vec<_> = PhysicalOptimizer::new().rules.iter().map(physical).collect();
        let config = ConfigOptions::new();
        let plans = || {
            let row: Arc<dyn ExecutionPlan> = Arc::new(PlaceholderRowExec::new(Arc::clone(plan.schema().inner())));
            let analyzed = analyzer.execute_and_check(plan.clone(), &config, |_, _| {}).map(drop);
            let optimized = optimizer.optimize(plan.clone(), &OptimizerContext::new(), |_, _| {}).map(drop);
            let executed = rules.iter().try_fold(row, |row, rule| rule.optimize(row, &config)).map(drop);
            [analyzed, optimized, executed]
        };
        let waiting = Waiting::begin();
        for planned in waiting.waited().scope(async { plans() }).await {
            planned.unwrap();
        }
        let waited = waiting.waited();
        drop(waiting);
        for planned in waited.scope(async { plans() }).await {
            let error = planned.unwrap_err().to_string();
            assert!(error.contains("nobody waits"), "{error}");
        }
    }
}
