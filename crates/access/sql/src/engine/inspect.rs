//! What can be said of a path without running a query: a table file's metadata, its columns, the columns and bytes that statements read.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use forebay_client::Planned;
use forebay_table::Table;
use forebay_types::{Error, Result};

use crate::albis::{Tables, is_number};
use crate::engine::Engine;
use crate::engine::query::{logical_plan, physical};
use crate::engine::session::QuerySession;
use crate::error::from_engine;
use crate::panics::caught;
use crate::paths::{HAS_OLD_ROWS, PathTable, list};
use crate::prefetch::all_inputs;
use crate::steps;

/// A table file, and what is known of it apart from its data.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// Its bytes.
    pub bytes: u64,
    /// Its metadata.
    pub table: Table,
}

impl Engine {
    /// Opens the metadata of one table file: below a mount, in a store, or on this machine.
    /// `NotFound`; `Invalid` for what is not one file; `Corrupt` with the place.
    pub async fn table_file(&self, path: &str) -> Result<TableFile> {
        let session = QuerySession::open(self, "select 1").await?;
        let location = session.resolver.location(path).map_err(from_engine)?;
        let url = ListingTableUrl::try_new(location.url.clone(), None).map_err(from_engine)?;
        let store = session.context.runtime_env().object_store(&url).map_err(from_engine)?;
        let mut files = list(&store, &location).await.map_err(from_engine)?.with_content()?;
        match (files.pop(), files.is_empty()) {
            (Some(file), true) => {
                let table = Tables::default().open(&store, &file).await.map_err(from_engine)?.table;
                Ok(TableFile { bytes: file.size, table })
            }
            _ => Err(Error::invalid(format!("'{path}' is more than one file: name one of them"))),
        }
    }

    /// The columns of a path, in their order.
    ///
    /// # Errors
    /// Those of a query of it.
    pub async fn columns(&self, path: &str) -> Result<Vec<String>> {
        let query = self.describe(&format!("SELECT * FROM '{}'", path.replace('\'', "''"))).await?;
        Ok(query.schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    /// The columns that a statement would read of what is at `path`, below it, or is a folder above it: one set a scan.
    /// Nothing for a statement that is no query. Nothing is run.
    ///
    /// # Errors
    /// Those of planning.
    pub async fn columns_read(&self, sql: &str, path: &str) -> Result<Vec<BTreeSet<String>>> {
        let session = QuerySession::open(self, sql).await?;
        if !is_query(&session) {
            return Ok(Vec::new());
        }
        let asked = session.resolver.location(path).map_err(from_engine)?.as_folder().url.to_string();
        let plan = logical_plan(self, &session).await?;
        let plan = session.context.state().optimize(&plan).map_err(from_engine)?;
        let mut scans = BTreeMap::new();
        let walked = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some(table) = (provider.as_ref() as &dyn Any).downcast_ref::<PathTable>()
            {
                let own = table.location.as_folder().url.to_string();
                if own.starts_with(&asked) || asked.starts_with(&own) {
                    let mut columns =
                        scan.projected_schema.fields().iter().map(|field| field.name().clone()).collect::<BTreeSet<_>>();
                    let filters = scan.filters.iter().flat_map(|filter| filter.column_refs());
                    columns.extend(filters.map(|column| column.name.clone()));
                    // The numbers of rows are in no file.
                    let own_schema = scan.source.schema();
                    columns.retain(|name| own_schema.field_with_name(name).is_ok_and(|field| !is_number(field)));
                    scans.insert(format!("{} {own}", scan.table_name), columns);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.map_err(from_engine)?;
        Ok(scans.into_values().collect())
    }

    /// The bytes that a query would read of objects below mounts, in order of their paths: of Parquet and table files those of the columns
    /// that it needs, of the row groups and pages that its conditions leave over; of others all that its scans read. Footers are read for
    /// it, and nothing is run.
    ///
    /// # Errors
    /// Those of planning and of footers; `Invalid` for a statement that is no query.
    pub async fn reads(&self, sql: &str) -> Result<Planned> {
        let session = QuerySession::open(self, sql).await?;
        if !is_query(&session) {
            return Err(Error::invalid("only of a query it can be told what it would read"));
        }
        let plan = caught(&session.seen, Box::pin(physical_plan(self, &session))).await??;
        let runtime = session.context.runtime_env();
        let found = caught(&session.seen, Box::pin(all_inputs(&plan, &runtime))).await?.map_err(from_engine)?;
        let Some(snapshot) = &session.snapshot else { return Ok(Vec::new()) };
        let mut files: BTreeMap<_, Vec<Range<u64>>> = BTreeMap::new();
        for (meta, ranges) in found.into_iter().flatten() {
            files.entry(meta.location).or_default().extend(ranges);
        }
        let reads = files.into_iter().filter_map(|(path, ranges)| Some((snapshot.pinned_at(&path)?.version, united(ranges))));
        Ok(reads.collect())
    }

    /// The same of a query of these columns, all where none are named, of a path where a condition holds.
    ///
    /// # Errors
    /// As [`Self::reads`], and `Invalid` for a condition that is more than one expression.
    pub async fn reads_of(&self, path: &str, columns: &[String], condition: Option<&str>) -> Result<Planned> {
        if let Some(condition) = condition {
            let dialect = self.config.lock().options().sql_parser.dialect;
            steps::check(condition, dialect)?;
            let parsed = self.inner.template.sql_to_expr(condition, &dialect);
            parsed.map_err(|error| from_engine(error).context(format!("the condition '{condition}'")))?;
        }
        match self.reads(&query_of(path, columns, condition)).await {
            // Who reads such a table reads some of its files, and knows which.
            Err(error) if error.message().contains(HAS_OLD_ROWS) => {
                let files = format!("{}/**/*", path.trim_end_matches('/'));
                self.reads(&query_of(&files, columns, condition)).await
            }
            reads => reads,
        }
    }
}

/// The condition is one expression, with what may be a comment at its end.
fn query_of(path: &str, columns: &[String], condition: Option<&str>) -> String {
    let quoted = |name: &String| format!("\"{}\"", name.trim().replace('"', "\"\""));
    let columns = if columns.is_empty() { "*".to_string() } else { columns.iter().map(quoted).collect::<Vec<_>>().join(", ") };
    let path = path.replace('\'', "''");
    match condition {
        Some(condition) => format!("SELECT {columns} FROM '{path}' WHERE ({condition}\n)"),
        None => format!("SELECT {columns} FROM '{path}'"),
    }
}

fn is_query(session: &QuerySession) -> bool {
    matches!(&session.statement, Parsed::Statement(statement) if matches!(**statement, SqlStatement::Query(_)))
}

/// The physical plan of a session's query.
async fn physical_plan(engine: &Engine, session: &QuerySession) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = logical_plan(engine, session).await?;
    physical(engine, session.context.state(), &plan).await
}

/// The same bytes in order, each once.
fn united(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut united: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use super::query_of;

    #[test]
    fn names_are_quoted_and_conditions_stay_in_their_place() {
        let columns = ["a".to_string(), " b\"c".to_string()];
        assert_eq!(query_of("/lake/it's/", &columns, None), "SELECT \"a\", \"b\"\"c\" FROM '/lake/it''s/'");
        assert_eq!(query_of("/lake/t/", &[], Some("a > 1 -- b")), "SELECT * FROM '/lake/t/' WHERE (a > 1 -- b\n)");
    }
}
