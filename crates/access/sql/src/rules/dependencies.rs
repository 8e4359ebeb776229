//! What columns determine others, forgotten where the engine plans by it: of groups above a join it is told wrongly.
//!
//! Behind a join a key of one side (`select k .. group by k`) determines that side's columns only. The engine says of groups by it and a
//! column of the other side that the key determines all of them, and that it comes once: `group by` and `order by` lost their other columns,
//! and a left join with such groups was left out. To the keys of groups it adds all columns that these are told to determine, and windows in such an
//! order it takes for ones without rows that are alike: where a query is named in another, nothing is told of it.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, FunctionalDependencies};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Distinct, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::sql::sqlparser::ast::TableFactor;

use super::meaning;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

fn are_told(schema: &DFSchemaRef) -> bool {
    !schema.functional_dependencies().is_empty()
}

/// Orders are kept as they are where anything is told.
pub(super) fn whole_orders(rule: &Rule, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) if are_told(sort.input.schema()) => Ok(Transformed::no(LogicalPlan::Sort(sort))),
        plan => rule.rewrite(plan, config),
    }
}

/// Rows that are distinct are made so.
pub(super) fn made_distinct(rule: &Rule, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) if are_told(input.schema()) => {
            let input = Arc::new(forget(Arc::unwrap_or_clone(input))?.data);
            rule.rewrite(LogicalPlan::Distinct(Distinct::All(input)), config)
        }
        plan => rule.rewrite(plan, config),
    }
}

/// Joins stay where something is told of what groups are made of.
pub(super) fn joins_stay(rule: &Rule, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let mut misled = false;
    plan.apply_with_subqueries(|node| {
        misled |= matches!(node, LogicalPlan::Aggregate(groups) if are_told(groups.input.schema()));
        misled |= matches!(node, LogicalPlan::Distinct(Distinct::All(input)) if are_told(input.schema()));
        Ok(if misled { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    match misled {
        true => Ok(Transformed::no(plan)),
        false => rule.rewrite(plan, config),
    }
}

/// The same plan, of which nothing is told.
pub(super) fn forget(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|mut node| {
        let was_told = forget_node(&mut node)?;
        Ok(Transformed::new_transformed(node, was_told))
    })
}

/// Forgets what is told by a node itself. Whether anything was.
fn forget_node(node: &mut LogicalPlan) -> Result<bool> {
    let schema = match node {
        LogicalPlan::Projection(node) => &mut node.schema,
        LogicalPlan::SubqueryAlias(node) => &mut node.schema,
        LogicalPlan::Aggregate(node) => &mut node.schema,
        LogicalPlan::Window(node) => &mut node.schema,
        LogicalPlan::Join(node) => &mut node.schema,
        LogicalPlan::Unnest(node) => &mut node.schema,
        LogicalPlan::Distinct(Distinct::On(node)) => &mut node.schema,
        LogicalPlan::TableScan(node) => &mut node.projected_schema,
        _ => return Ok(false),
    };
    let told = are_told(schema);
    if told {
        let bare = DFSchema::clone(schema).with_functional_dependencies(FunctionalDependencies::empty())?;
        *schema = Arc::new(bare);
        debug_assert!(!are_told(schema), "something is told of columns that was forgotten");
    }
    Ok(told)
}

thread_local! {
    /// Whether what is planned next is the engine's to plan, which asks here first.
    static HANDED_ON: Cell<bool> = const { Cell::new(false) };
}

/// Has the engine plan what stands in `from`, and that tell nothing of its groups, without orders that nobody sees.
#[derive(Debug)]
pub(super) struct Untold;

impl RelationPlanner for Untold {
    fn plan_relation(&self, relation: TableFactor, context: &mut dyn RelationPlannerContext) -> Result<RelationPlanning> {
        if HANDED_ON.replace(false) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        HANDED_ON.set(true);
        let plan = meaning::left_out(untold(context.plan(relation)?)?)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// The same plan, which tells nothing of groups to what is above it. What tables are declared with is told.
fn untold(plan: LogicalPlan) -> Result<LogicalPlan> {
    let makes_groups = |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_)));
    if !are_told(plan.schema()) || !plan.exists(makes_groups)? {
        return Ok(plan);
    }
    let silent = |mut node: LogicalPlan| -> Result<Transformed<LogicalPlan>> {
        let tells = are_told(node.schema());
        let was_told = tells && forget_node(&mut node)?;
        // Others tell what is told below them.
        let next = if tells && !was_told { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Jump };
        Ok(Transformed::new(node, was_told, next))
    };
    let plan = plan.transform_down(silent).data()?;
    debug_assert!(!are_told(plan.schema()), "something is told of groups that stand in `from`");
    Ok(plan)
}
