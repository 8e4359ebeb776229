//! The engine's rules of planning, each where it answers rightly.
//!
//! Owns: what is put around rules of DataFusion that gave rows that are wrong, or plans that let nothing else run; a line of each
//! says which. And the order of joins (`join_order`), which DataFusion leaves as it was written, and the end of planning for who no
//! longer waits (`while_waited`).
//! Never does: choose how anything else is run.
//!
//! Start with [`analyzing`], [`logical`] and [`physical`].

mod by_name;
mod constant_values;
mod dependencies;
mod equal_projections;
mod join_order;
mod known;
mod lambdas;
mod made_structs;
mod meaning;
mod no_groups;
mod null_keys;
mod one_type;
mod required_fields;
mod while_waited;
mod whole_orders;
mod yields;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, RelationPlanner};
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use required_fields::{is_somewhere_required, of_one_file, somewhere_required};

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;
type Analyzing = Arc<dyn AnalyzerRule + Send + Sync>;
type Logical = Arc<dyn OptimizerRule + Send + Sync>;
type Plan = Arc<dyn ExecutionPlan>;

/// What plans expressions of a session, in turn.
pub(crate) fn planners(planners: &[Arc<dyn ExprPlanner>]) -> Vec<Arc<dyn ExprPlanner>> {
    let first: Arc<dyn ExprPlanner> = Arc::new(required_fields::RequiredFields);
    std::iter::once(first).chain(planners.iter().map(Arc::clone)).collect()
}

/// What plans tables and queries that stand in `from`, in turn.
pub(crate) fn relations(planners: &[Arc<dyn RelationPlanner>]) -> Vec<Arc<dyn RelationPlanner>> {
    let first: Arc<dyn RelationPlanner> = Arc::new(dependencies::Untold);
    std::iter::once(first).chain(planners.iter().map(Arc::clone)).collect()
}

/// The rules of a session that look at what a statement means.
pub(crate) fn analyzing(rules: &[Analyzing]) -> Vec<Analyzing> {
    meaning::around(rules).iter().map(while_waited::analyzing).collect()
}

/// The rules of a session that make a better plan of the same rows.
pub(crate) fn logical(rules: &[Logical]) -> Vec<Logical> {
    null_keys::careful(rules).iter().map(while_waited::logical).collect()
}

/// The rules of a session that make a plan of execution. Where it is asked for, the engine's `WindowTopN` leaves rows out that other windows of
/// the same order look at (`lead`), ends in a panic for none of them (`row_number() .. < 1`), and holds what it finds in no budget.
pub(crate) fn physical(rules: &[Rule]) -> Vec<Rule> {
    let mut rules = by_name::careful(rules);
    rules.retain(|rule| rule.name() != "WindowTopN");
    let before_sides = rules.iter().position(|rule| rule.name() == "join_selection").unwrap_or(0);
    rules.insert(before_sides, Arc::new(join_order::JoinOrder::default()));
    let before_filters = rules.iter().rposition(|rule| rule.name().starts_with("FilterPushdown")).unwrap_or(rules.len());
    rules.insert(before_filters, Arc::new(EachNode { name: "WholeOrders", change: whole_orders::whole_orders }));
    rules.insert(0, Arc::new(EachNode { name: "GroupingSets", change: known::grouping_sets }));
    rules.insert(0, Arc::new(EachNode { name: "OuterJoins", change: known::outer_joins }));
    rules.insert(0, Arc::new(EachNode { name: "LambdaVariables", change: lambdas::behind_columns }));
    rules.push(Arc::new(EachNode { name: "Yields", change: yields::yields }));
    rules.iter().map(while_waited::physical).collect()
}

/// Has joins hand down what they find, in a plan that was made without that.
pub(crate) fn with_join_filters(plan: Plan, config: &ConfigOptions) -> Result<Plan> {
    let mut config = config.clone();
    config.optimizer.enable_join_dynamic_filter_pushdown = true;
    let rule: Rule = Arc::new(FilterPushdown::new_post_optimization());
    by_name::careful(&[rule]).iter().try_fold(plan, |plan, rule| rule.optimize(plan, &config))
}

/// A rule that looks at each node by itself, those below before it.
#[derive(Debug)]
struct EachNode {
    name: &'static str,
    change: fn(Plan) -> Result<Transformed<Plan>>,
}

impl PhysicalOptimizerRule for EachNode {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(self.change).data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
