//! Rules of the engine that hand something down a plan by the names of columns, stopped where a name means something else.
//!
//! `FilterPushdown` hands filters down. Behind a join of two tables that both have `id`, a filter of one became a filter of the
//! other, and rows were missing. `LimitAggregation` hands the limit of a sort down to the groups that it sorts. It went through
//! windows, whose rows need others than the first ones, and through `-k as k`, whose first rows are the last of `k`. `EnsureRequirements`
//! puts the keys of groups into the order of a join's, and finds them again by their names: of `group by a.id, b.id` it showed one twice.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use crate::plan_nodes::{only_child, shown_by_name};

type Plan = Arc<dyn ExecutionPlan>;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The rules of a session, with those that go by names replaced.
pub(crate) fn careful(rules: &[Rule]) -> Vec<Rule> {
    let replaced = |rule: &Rule| {
        let stops_at: fn(&Plan) -> bool = match rule.name() {
            "LimitAggregation" => changes_the_first,
            name if name.starts_with("FilterPushdown") => misleads,
            "EnsureRequirements" => return Arc::new(InOrder { rule: Arc::clone(rule) }) as Rule,
            _ => return Arc::clone(rule),
        };
        Arc::new(Careful { rule: Arc::clone(rule), stops_at }) as Rule
    };
    rules.iter().map(replaced).collect()
}

/// A rule that is kept from going further down where names are not enough.
#[derive(Debug)]
struct Careful {
    rule: Rule,
    stops_at: fn(&Plan) -> bool,
}

impl PhysicalOptimizerRule for Careful {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let guarded = plan.transform_up(|node| {
            Ok(if (self.stops_at)(&node) { Transformed::yes(Arc::new(Guard(node)) as Plan) } else { Transformed::no(node) })
        })?;
        let done = self.rule.optimize(guarded.data, config)?;
        let without = |node: Plan| {
            Ok(match node.downcast_ref::<Guard>() {
                Some(Guard(below)) => Transformed::yes(Arc::clone(below)),
                None => Transformed::no(node),
            })
        };
        let done = done.transform_up(without).data()?;
        debug_assert!(!done.exists(|node| Ok(node.is::<Guard>())).unwrap_or(false), "guards are of one rule");
        Ok(done)
    }

    forebay_types::handed_on! {
        [rule]
        fn name(&self) -> &str;
        fn schema_check(&self) -> bool;
    }
}

/// A rule that leaves keys of groups in their order where two of them have one name.
#[derive(Debug)]
struct InOrder {
    rule: Rule,
}

impl PhysicalOptimizerRule for InOrder {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if !plan.exists(|node| Ok(node.is::<AggregateExec>() && repeats_names(node)))? {
            return self.rule.optimize(plan, config);
        }
        let mut config = config.clone();
        config.optimizer.top_down_join_key_reordering = false;
        self.rule.optimize(plan, &config)
    }

    forebay_types::handed_on! {
        [rule]
        fn name(&self) -> &str;
        fn schema_check(&self) -> bool;
    }
}

/// Whether a column of a node, or below it, may be taken for another one by its name.
fn misleads(node: &Plan) -> bool {
    if repeats_names(node) {
        return true;
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return matches!(join.join_type(), JoinType::LeftSemi | JoinType::RightSemi) && keys_mislead(join);
    }
    // What its input does not take it takes itself, by names of that.
    node.downcast_ref::<FilterExec>().is_some_and(|filter| repeats_names(filter.input()))
}

/// Whether the first rows of a node may come from others than the first of its input, by a column of the same name, or have no order.
fn changes_the_first(node: &Plan) -> bool {
    if node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>() || repeats_names(node) {
        return true;
    }
    if node.is::<AggregateExec>() {
        // The few groups that are kept can't be told in order where one of them is NaN: that was a panic.
        return node.schema().fields().iter().any(|field| field.data_type().is_floating());
    }
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return false };
    let is_below = |name: &str| projection.input().exists(|node| Ok(node.schema().index_of(name).is_ok())).unwrap_or(true);
    let column = |of: &ProjectionExpr| of.expr.downcast_ref::<Column>().map(|column| column.name().to_string());
    projection.expr().iter().any(|shown| match column(shown) {
        None => is_below(&shown.alias),
        // The rule follows a name, and would follow the one that it found once more.
        Some(name) => projection.expr().iter().any(|other| other.alias == name && column(other).as_ref() != Some(&name)),
    })
}

fn repeats_names(node: &Plan) -> bool {
    let schema = node.schema();
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
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

/// Lets nothing through. It is there while the rule runs only.
#[derive(Debug)]
struct Guard(Plan);

shown_by_name!(Guard);

impl ExecutionPlan for Guard {
    fn name(&self) -> &str {
        "Guard"
    }

    crate::as_its_input!(0);

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Ok(Arc::new(Self(only_child(children)?)))
    }
}
