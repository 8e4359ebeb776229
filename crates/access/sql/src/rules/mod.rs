//! The engine's rules of planning, each where it answers rightly.
//!
//! Owns: what is put around rules of DataFusion that gave rows that are wrong, or plans that let nothing else run; a line of each
//! says which. And the order of joins (`join_order`), which DataFusion leaves as it was written.
//! Never does: choose how anything else is run.
//!
//! Start with [`logical`] and [`physical`].

mod by_name;
mod grouping;
mod join_order;
mod no_groups;
mod null_keys;
mod one_type;
mod required_fields;
mod whole_orders;
mod yields;

use std::sync::Arc;

use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

pub(crate) use null_keys::careful as logical;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// What plans expressions of a session, in turn.
pub(crate) fn planners(planners: &[Arc<dyn ExprPlanner>]) -> Vec<Arc<dyn ExprPlanner>> {
    let first: Arc<dyn ExprPlanner> = Arc::new(required_fields::RequiredFields);
    std::iter::once(first).chain(planners.iter().map(Arc::clone)).collect()
}

/// The rules of a session that make a plan of execution.
pub(crate) fn physical(rules: &[Rule]) -> Vec<Rule> {
    let mut rules = by_name::careful(rules);
    let before_sides = rules.iter().position(|rule| rule.name() == "join_selection").unwrap_or(0);
    rules.insert(before_sides, Arc::new(join_order::JoinOrder::default()));
    let before_filters = rules.iter().rposition(|rule| rule.name().starts_with("FilterPushdown")).unwrap_or(rules.len());
    rules.insert(before_filters, Arc::new(whole_orders::WholeOrders));
    rules.insert(0, Arc::new(grouping::GroupingSets));
    rules.push(Arc::new(yields::Yields));
    rules
}
