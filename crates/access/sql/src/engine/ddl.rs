//! Carries out `CREATE EXTERNAL TABLE` and `DROP TABLE`, which change what tables there are and not what is in them.

use datafusion::error::DataFusionError;
use datafusion::logical_expr::{DdlStatement, DropTable, LogicalPlan};
use forebay_protocol::TableDefinition;
use forebay_types::{Error, ErrorKind, Result};

use crate::catalog::own_name;
use crate::engine::Engine;
use crate::engine::session::QuerySession;
use crate::error::from_engine;
use crate::paths::Declared;
use crate::slow::sql_told;

/// Carries out what changes external tables. Gives the plan back when it is something else.
pub(crate) async fn apply(engine: &Engine, session: &QuerySession, sql: &str, plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(declared)) => {
            create(engine, session, sql, *declared).await.map(|()| None)
        }
        LogicalPlan::Ddl(DdlStatement::DropTable(drop)) => self::drop(engine, drop).await.map(|()| None),
        other => Ok(Some(other)),
    }
}

/// Makes sure that the table can be read, then keeps its definition.
async fn create(engine: &Engine, session: &QuerySession, sql: &str, mut declared: Declared) -> Result<()> {
    let name = own_name(&declared.name)?;
    if declared.unbounded {
        return Err(Error::invalid("UNBOUNDED tables are not supported: leave the word out"));
    }
    for location in &declared.locations {
        if !location.starts_with('/') && !location.contains("://") {
            return Err(Error::invalid(format!(
                "LOCATION '{location}' depends on the current folder, which the table outlives: write the whole path"
            )));
        }
    }
    let in_session = engine.inner.session.table_exist(&name);
    let known = engine.inner.definitions.list().await?.iter().any(|table| table.name == name);
    if (in_session || known) && !declared.or_replace {
        return match declared.if_not_exists {
            true => Ok(()),
            false => Err(Error::conflict(format!(
                "there is a table {name} already: drop it, or write CREATE OR REPLACE EXTERNAL TABLE"
            ))),
        };
    }
    let state = session.context.state();
    declared.definition = Some(sql_told(sql));
    let table = session.resolver.external(&state, &declared).await.map_err(from_engine)?;
    if declared.temporary {
        let _ = engine.inner.session.deregister_table(&name);
        return engine.inner.session.register_table(name, table).map(|_| ()).map_err(from_engine);
    }
    let replace = declared.or_replace;
    let added = engine.inner.definitions.add(TableDefinition { name: name.clone(), statement: sql.to_string() }, replace).await;
    match added {
        Err(error) if error.kind() == ErrorKind::Conflict && declared.if_not_exists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            let _ = engine.inner.session.deregister_table(&name);
            Ok(())
        }
    }
}

async fn drop(engine: &Engine, drop: DropTable) -> Result<()> {
    let name = own_name(&drop.name)?;
    let in_session: Result<_, DataFusionError> = engine.inner.session.deregister_table(&name);
    if in_session.map_err(from_engine)?.is_some() {
        return Ok(());
    }
    match engine.inner.definitions.remove(&name).await {
        Err(error) if error.kind() == ErrorKind::NotFound && drop.if_exists => Ok(()),
        other => other,
    }
}
