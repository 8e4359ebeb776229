//! What can be said of a path without running a query: a table file's metadata, its columns, those that statements read.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use forebay_table::Table;
use forebay_types::{Error, Result};

use crate::albis::{Tables, is_number};
use crate::engine::Engine;
use crate::error::from_engine;
use crate::paths::{PathTable, list};
use crate::query::logical_plan;
use crate::session::QuerySession;

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
    ///
    /// # Errors
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
        let is_query =
            matches!(&session.statement, Parsed::Statement(statement) if matches!(**statement, SqlStatement::Query(_)));
        if !is_query {
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
                let own = table.location().as_folder().url.to_string();
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
}
