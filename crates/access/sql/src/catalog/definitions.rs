//! Keeps the definitions of external tables: with the coordinator where there is one, else in the engine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use forebay_client::{Client, ControlReply, ControlRequest};
use forebay_protocol::TableDefinition;
use forebay_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

/// External tables. With a cluster the coordinator keeps them; without one they live as long as the engine.
pub(crate) enum Definitions {
    Cluster { client: Client, known: Mutex<Option<Arc<Vec<TableDefinition>>>> },
    Own(Mutex<BTreeMap<String, String>>),
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster { .. } => "Definitions(cluster)",
            Self::Own(_) => "Definitions(own)",
        })
    }
}

impl Definitions {
    pub(crate) fn of_cluster(client: Client) -> Self {
        Self::Cluster { client, known: Mutex::new(None) }
    }

    pub(crate) fn own() -> Self {
        Self::Own(Mutex::default())
    }

    /// All of them, as the coordinator has them now; as it had them last when it can't be reached, so that queries over
    /// known tables go on without it.
    pub(crate) async fn list(&self) -> Result<Arc<Vec<TableDefinition>>> {
        match self {
            Self::Own(tables) => {
                let tables = tables.lock();
                let of =
                    |(name, statement): (&String, &String)| TableDefinition { name: name.clone(), statement: statement.clone() };
                Ok(Arc::new(tables.iter().map(of).collect()))
            }
            Self::Cluster { client, known } => match client.control(ControlRequest::Tables).await {
                Ok(ControlReply::Tables(tables)) => {
                    let tables = Arc::new(tables);
                    *known.lock() = Some(Arc::clone(&tables));
                    Ok(tables)
                }
                Ok(_) => Err(Error::internal("the coordinator answered something else than its tables")),
                Err(error) if matches!(error.kind(), ErrorKind::Retry | ErrorKind::Closed) => known.lock().clone().ok_or(error),
                Err(error) => Err(error),
            },
        }
    }

    /// Keeps a definition. `Conflict` when the name is taken and `replace` is off.
    pub(crate) async fn add(&self, table: TableDefinition, replace: bool) -> Result<()> {
        match self {
            Self::Own(tables) => {
                let mut tables = tables.lock();
                if !replace && tables.contains_key(&table.name) {
                    return Err(Error::conflict(format!("there is a table {} already", table.name)));
                }
                tables.insert(table.name, table.statement);
                Ok(())
            }
            Self::Cluster { client, .. } => client.control(ControlRequest::TableAdd { table, replace }).await.map(|_| ()),
        }
    }

    /// Forgets a definition. `NotFound` when there is none.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        match self {
            Self::Own(tables) => match tables.lock().remove(name) {
                Some(_) => Ok(()),
                None => Err(Error::not_found(format!("there is no table {name}"))),
            },
            Self::Cluster { client, .. } => {
                client.control(ControlRequest::TableRemove { name: name.to_string() }).await.map(|_| ())
            }
        }
    }
}
