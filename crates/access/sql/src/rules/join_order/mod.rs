//! Inner joins in an order of which fewer rows come, where the one that a statement names them in has many more than it needs.
//!
//! The engine joins tables as they are named, and only says which side of a join a hash table is made of. Two large tables that stand beside each
//! other are joined before what few rows are left of them by others: a thousand times the rows, and most of a statement's time. `order` finds the
//! order by what is known of the files (rows, least and most of a column, what filters leave); this puts the plan together anew.
//! `SET datafusion.optimizer.join_reordering = false` turns it off.

mod order;
mod parts;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use order::Bar;
use parts::Parts;

type Plan = Arc<dyn ExecutionPlan>;

/// Comes before the sides of joins are chosen, and before anything is exchanged or sorted for them.
#[derive(Debug)]
pub(super) struct JoinOrder(Bar);

impl Default for JoinOrder {
    /// A million rows are some ten milliseconds.
    fn default() -> Self {
        Self(Bar { rows: 1e6, times: 3.0 })
    }
}

impl PhysicalOptimizerRule for JoinOrder {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if !config.optimizer.join_reordering {
            return Ok(plan);
        }
        let reordered = |node: Plan| {
            Ok(if let Some(reordered) = self.reordered(&node) { Transformed::yes(reordered) } else { Transformed::no(node) })
        };
        plan.transform_up(reordered).data()
    }

    fn name(&self) -> &'static str {
        "JoinOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl JoinOrder {
    /// The same rows by joins in a better order; none where there is none, or it is not known.
    fn reordered(&self, node: &Plan) -> Option<Plan> {
        let parts = Parts::of(node)?;
        let tree = parts.known()?.better(&parts.given, self.0)?;
        let reordered = parts.put_together(&tree)?;
        (reordered.schema() == node.schema()).then_some(reordered)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    /// Columns of the same names, nulls among keys, and keys that come often.
    const TABLES: [(&str, &str); 4] = [
        ("a", "select value as id, value % 7 as k, nullif(value % 5, 3) as v from generate_series(1, 60) as t(value)"),
        ("b", "select value % 30 as id, value % 7 as k, value as v from generate_series(1, 90) as t(value)"),
        ("c", "select value as id, nullif(value % 4, 0) as k, 'c' || value as name from generate_series(1, 9) as t(value)"),
        ("d", "select value as id, value % 3 as v, 'd' || value as name from generate_series(1, 5) as t(value)"),
    ];

    const QUERIES: [&str; 10] = [
        "select a.id, b.v, c.name from a join b on a.k = b.k join c on a.id = c.id",
        "select c.name, b.* from a join b on a.k = b.k and a.v < b.v join c on a.id = c.id join d on d.id = b.id",
        "select count(*), sum(b.v), max(d.name) from a, b, c, d where a.k = b.k and b.id = c.id and c.k = d.id and d.name > 'd2'",
        "select a.v + c.k, d.id as id from a, b, c, d where a.id = b.id and b.k = c.k and a.k = d.id and a.v + c.k > d.v",
        "select x.id, y.id, z.id from a x join a y on x.k = y.k join a z on y.v = z.v and x.id = z.id where z.id <> 7",
        "select b.k, count(*) from a join b on a.k = b.k join c on b.id = c.id left join d on d.id = c.k and d.v = 1 group by b.k",
        "select a.id from a join b on a.k = b.k join c on a.id = c.id where exists (select 1 from d where d.v = b.k) order by 1",
        "select s.n, c.name from (select k, count(*) as n from b group by k) s join a on a.k = s.k join c on c.id = a.id",
        "select * from a join b on a.k = b.k join c on b.id = c.id join d on d.id = a.v and d.v < c.k + b.v",
        "select a.id, c.id from a join b on a.id = b.id join c on a.v is not distinct from c.k join d on d.id = b.k",
    ];

    async fn context(folder: &Path, order: Option<JoinOrder>) -> SessionContext {
        let mut rules = crate::rules::physical(&PhysicalOptimizer::new().rules);
        let at = rules.iter().position(|rule| rule.name() == "JoinOrder").unwrap();
        match order {
            Some(order) => rules[at] = Arc::new(order),
            None => drop(rules.remove(at)),
        }
        let config = SessionConfig::new().with_target_partitions(2);
        let state = SessionStateBuilder::new().with_default_features().with_config(config);
        let context = SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build());
        for (table, select) in TABLES {
            let file = folder.join(format!("{table}.parquet")).display().to_string();
            if !Path::new(&file).exists() {
                rows(&context, &format!("copy ({select}) to '{file}' stored as parquet")).await;
            }
            rows(&context, &format!("create external table {table} stored as parquet location '{file}'")).await;
        }
        context
    }

    /// The joins of a plan, those that are deep in it first.
    async fn joins(context: &SessionContext, sql: &str) -> Vec<String> {
        let lines = rows(context, &format!("explain {sql}")).await;
        let join = |line: &String| line.find("HashJoinExec").map(|at| line[at..].trim_end_matches(['|', ' ']).to_string());
        lines.iter().filter_map(join).collect()
    }

    async fn rows(context: &SessionContext, sql: &str) -> Vec<String> {
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        let mut lines: Vec<String> =
            pretty_format_batches(&batches).unwrap().to_string().lines().map(ToString::to_string).collect();
        lines.sort_unstable();
        lines
    }

    #[tokio::test]
    async fn joins_in_another_order_give_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let always = JoinOrder(Bar { rows: 0.0, times: 0.0 });
        let (as_named, reordered) = (context(folder.path(), None).await, context(folder.path(), Some(always)).await);
        let mut changed = 0;
        for sql in QUERIES {
            assert_eq!(rows(&reordered, sql).await, rows(&as_named, sql).await, "{sql}");
            changed += usize::from(joins(&reordered, sql).await != joins(&as_named, sql).await);
        }
        assert!(changed > 3, "{changed} plans are others");
        // Where little is to be won the plan is the engine's own.
        let by_default = context(folder.path(), Some(JoinOrder::default())).await;
        for sql in QUERIES {
            assert_eq!(joins(&by_default, sql).await, joins(&as_named, sql).await, "{sql}");
        }
        for context in [&as_named, &reordered] {
            rows(context, "set datafusion.optimizer.join_reordering = false").await;
        }
        assert_eq!(joins(&reordered, QUERIES[0]).await, joins(&as_named, QUERIES[0]).await, "it is off");
    }
}
