//! From a statement's text to the plan that runs: what only reads is told from what changes something, and `SET` from both.

use std::sync::Arc;

use datafusion::common::ParamValues;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{DdlStatement, DescribeTable, LogicalPlan, SetVariable, Statement};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as Parsed;
use forebay_types::{Error, Result, format_bytes};

use super::planner::physical;
use super::{May, away, heeded, kept, point, sizes};
use crate::catalog::{CATALOG, SCHEMA, without_metadata};
use crate::copy::{check_names, with_folders_of_nulls};
use crate::engine::Engine;
use crate::engine::ddl;
use crate::engine::session::QuerySession;
use crate::error::{PARAMETERS, from_engine};
use crate::reach::{LocalFiles, Reach};
use crate::steps;

/// A setting that the engine takes for those of all filters of its kind.
const DYNAMIC_FILTERS: &str = "datafusion.optimizer.enable_dynamic_filter_pushdown";

/// Views and temporary tables that a process which runs the statements of others keeps of each caller, and bytes of the text of one with
/// the values in it.
const VIEWS_MAX: usize = 500;
const VIEW_BYTES_MAX: usize = 64 << 10;

/// Bytes of a setting's value: each connection keeps its own.
const SETTING_BYTES_MAX: usize = 4 << 10;

/// What a statement came to.
pub(super) struct Planned {
    /// None when the statement is done already.
    pub(super) plan: Option<Arc<dyn ExecutionPlan>>,
    pub(super) writes: bool,
}

/// The logical plan of a session's statement.
pub(crate) async fn logical_plan(engine: &Engine, session: &QuerySession) -> Result<LogicalPlan> {
    heeded::check(&session.statement)?;
    let state = session.context.state();
    // Planning looks a new table's own name up, and what an old one of that name is does not matter.
    let is_table = matches!(session.statement, Parsed::CreateExternalTable(_));
    let planner = if is_table { engine.inner.template.as_ref() } else { &state };
    let plan = planner.statement_to_plan(session.statement.clone()).await.map_err(from_engine)?;
    steps::check_plan(&plan)?;
    Ok(plan)
}

/// Does what has no rows, and plans what has.
pub(super) async fn plan(
    engine: &Engine,
    session: &QuerySession,
    sql: &str,
    parameters: Option<&ParamValues>,
    may: May,
) -> Result<Planned> {
    let mut logical = logical_plan(engine, session).await?;
    if may == May::Read {
        check_reads(&logical)?;
    }
    let is_by_key = point::is_explained(engine, &logical, parameters);
    if let Some(parameters) = parameters {
        engine.inner.points.keep(engine, session, sql, &logical);
        check_used(&logical, parameters)?;
        logical = logical.with_param_values(parameters.clone()).map_err(from_engine)?;
    }
    check_kept(&logical, &engine.inner.settings.reach)?;
    check_names(&logical)?;
    check_room(engine, &logical, sql.len() + parameters.map_or(0, bytes_of))?;
    sizes::check(&logical)?;
    let logical = with_plain_types(logical);
    let Some(logical) = ddl::apply(engine, session, sql, logical).await? else {
        return Ok(Planned { plan: None, writes: true });
    };
    let sets = matches!(logical, LogicalPlan::Statement(Statement::SetVariable(_) | Statement::ResetVariable(_)));
    check_set(&logical)?;
    let logical = with_own_value(engine, logical);
    let filters = matches!(&logical, LogicalPlan::Statement(Statement::SetVariable(set)) if set.variable == DYNAMIC_FILTERS);
    let changes = sets || matches!(logical, LogicalPlan::Ddl(_));
    let writes = changes || writes_rows(&logical);
    let keeps = session.context.copied_config().options().execution.keep_partition_by_columns;
    let logical = with_folders_of_nulls(logical, keeps).map_err(from_engine)?;
    let explain = match &logical {
        LogicalPlan::Explain(explain) => Some(explain.clone()),
        _ => None,
    };
    let logical = Box::pin(kept::with_rows(engine, session, logical)).await?;
    let frame = session.context.execute_logical_plan(logical).await.map_err(from_engine)?;
    if sets {
        let mut config = session.context.copied_config();
        if filters {
            config.options_mut().optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        }
        *engine.config.lock() = config;
    }
    if changes {
        return Ok(Planned { plan: None, writes });
    }
    let (state, logical) = frame.into_parts();
    let plan = Box::pin(physical(engine, state, &logical)).await?;
    let plan =
        if let Some(explain) = explain { away::explained(engine, session, &explain, is_by_key, plan).await? } else { plan };
    Ok(Planned { plan: Some(plan), writes })
}

