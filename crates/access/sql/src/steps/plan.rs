//! How deep the plan of a statement is, with all that stands on each other in it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, LogicalPlan};
use forebay_types::{Error, Result};

use super::STEPS_MAX;
use crate::error::from_engine;

/// Nodes and operators of a plan, one below the other: more than a statement has by itself, whose queries and views may stand on each
/// other.
const PLAN_STEPS_MAX: usize = STEPS_MAX + 1000;

/// Nodes of a plan. A query of WITH stands in it as often as it is named, so that few lines come to more than there is memory for.
const NODES_MAX: usize = 100_000;

/// Nodes and operators of a plan that is made into another one within some ten milliseconds. It takes a time that grows faster than they do.
const QUICK_PARTS: usize = 2000;

/// Whether it may take long to plan.
pub(crate) fn is_large(plan: &LogicalPlan) -> bool {
    let mut parts = 0;
    let counted = plan.apply_with_subqueries(|node| {
        parts += 1;
        node.apply_expressions(|expr| {
            expr.apply(|_| {
                parts += 1;
                Ok(if parts > QUICK_PARTS { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    });
    counted.is_ok() && parts > QUICK_PARTS
}

/// `Invalid` for a plan that is deeper, or larger.
pub(crate) fn check_plan(plan: &LogicalPlan) -> Result<()> {
    let mut depth = PlanDepth::default();
    plan.visit_with_subqueries(&mut depth).map_err(from_engine)?;
    if depth.nodes > NODES_MAX {
        return Err(Error::invalid(format!(
            "the plan has more than {NODES_MAX} nodes, since queries of WITH and views stand in it as often as they are named: write \
             what one of them gives into a file"
        )));
    }
    assert!(depth.way.is_empty() && depth.now == 0, "{} nodes were gone down to and not up from", depth.way.len());
    match depth.most <= PLAN_STEPS_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the plan is more than {PLAN_STEPS_MAX} steps deep, with the queries and views that stand on each other: write what one of \
             them gives into a file"
        ))),
    }
}

/// The most steps on a way down a plan: its nodes, and the deepest expression of each, as the optimizer may make one of all of them.
#[derive(Default)]
struct PlanDepth {
    way: Vec<usize>,
    now: usize,
    most: usize,
    nodes: usize,
}

impl<'n> TreeNodeVisitor<'n> for PlanDepth {
    type Node = LogicalPlan;

    fn f_down(&mut self, plan: &'n LogicalPlan) -> DataFusionResult<TreeNodeRecursion> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Ok(TreeNodeRecursion::Stop);
        }
        let mut deepest = 0;
        plan.apply_expressions(|expr| {
            let mut depth = ExprDepth::default();
            expr.visit(&mut depth)?;
            deepest = deepest.max(depth.most);
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.way.push(deepest + 1);
        self.now += deepest + 1;
        self.most = self.most.max(self.now);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _: &'n LogicalPlan) -> DataFusionResult<TreeNodeRecursion> {
        self.now -= self.way.pop().unwrap_or_default();
        Ok(TreeNodeRecursion::Continue)
    }
}

#[derive(Default)]
struct ExprDepth {
    now: usize,
    most: usize,
}

impl<'n> TreeNodeVisitor<'n> for ExprDepth {
    type Node = Expr;

    fn f_down(&mut self, _: &'n Expr) -> DataFusionResult<TreeNodeRecursion> {
        self.now += 1;
        self.most = self.most.max(self.now);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _: &'n Expr) -> DataFusionResult<TreeNodeRecursion> {
        self.now -= 1;
        Ok(TreeNodeRecursion::Continue)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::prelude::lit;

    use super::*;

    #[test]
    fn what_stands_on_each_other_is_as_deep_as_all_of_it() {
        let plan = |queries: usize| {
            let first = LogicalPlanBuilder::empty(true);
            let next = |plan: LogicalPlanBuilder, _| {
                let sum = (0..100).fold(lit(1), |sum, _| sum + lit(1));
                plan.project([sum.alias("a")]).unwrap()
            };
            (0..queries).fold(first, next).build().unwrap()
        };
        check_plan(&plan(50)).unwrap();
        let error = check_plan(&plan(80)).unwrap_err();
        assert!(error.message().contains("views"), "{error}");
    }

    #[test]
    fn a_plan_is_large_by_its_nodes_or_its_operators() {
        let of = |terms: i32| {
            let sums = (0..terms).map(|term| (lit(term) + lit(1)).alias(format!("a{term}")));
            LogicalPlanBuilder::empty(true).project(sums.collect::<Vec<_>>()).unwrap().build().unwrap()
        };
        assert!(!is_large(&of(100)) && is_large(&of(1000)));
        let unions =
            |times: i32| (0..times).fold(of(1), |plan, _| LogicalPlanBuilder::from(plan).union(of(1)).unwrap().build().unwrap());
        assert!(!is_large(&unions(100)) && is_large(&unions(500)));
    }

    #[test]
    fn what_few_lines_double_again_and_again_is_too_large() {
        let plan = |times: usize| {
            let first = LogicalPlanBuilder::empty(true).project([lit(1).alias("a")]).unwrap();
            let next = |plan: LogicalPlanBuilder, _| {
                let plan = plan.build().unwrap();
                LogicalPlanBuilder::from(plan.clone()).union(plan).unwrap()
            };
            (0..times).fold(first, next).build().unwrap()
        };
        check_plan(&plan(12)).unwrap();
        let error = check_plan(&plan(20)).unwrap_err();
        assert!(error.message().contains("as often as they are named"), "{error}");
    }
}
