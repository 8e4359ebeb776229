//! What a statement would give, want and change, found out by planning alone: for doors that must say so before it runs.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr::{LogicalPlan, Statement};
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
    /// Its parameters by name (`$1`, `$name`), each with its type where the statement tells it.
    pub parameters: BTreeMap<String, Option<DataType>>,
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
        let parameters = plan.get_parameter_types().map_err(from_engine)?.into_iter().collect();
        let sets = matches!(plan, LogicalPlan::Statement(Statement::SetVariable(_) | Statement::ResetVariable(_)));
        let writes = sets || matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) | LogicalPlan::Dml(_));
        Ok(Self { schema: plan.schema().inner().clone(), parameters, writes })
    }
}