/// Whether rows are written, by EXPLAIN ANALYZE too.
fn writes_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Copy(_) | LogicalPlan::Dml(_) => true,
        LogicalPlan::Analyze(analyze) => writes_rows(&analyze.input),
        _ => false,
    }
}

/// Refuses what changes anything, wherever in the statement it stands.
fn check_reads(plan: &LogicalPlan) -> Result<()> {
    let reading = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reading.verify_plan(plan).map_err(|_| {
        Error::invalid("only statements that read are answered here, SELECT say: `forebay sql` and Flight SQL run others")
    })
}

/// Refuses values that the statement has no place for: most likely it is not the one that was meant.
fn check_used(plan: &LogicalPlan, parameters: &ParamValues) -> Result<()> {
    let used = plan.get_parameter_names().map_err(from_engine)?;
    if used.contains("?") {
        return Err(Error::invalid(PARAMETERS));
    }
    let mut given: Vec<String> = match parameters {
        ParamValues::List(values) => (1..=values.len()).map(|place| format!("${place}")).collect(),
        ParamValues::Map(values) => values.keys().map(|name| format!("${name}")).collect(),
    };
    given.retain(|name| !used.contains(name));
    given.sort_unstable();
    match given.first() {
        None => Ok(()),
        Some(name) => {
            Err(Error::invalid(format!("there is a value for {name}, which does not stand in the statement: leave it out")))
        }
    }
}

/// Refuses what would be forgotten as soon as it is done: nothing stays of a statement but tables, views and settings. In a process that
/// runs the statements of others no rows stay: its memory is all of theirs.
fn check_kept(plan: &LogicalPlan, reach: &Reach) -> Result<()> {
    let (what, instead) = match plan {
        LogicalPlan::Statement(Statement::Prepare(_) | Statement::Execute(_) | Statement::Deallocate(_)) => {
            ("PREPARE and EXECUTE are", "give `$1` its value with the statement, in Python or by Flight SQL")
        }
        // What is there is made once more by tools that want to be sure.
        LogicalPlan::Ddl(DdlStatement::CreateCatalogSchema(new)) if new.if_not_exists && is_there(&new.schema_name) => {
            return Ok(());
        }
        LogicalPlan::Ddl(DdlStatement::CreateCatalog(new)) if new.if_not_exists && new.catalog_name == CATALOG => return Ok(()),
        LogicalPlan::Ddl(DdlStatement::CreateCatalogSchema(_) | DdlStatement::CreateCatalog(_)) => {
            ("schemas and databases of your own are", "tables and views are all in `forebay.public`, files in folders of mounts")
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(_)) if reach.local_files != LocalFiles::All => (
            "tables in the memory of a server are",
            "write the rows below a mount (`copy (select ..) to '/MOUNT/FOLDER/'`) and read that path, or create a view",
        ),
        LogicalPlan::Ddl(DdlStatement::CreateIndex(_)) => {
            ("indexes are", "bloom filters of tables (`bloom_filters`) and datasets of shards find single values")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("{what} not supported: {instead}")))
}

/// Refuses a view, or a temporary table, for which there is no room in a process that runs the statements of others: both stay as long as
/// their caller is known. It takes so many bytes.
fn check_room(engine: &Engine, plan: &LogicalPlan, bytes: usize) -> Result<()> {
    let name = match plan {
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => view.name.table(),
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(declared)) if declared.temporary => declared.name.table(),
        _ => return Ok(()),
    };
    let kept = &engine.inner.session;
    let has_room = bytes <= VIEW_BYTES_MAX && (kept.table_exist(name) || kept.table_names().len() < VIEWS_MAX);
    match has_room || engine.inner.settings.reach.local_files == LocalFiles::All {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "a server keeps {VIEWS_MAX} views and temporary tables of each token, of {} at most each: drop some (`drop view`, `drop \
             table`), or write this one into the query",
            format_bytes(VIEW_BYTES_MAX as u64)
        ))),
    }
}

