//! The list of tables and views by name, for those who show what a query can use.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::catalog::SchemaProvider;
use datafusion::datasource::TableType;
use forebay_types::Result;

use super::Definitions;
use crate::error::from_engine;

/// A table that has a name beside its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    /// Its name.
    pub name: String,
    /// `BASE TABLE` or `VIEW`.
    pub kind: &'static str,
}

/// The session's tables and views, and the external tables; by name.
pub(crate) async fn all(session: &Arc<dyn SchemaProvider>, definitions: &Definitions) -> Result<Vec<TableName>> {
    let mut names: BTreeMap<String, &'static str> =
        definitions.list().await?.iter().map(|table| (table.name.clone(), "BASE TABLE")).collect();
    for name in session.table_names() {
        let kind = match session.table_type(&name).await.map_err(from_engine)? {
            Some(TableType::View) => "VIEW",
            _ => "BASE TABLE",
        };
        names.insert(name, kind);
    }
    Ok(names.into_iter().map(|(name, kind)| TableName { name, kind }).collect())
}
