//! Filters that are pushed through plans keep to their columns where several have one name.
//!
//! The engine's rule `FilterPushdown` hands a filter from node to node by the names of its columns. Behind a join of two tables
//! that both have `id`, a filter of one became a filter of the other, and rows were missing. Here filters stay above each node
//! where a name may mean something else; all others go on as before.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rules of a session, with those that push filters replaced.
pub(crate) fn careful(rules: &[Rule]) -> Vec<Rule> {
    rules
        .iter()
        .map(|rule| match rule.name().starts_with("FilterPushdown") {
            true => Arc::new(Careful(Arc::clone(rule))) as Rule,
            false => Arc::clone(rule),
        })
        .collect()
}

/// A rule that pushes filters, kept from pushing them where names are not enough.
#[derive(Debug)]
struct Careful(Rule);

impl PhysicalOptimizerRule for Careful {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let guarded = plan.transform_up(|node| {
            Ok(match misleads(&node) {
                true => Transformed::yes(Arc::new(Guard(node)) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(node),
            })
        })?;
        let pushed = self.0.optimize(guarded.data, config)?;
        let without = |node: Arc<dyn ExecutionPlan>| {
            Ok(match node.downcast_ref::<Guard>() {
                Some(Guard(below)) => Transformed::yes(Arc::clone(below)),
                None => Transformed::no(node),
            })
        };
        pushed.transform_up(without).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether a column of a node, or below it, may be taken for another one by its name.
fn misleads(node: &Arc<dyn ExecutionPlan>) -> bool {
    if repeats_names(node) {
        return true;
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return is_semi(*join.join_type()) && keys_mislead(join);
    }
    // What its input does not take it takes itself, by names of that.
    node.downcast_ref::<FilterExec>().is_some_and(|filter| repeats_names(filter.input()))
}

fn repeats_names(node: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = node.schema();
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

fn is_semi(kind: JoinType) -> bool {
    matches!(kind, JoinType::LeftSemi | JoinType::RightSemi)
}

/// Filters of one side's keys go to the other side too, to a column of the same name: that has to be the key there.
fn keys_mislead(join: &HashJoinExec) -> bool {
    let of = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().map(|column| column.name().to_string());
    let (left, right) = (join.left().schema(), join.right().schema());
    join.on().iter().any(|(here, there)| match (of(here), of(there)) {
        (Some(here), Some(there)) if here == there => false,
        (here, there) => {
            here.is_some_and(|name| right.index_of(&name).is_ok()) || there.is_some_and(|name| left.index_of(&name).is_ok())
        }
    })
}

/// Lets no filter through. It is there while the rule runs only.
#[derive(Debug)]
struct Guard(Arc<dyn ExecutionPlan>);

impl DisplayAs for Guard {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guard")
    }
}

impl ExecutionPlan for Guard {
    fn name(&self) -> &str {
        "Guard"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.0]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [below] =
            <[_; 1]>::try_from(children).or_else(|others| internal_err!("one node is expected, not {}", others.len()))?;
        Ok(Arc::new(Self(below)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.0.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, of_input: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&of_input[0]))
    }
}
