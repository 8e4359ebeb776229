//! What a statement would give, want and change, found out by planning alone: for doors that must say so before it runs.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Statement};
use forebay_trace::Span;
use forebay_types::{ErrorKind, Result};
use futures::FutureExt;

use crate::copy;
use crate::engine::Engine;
use crate::engine::query::logical_plan;
use crate::engine::session::QuerySession;
use crate::error::from_engine;
use crate::panics::caught;
use crate::statement::one;

/// What a statement is, before it runs.
#[derive(Clone, Debug)]
pub struct Description {
    /// The columns that it will give; none for a statement without rows.
    pub schema: SchemaRef,
    /// Its parameters (`$1`, `$name`) in the order in which values are bound, by their numbers and then by their names, each with its type
    /// where the statement tells it.
    pub parameters: Vec<(String, Option<DataType>)>,
    /// Whether it changes something rather than asks.
    pub writes: bool,
}

impl Engine {
    /// What a statement gives and what it wants, without running any of it.
    pub async fn describe(&self, sql: &str) -> Result<Description> {
        let (sql, engine) = (one(sql)?, self.clone());
        let described = async move {
            match Description::of(&engine, &sql).await {
                Err(error) if error.kind() == ErrorKind::NotFound && engine.mounts_changed().await => {
                    Description::of(&engine, &sql).await
                }
                other => other,
            }
        };
        // What planning reads is a part of what goes on here, on whichever thread it does. Boxed, as a statement's attempts are.
        let mut span = Span::here("describe");
        let described = self.compute(span.around(described.boxed())).await.flatten();
        described.inspect_err(|error| span.fail(error))
    }
}

impl Description {
    async fn of(engine: &Engine, sql: &str) -> Result<Self> {
        let mut session = QuerySession::open(engine, sql).await?;
        copy::prepare(&mut session.statement, session.namespace.as_ref())?;
        let plan = caught(&session.seen, logical_plan(engine, &session)).await??;
        let parameters = parameters(&plan)?;
        let sets = matches!(plan, LogicalPlan::Statement(Statement::SetVariable(_) | Statement::ResetVariable(_)));
        let writes = sets || matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) | LogicalPlan::Dml(_));
        Ok(Self { schema: plan.schema().inner().clone(), parameters, writes })
    }
}

/// The parameters of a statement in their order.
fn parameters(plan: &LogicalPlan) -> Result<Vec<(String, Option<DataType>)>> {
    let mut found = BTreeMap::<String, Option<DataType>>::new();
    let walked = plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some((name, kind)) = parameter(expr) {
                    let known = found.entry(name.to_string()).or_default();
                    *known = known.take().or(kind);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(from_engine)?;
    let mut found: Vec<_> = found.into_iter().collect();
    // As texts, `$10` would come before `$2`. Names stay in their order.
    found.sort_by_key(|(name, _)| name.get(1..).and_then(|number| number.parse().ok()).unwrap_or(usize::MAX));
    Ok(found)
}

/// The parameter that an expression is, or a cast of one, whose type is the parameter's where the engine finds no other.
fn parameter(expr: &Expr) -> Option<(&str, Option<DataType>)> {
    let (inner, kind) = match expr {
        Expr::Placeholder(parameter) => {
            return Some((parameter.id.as_str(), parameter.field.as_ref().map(|field| field.data_type().clone())));
        }
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type()),
        _ => return None,
    };
    parameter(inner).map(|(name, found)| (name, found.or_else(|| Some(kind.clone()))))
}
