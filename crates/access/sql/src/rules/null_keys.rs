//! `is not distinct from` and `=` stay apart where one join has keys of both.
//!
//! A join takes nulls as equal in all of its keys or in none. `extract_equijoin_predicate` gave a join by `is not distinct from`
//! further keys by `=`, and `eliminate_cross_join` made one tree of joins of both kinds, all of the first one's: rows whose keys are
//! null came where `=` has none, and were missing where the other has them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::equal_projections::once_each;
use super::made_structs::fields_stay;
use super::no_groups::above_aggregates;
use super::one_type::OneType;
use super::{constant_values, dependencies};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;
/// What is done in the place of a rule, by that rule.
type Rewrite = fn(&Rule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A rule that rewrites what it may.
#[derive(Debug)]
struct Careful {
    rule: Rule,
    rewrite: Rewrite,
}

impl OptimizerRule for Careful {
    forebay_types::handed_on! {
        [rule]
        fn name(&self) -> &str;
        fn apply_order(&self) -> Option<ApplyOrder>;
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(&self.rule, plan, config)
    }
}

/// The rules of a session, with those that give wrong rows replaced.
pub(crate) fn careful(rules: &[Rule]) -> Vec<Rule> {
    let replaced = |rule: &Rule| {
        let rewrite: Rewrite = match rule.name() {
            "extract_equijoin_predicate" => no_further_keys,
            "eliminate_cross_join" => joins_of_their_own,
            "push_down_filter" => above_aggregates,
            "optimize_projections" => once_each,
            "extract_leaf_expressions" | "push_down_leaf_projections" => fields_stay,
            "eliminate_duplicated_expr" => dependencies::whole_orders,
            "replace_distinct_aggregate" => dependencies::made_distinct,
            "eliminate_join" => dependencies::joins_stay,
            "scalar_subquery_to_join" => constant_values::stand_alone,
            _ => return Arc::clone(rule),
        };
        Arc::new(Careful { rule: Arc::clone(rule), rewrite }) as Rule
    };
    let mut rules: Vec<Rule> = rules.iter().map(replaced).collect();
    let subqueries = ["decorrelate_predicate_subquery", "scalar_subquery_to_join", "decorrelate_lateral_join"];
    let after = rules.iter().rposition(|rule| subqueries.contains(&rule.name())).map_or(0, |last| last + 1);
    rules.insert(after, Arc::new(OneType));
    rules
}

/// Whether nulls are equal in a join's keys.
fn takes_nulls(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Finds keys among conditions, but for joins that take nulls already.
fn no_further_keys(rule: &Rule, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    if takes_nulls(&plan) { Ok(Transformed::no(plan)) } else { rule.rewrite(plan, config) }
}

/// Orders inner joins anew, each kind by itself: where they meet stands a projection of everything meanwhile, which the rule does
/// not look through.
fn joins_of_their_own(rule: &Rule, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    if !plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(join) if is_apart_join(join))))? {
        return rule.rewrite(plan, config);
    }
    let apart = plan.transform_up(|node| {
        Ok(Transformed::yes(match node {
            LogicalPlan::Join(join) if is_apart_join(&join) => everything(LogicalPlan::Join(with_inputs_apart(join)?))?,
            node => node,
        }))
    });
    rule.rewrite(apart.data()?, config)?.transform_data(|plan| plan.transform_up(|node| Ok(together(node))))
}

fn is_apart_join(join: &Join) -> bool {
    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull
}

fn with_inputs_apart(mut join: Join) -> Result<Join> {
    for input in [&mut join.left, &mut join.right] {
        if matches!(input.as_ref(), LogicalPlan::Join(_)) {
            *input = Arc::new(everything(input.as_ref().clone())?);
        }
    }
    Ok(join)
}

/// A projection of all that a plan has.
fn everything(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// Without such a projection, which changes nothing.
fn together(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(Projection { expr, input, schema, .. })
            if matches!(input.as_ref(), LogicalPlan::Join(_))
                && schema == *input.schema()
                && expr.iter().zip(input.schema().columns()).all(|(shown, column)| *shown == Expr::Column(column)) =>
        {
            Transformed::yes(Arc::unwrap_or_clone(input))
        }
        plan => Transformed::no(plan),
    }
}
