//! The engine's rules of planning, each where it answers rightly.
//!
//! Owns: what is put around rules of DataFusion that gave rows that are wrong, or plans that let nothing else run; a line of each
//! says which.
//! Never does: plan by itself.
//!
//! Start with [`logical`] and [`physical`].

mod by_name;
mod no_groups;
mod null_keys;
mod yields;

use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;

pub(crate) use null_keys::careful as logical;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rules of a session that make a plan of execution.
pub(crate) fn physical(rules: &[Rule]) -> Vec<Rule> {
    let mut rules = by_name::careful(rules);
    rules.push(Arc::new(yields::Yields));
    rules
}
