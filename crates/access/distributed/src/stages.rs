//! What a plan must be so that its stages answer as the whole does.
//!
//! Ballista cuts a plan into stages where rows are exchanged, runs each stage's partitions in tasks of their own, and changes joins
//! while it cuts. What the engine has planned for one process does not always hold then: rows came twice or not at all. These rules
//! come into the engine's planning, so that the cut finds nothing to change and takes nothing away.

use std::sync::Arc;

use ballista_core::config::BallistaConfig;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildSatisfactionOptions, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary,
};

type Plan = Arc<dyn ExecutionPlan>;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The engine's rules with those of this file among them.
pub(crate) fn rules() -> Vec<Rule> {
    let mut rules = PhysicalOptimizer::new().rules;
    let at = |rules: &[Rule], name: &str| rules.iter().position(|rule| rule.name() == name);
    let after_joins = at(&rules, "join_selection").map_or(0, |at| at + 1);
    rules.insert(after_joins, Arc::new(ShuffledJoins));
    let before_check = at(&rules, "SanityCheckPlan").unwrap_or(rules.len());
    rules.insert(before_check, Arc::new(WithinStages));
    rules
}

/// Joins whose small side can't be passed to everyone are shuffled.
///
/// Ballista does this itself, but when the plan is done: what is above then reads one partition where there are many now, and the
/// rows of the others are missing. So it has to be done before the engine puts exchanges into the plan.
#[derive(Debug)]
struct ShuffledJoins;

