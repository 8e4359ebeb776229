//! Definitions of external tables.

use forebay_types::{Error, Result};
use sqlx::Row;

use super::Database;

/// An external table's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTable {
    /// Its name, as SQL has it.
    pub name: String,
    /// The statement that makes it.
    pub statement: String,
}

impl Database {
    pub(crate) async fn tables(&self) -> Result<Vec<StoredTable>> {
        let rows = sqlx::query("SELECT name, statement FROM external_tables").fetch_all(&self.inner.pool).await;
        let table = |row: &sqlx::any::AnyRow| {
            let text = |column: &str| row.try_get::<String, _>(column).map_err(|error| self.fault(error));
            Ok(StoredTable { name: text("name")?, statement: text("statement")? })
        };
        let mut tables: Vec<StoredTable> = rows.map_err(|error| self.fault(error))?.iter().map(table).collect::<Result<_>>()?;
        // Not by the database, whose collations differ.
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tables)
    }

    pub(crate) async fn put_table(&self, name: &str, statement: &str, replace: bool) -> Result<()> {
        if name.contains('\0') || statement.contains('\0') {
            return Err(Error::invalid(format!("table {name:?}: its definition holds a NUL byte")));
        }
        let put = match replace {
            true => {
                "INSERT INTO external_tables (name, statement) VALUES ($1, $2) \
                     ON CONFLICT (name) DO UPDATE SET statement = excluded.statement"
            }
            false => "INSERT INTO external_tables (name, statement) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        };
        let mut transaction = self.write().await?;
        if self.run(sqlx::query(put).bind(name).bind(statement), &mut transaction).await? == 0 {
            return Err(Error::conflict(format!("table {name} exists already: drop it first, or CREATE OR REPLACE it")));
        }
        self.commit(transaction).await
    }

    pub(crate) async fn remove_table(&self, name: &str) -> Result<()> {
        let mut transaction = self.write().await?;
        let table = sqlx::query("DELETE FROM external_tables WHERE name = $1").bind(name);
        if self.run(table, &mut transaction).await? == 0 {
            return Err(Error::not_found(format!("there is no external table {name}")));
        }
        self.commit(transaction).await
    }
}