fn bytes_of(parameters: &ParamValues) -> usize {
    match parameters {
        ParamValues::List(values) => values.iter().map(|value| value.value.size()).sum(),
        ParamValues::Map(values) => values.values().map(|value| value.value.size()).sum(),
    }
}

/// Whether a name is that of the schema that there is.
fn is_there(schema: &str) -> bool {
    schema.strip_prefix(CATALOG).and_then(|rest| rest.strip_prefix('.')).unwrap_or(schema) == SCHEMA
}

/// Settings that memory is taken by, or threads and files are begun by, as soon as something runs, each with the most that it may be: a
/// number that is larger by mistake, or that somebody means, would end the process.
const MOST: [(&str, u64); 9] = [
    ("datafusion.execution.batch_size", 1 << 20),
    ("datafusion.execution.target_partitions", 1 << 10),
    ("datafusion.execution.planning_concurrency", 1 << 10),
    ("datafusion.execution.meta_fetch_concurrency", 1 << 10),
    ("datafusion.execution.minimum_parallel_output_files", 1 << 10),
    ("datafusion.execution.max_buffered_batches_per_output_file", 1 << 16),
    ("datafusion.execution.objectstore_writer_buffer_size", 1 << 30),
    ("datafusion.execution.parquet.write_batch_size", 1 << 20),
    ("datafusion.execution.parquet.maximum_parallel_row_group_writers", 1 << 10),
];

/// Memory and disk are the process' and its owner's: the engine would make folders wherever a statement says. What is set is kept.
fn check_set(plan: &LogicalPlan) -> Result<()> {
    let (name, value) = match plan {
        LogicalPlan::Statement(Statement::SetVariable(set)) => (&set.variable, set.value.as_str()),
        LogicalPlan::Statement(Statement::ResetVariable(reset)) => (&reset.variable, ""),
        _ => return Ok(()),
    };
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("datafusion.runtime.") {
        return Err(Error::invalid(format!(
            "{name} is no setting of a session: see `sql-memory` and `sql-spill` of the process"
        )));
    }
    if value.len() > SETTING_BYTES_MAX {
        let (bytes, most) = (value.len(), format_bytes(SETTING_BYTES_MAX as u64));
        return Err(Error::invalid(format!("the value of {name} has {bytes} bytes: a setting has {most} at most")));
    }
    let most = MOST.iter().find(|(of, _)| *of == lower).map(|(_, most)| *most);
    match (most, value.trim().parse::<u128>()) {
        (Some(most), Ok(value)) if value > u128::from(most) => Err(Error::invalid(format!("{name} is {most} at most"))),
        _ => Ok(()),
    }
}

/// What a setting goes back to is what the process has begun with: the engine's own may be what gives wrong answers.
fn with_own_value(engine: &Engine, logical: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::Statement(Statement::ResetVariable(reset)) = &logical else { return logical };
    let of = |options: &ConfigOptions| {
        let entry = options.entries().into_iter().find(|entry| entry.key == reset.variable);
        entry.and_then(|entry| entry.value)
    };
    let (own, engines) = (of(engine.inner.template.config_options()), of(&ConfigOptions::new()));
    match own {
        Some(value) if engines.as_ref() != Some(&value) => {
            let variable = reset.variable.clone();
            LogicalPlan::Statement(Statement::SetVariable(SetVariable { variable, value }))
        }
        _ => logical,
    }
}

/// The plan of a statement, of which DESCRIBE tells plain types.
fn with_plain_types(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::DescribeTable(DescribeTable { schema, output_schema }) => {
            LogicalPlan::DescribeTable(DescribeTable { schema: Arc::new(without_metadata(&schema)), output_schema })
        }
        other => other,
    }
}