impl PhysicalOptimizerRule for ShuffledJoins {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let join = node.downcast_ref::<HashJoinExec>().filter(|join| is_undone(join, config));
            Ok(match join {
                Some(join) => {
                    let shuffled = join.builder().with_partition_mode(PartitionMode::Partitioned).build_exec()?;
                    Transformed::yes(shuffled)
                }
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "ShuffledJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether Ballista would take back that a join's left side is passed to everyone.
fn is_undone(join: &HashJoinExec, config: &ConfigOptions) -> bool {
    let collects = *join.partition_mode() == PartitionMode::CollectLeft;
    collects && !join.null_aware && (tells_of_the_left(*join.join_type()) || !is_small(join.left().as_ref(), config))
}

/// Whether rows come for rows of the left side by whether any row of the right side goes with them. Tasks that each have some of
/// the right side can't say.
fn tells_of_the_left(kind: JoinType) -> bool {
    !matches!(kind, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark)
}

/// Bytes of a value that Ballista counts with.
fn value_bytes(kind: &DataType) -> usize {
    match kind {
        DataType::Boolean | DataType::Int8 | DataType::UInt8 => 1,
        DataType::Int16 | DataType::UInt16 => 2,
        DataType::Int32 | DataType::UInt32 | DataType::Float32 | DataType::Date32 => 4,
        DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Date64 => 8,
        DataType::Decimal128(_, _) => 16,
        _ => 32,
    }
}

/// Whether Ballista takes a side for small enough, by its own count (`broadcast_size_under_threshold`, which is not public).
fn is_small(side: &dyn ExecutionPlan, config: &ConfigOptions) -> bool {
    let threshold = |ballista: &BallistaConfig| ballista.broadcast_join_threshold_bytes();
    let most = config.extensions.get::<BallistaConfig>().map_or_else(|| threshold(&BallistaConfig::default()), threshold);
    let Ok(found) = StatisticsContext::new().compute(side, &StatisticsArgs::new()) else { return false };
    let known = |value: Option<&usize>| value.copied().filter(|value| *value != 0);
    let row_bytes: usize = side.schema().fields().iter().map(|field| value_bytes(field.data_type())).sum();
    let by_rows = || known(found.num_rows.get_value()).map(|rows| rows.saturating_mul(row_bytes.max(8)));
    known(found.total_byte_size.get_value()).or_else(by_rows).is_some_and(|bytes| bytes < most)
}

/// What a node asks of its input holds within its stage, and what one process must see whole is in one task.
#[derive(Debug)]
struct WithinStages;

impl PhysicalOptimizerRule for WithinStages {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| in_one_task(node)?.transform_data(spread_within)?.transform_data(sorted_within)).data()
    }

    fn name(&self) -> &'static str {
        "WithinStages"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Joins that tell of the left side by all of the right one, and can't be shuffled, see it whole: each task would tell of its own part.
/// Those are joins without a key, and anti joins that a null on the right decides.
fn in_one_task(node: Plan) -> Result<Transformed<Plan>> {
    let (left, right) = if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && tells_of_the_left(*join.join_type())
    {
        (join.left(), join.right())
    } else if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && join.null_aware
        && *join.partition_mode() == PartitionMode::CollectLeft
    {
        (join.left(), join.right())
    } else {
        return Ok(Transformed::no(node));
    };
    if right.is::<GlobalLimitExec>() {
        return Ok(Transformed::no(node));
    }
    let both = vec![Arc::clone(left), whole(Arc::clone(right))];
    Ok(Transformed::yes(replace_children_if_necessary(node, both)?))
}

/// All of a side in one partition, also where it is one already: a scan may be cut into several tasks later. The limit limits
/// nothing. It asks for one partition, as these joins don't: Ballista takes away what brings partitions together unasked.
fn whole(side: Plan) -> Plan {
    Arc::new(GlobalLimitExec::new(Arc::new(CoalescePartitionsExec::new(side)), 0, None))
}

/// Exchanges where rows are together by their keys only because of a constant behind another exchange. The engine plans again when
/// the plan is cut, misses it there and puts the exchange within the stage: its tasks run one partition each, and it has many.
fn spread_within(node: Plan) -> Result<Transformed<Plan>> {
    let asked = node.input_distribution_requirements();
    let subset = ChildSatisfactionOptions::new().with_allow_subset(true);
    let mut children: Vec<Plan> = node.children().into_iter().cloned().collect();
    let mut is_changed = false;
    for (at, child) in children.iter_mut().enumerate() {
        let Some(Distribution::KeyPartitioned(keys)) = asked.child_distribution(at) else { continue };
        let Partitioning::Hash(_, partitions @ 2..) = child.output_partitioning().clone() else { continue };
        let seen = as_its_stage_sees(child)?;
        let is_spread =
            |child: &Plan| Ok::<_, DataFusionError>(asked.child_satisfaction(at, child.as_ref(), subset)?.is_satisfied());
        if is_spread(child)? && !is_spread(&seen)? {
            let keys = Partitioning::Hash(keys.clone(), partitions);
            *child = Arc::new(RepartitionExec::try_new(Arc::clone(child), keys)?);
            is_changed = true;
        }
    }
    Ok(if is_changed { Transformed::yes(replace_children_if_necessary(node, children)?) } else { Transformed::no(node) })
}

/// Sorts where an order comes from behind an exchange: what reads another stage's rows knows nothing of their order, nor of their
/// constants.
fn sorted_within(node: Plan) -> Result<Transformed<Plan>> {
    if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() {
        return Ok(merged_for_good(merge).map_or(Transformed::no(node), Transformed::yes));
    }
    let mut children: Vec<Plan> = node.children().into_iter().cloned().collect();
    let mut is_changed = false;
    for (child, asked) in children.iter_mut().zip(node.required_input_ordering()) {
        let Some(asked) = asked.map(|asked| asked.into_single()) else { continue };
        let seen = as_its_stage_sees(child)?;
        if seen.equivalence_properties().ordering_satisfy_requirement(asked.clone())? {
            continue;
        }
        if let Some(order) = LexOrdering::new(asked.into_iter().map(PhysicalSortExpr::from)) {
            let partitions = child.output_partitioning().partition_count() > 1;
            *child = Arc::new(SortExec::new(order, Arc::clone(child)).with_preserve_partitioning(partitions));
            is_changed = true;
        }
    }
    Ok(if is_changed { Transformed::yes(replace_children_if_necessary(node, children)?) } else { Transformed::no(node) })
}

/// A merge that does not lose what it is for. It merges rows of another stage, written in their order; where it does not find its order in
/// them, as with what only the stage before knows to be constant or equal, it is given up when the plan is cut, and its limit with it:
/// each task gave so many rows. One with a limit reads few rows, and sorts them; one without names no constants.
fn merged_for_good(merge: &SortPreservingMergeExec) -> Option<Plan> {
    let input = merge.input();
    if merge.fetch().is_some() {
        let all = Arc::new(CoalescePartitionsExec::new(Arc::clone(input)));
        return Some(Arc::new(SortExec::new(merge.expr().clone(), all).with_fetch(merge.fetch())));
    }
    let order = input.equivalence_properties().normalize_sort_exprs(merge.expr().iter().cloned())?;
    (order != *merge.expr()).then(|| Arc::new(SortPreservingMergeExec::new(order, Arc::clone(input))) as Plan)
}

/// The part of a plan that is in the stage of its root; for the rest stands what says nothing of its rows.
fn as_its_stage_sees(node: &Plan) -> Result<Plan> {
    if let Some(exchange) = node.downcast_ref::<RepartitionExec>() {
        let spread = exchange.partitioning().clone();
        return Ok(Arc::new(RepartitionExec::try_new(unknown(exchange.input()), spread)?));
    }
    if node.is::<CoalescePartitionsExec>() || node.is::<UnionExec>() {
        return Ok(unknown(node));
    }
    let merges = node.is::<SortPreservingMergeExec>();
    let collects = node.downcast_ref::<HashJoinExec>().is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft);
    let children = node.children();
    if children.is_empty() {
        return Ok(Arc::clone(node));
    }
    let seen = children.iter().enumerate().map(|(at, child)| match merges || (collects && at == 0) {
        true => Ok(unknown(child)),
        false => as_its_stage_sees(child),
    });
    let seen = seen.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(Arc::clone(node), seen)
}

fn unknown(node: &Plan) -> Plan {
    let partitions = node.output_partitioning().partition_count();
    Arc::new(EmptyExec::new(node.schema()).with_partitions(partitions))
}
