//! What a table's name means in one query: one of the session's tables, an external table, or a path.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList, SchemaProvider, TableProvider,
};
use datafusion::common::TableReference;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use forebay_protocol::TableDefinition;
use forebay_types::{Error, ErrorKind};
use parking_lot::RwLock;

use crate::catalog::told::told;
use crate::catalog::{CATALOG, SCHEMA};
use crate::error::external;
use crate::parsed::parsed;
use crate::paths::{Declared, Resolver, looks_like_path};
use crate::slow::sql_told;

/// The tables of one query. A name is first one of the session's (views, tables in memory), then an external table's,
/// then a path.
#[derive(Debug)]
pub(crate) struct QueryTables {
    session: Arc<dyn SchemaProvider>,
    definitions: Arc<Vec<TableDefinition>>,
    resolver: Resolver,
    /// Plans definitions: a state without tables, since planning looks a table's own name up.
    planner: Arc<SessionState>,
    /// The statement tells of tables, and reads none.
    are_told: bool,
    state: OnceLock<Weak<RwLock<SessionState>>>,
    resolved: tokio::sync::Mutex<HashMap<String, Arc<dyn TableProvider>>>,
}

/// A catalog with nothing in it but this schema.
pub(crate) fn catalog_of(tables: Arc<QueryTables>) -> Result<Arc<dyn CatalogProviderList>> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SCHEMA, tables)?;
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(CATALOG.to_string(), Arc::new(catalog));
    Ok(Arc::new(list))
}

impl QueryTables {
    pub(crate) fn new(
        session: Arc<dyn SchemaProvider>,
        definitions: Arc<Vec<TableDefinition>>,
        resolver: Resolver,
        planner: Arc<SessionState>,
        are_told: bool,
    ) -> Arc<Self> {
        Arc::new(Self { session, definitions, resolver, planner, are_told, state: OnceLock::new(), resolved: Default::default() })
    }

    /// Makes the query's state known, which holds this in turn.
    pub(crate) fn bind(&self, state: Weak<RwLock<SessionState>>) {
        let _ = self.state.set(state);
    }

    fn state(&self) -> Result<SessionState> {
        let state = self.state.get().and_then(Weak::upgrade);
        let state = state.ok_or_else(|| DataFusionError::Internal("the query of these tables has ended".to_string()))?;
        Ok(state.read().clone())
    }

    fn definition(&self, name: &str) -> Option<&TableDefinition> {
        self.definitions.iter().find(|table| table.name == name)
    }

    async fn find(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.session.table(name).await? {
            return Ok(Some(table));
        }
        let mut resolved = self.resolved.lock().await;
        if let Some(table) = resolved.get(name) {
            return Ok(Some(Arc::clone(table)));
        }
        let table = if let Some(definition) = self.definition(name) {
            self.external(&self.state()?, definition).await.map_err(|error| error.context(format!("table {name}")))?
        } else if looks_like_path(name) {
            self.resolver.table(&self.state()?, name).await?
        } else {
            return Ok(None);
        };
        resolved.insert(name.to_string(), Arc::clone(&table));
        Ok(Some(table))
    }

    async fn external(&self, state: &SessionState, table: &TableDefinition) -> Result<Arc<dyn TableProvider>> {
        let mut declared = declared(&self.planner, &table.statement).await?;
        // The engine's own words leave out columns and partitions; what options hold is for nobody.
        declared.definition = Some(sql_told(&table.statement));
        self.resolver.external(state, &declared).await
    }
}

/// Reads a `CREATE EXTERNAL TABLE` statement.
async fn declared(state: &SessionState, statement: &str) -> Result<Declared> {
    let parsed = parsed(state, statement, &state.config_options().sql_parser.dialect)?;
    match state.statement_to_plan(parsed).await? {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(declared)) => Ok(*declared),
        _ => Err(DataFusionError::Internal(format!("not the definition of an external table: {statement}"))),
    }
}

#[async_trait]
impl SchemaProvider for QueryTables {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.session.table_names();
        names.extend(self.definitions.iter().map(|table| table.name.clone()));
        names.sort();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let found = self.find(name).await?;
        Ok(if self.are_told { found.map(told) } else { found })
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.definition(name) {
            // Known without asking its storage, which a list of tables must not need.
            Some(_) if !self.session.table_exist(name) => Ok(Some(TableType::Base)),
            _ => self.session.table_type(name).await,
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.definition(&name).is_some() {
            let taken = Error::new(ErrorKind::Conflict, format!("there is an external table {name}: drop it first"));
            return Err(external(taken));
        }
        self.session.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.session.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.session.table_exist(name) || self.definition(name).is_some()
    }
}

/// The name of a table of this catalog.
pub(crate) fn own_name(reference: &TableReference) -> std::result::Result<String, Error> {
    let catalog = reference.catalog().is_none_or(|catalog| catalog == CATALOG);
    let schema = reference.schema().is_none_or(|schema| schema == SCHEMA);
    match catalog && schema {
        true => Ok(reference.table().to_string()),
        false => Err(Error::invalid(format!("{reference}: tables live in {CATALOG}.{SCHEMA}: leave the rest out"))),
    }
}
