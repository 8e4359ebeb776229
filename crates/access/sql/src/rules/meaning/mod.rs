//! Rules that look at what a statement means: what is counted of rows that are alike, what a struct has within that is null, and how many rows
//! stand for one value.
//!
//! Owns: statements that the engine plans as something else, put right before they are optimized.
//! Never does: make a plan faster.
//!
//! Start with [`around`].

mod alike;
mod compared;
mod first_row;
mod needless_sorts;
mod none;
mod null_within;
mod of_rows;
mod one_group;
mod one_row;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

pub(super) use compared::has_subquery;
pub(super) use needless_sorts::left_out;
pub(super) use one_group::takes_all;

type Analyzing = Arc<dyn AnalyzerRule + Send + Sync>;
type Analyze = fn(LogicalPlan, &ConfigOptions) -> Result<LogicalPlan>;

/// A rule that keeps nothing.
#[derive(Debug)]
struct Meaning {
    name: &'static str,
    analyze: Analyze,
}

impl AnalyzerRule for Meaning {
    fn name(&self) -> &'static str {
        self.name
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        (self.analyze)(plan, config)
    }
}

/// The engine's rules, which make types one, and what comes before and after that.
pub(super) fn around(rules: &[Analyzing]) -> Vec<Analyzing> {
    let before: [(&'static str, Analyze); 3] = [
        ("one_row_of_subqueries", one_row::analyze),
        ("number_alike_rows", alike::analyze),
        ("null_within_casts", |plan, _| null_within::analyze(plan, true)),
    ];
    let behind: [(&'static str, Analyze); 6] = [
        ("null_within_casts", |plan, _| null_within::analyze(plan, false)),
        ("first_row_of_subqueries", |plan, _| with_expressions(plan, first_row::of_expr)),
        ("one_group_of_subqueries", one_group::analyze),
        ("compared_values", compared::analyze),
        ("no_row_is_null", |plan, _| with_expressions(plan, none::of_expr)),
        ("subqueries_of_rows", of_rows::analyze),
    ];
    let own = |(name, analyze): (&'static str, Analyze)| Arc::new(Meaning { name, analyze }) as Analyzing;
    before.map(own).into_iter().chain(rules.iter().map(Arc::clone)).chain(behind.map(own)).collect()
}

/// A plan with each expression as `of_expr` makes it, under the name that it had.
fn with_expressions(plan: LogicalPlan, of_expr: fn(Expr) -> Result<Transformed<Expr>>) -> Result<LogicalPlan> {
    let mut any = false;
    let of_node = |node: LogicalPlan| {
        let names = NamePreserver::new(&node);
        let changed = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(of_expr)?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        any |= changed.transformed;
        // What is above says of its columns what it was told by those below, as that they are never null.
        if any { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    };
    plan.transform_up_with_subqueries(of_node).data()
}
