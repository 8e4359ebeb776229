//! A database: opened, read, written by its leader alone; what is kept in it, one file a kind. What each call is for stands at
//! [`Metadata`](crate::Metadata).

mod checkpoints;
mod counters;
mod epoch;
mod mounts;
mod pins;
mod tables;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_runtime::time::{instant, sleep};
use forebay_types::{Error, ErrorKind, Result};
use sqlx::any::{AnyArguments, AnyPoolOptions, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Transaction};
use tokio::sync::Mutex;

use crate::connect::{CONNECT_TIMEOUT, connect, options};
use crate::dialect::Dialect;
use crate::leadership::Leadership;
use crate::location::Location;
use crate::{schema, sqlite_file};

pub(crate) use checkpoints::CHECKPOINT_BYTES_MAX;
pub use tables::StoredTable;

/// Connections at once; the coordinator writes one thing at a time.
const CONNECTIONS_MAX: u32 = 4;
/// Between two tries to prepare a file that somebody else prepares.
const PREPARE_PAUSE: Duration = Duration::from_millis(20);

/// SQLite or PostgreSQL.
#[derive(Clone)]
pub(crate) struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    location: Location,
    pool: AnyPool,
    leadership: Mutex<Option<Leadership>>,
    /// The acquired epoch; 0 before.
    epoch: AtomicU64,
}

impl Database {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let mut location = Location::parse(url)?;
        if let Location::Sqlite(path) = &location {
            let path = path.clone();
            let prepared = forebay_runtime::spawn_blocking(move || sqlite_file::prepare(&path)).await;
            location = Location::Sqlite(prepared.map_err(|error| Error::internal(error.to_string()))??);
        }
        prepare(&location).await?;

        let settings = location.dialect().session_settings();
        let pool = AnyPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(CONNECT_TIMEOUT)
            .after_connect(move |connection, _| {
                Box::pin(async move { sqlx::raw_sql(settings).execute(connection).await.map(|_| ()) })
            })
            .connect_lazy_with(options(&location)?);
        let inner = Inner { location, pool, leadership: Mutex::new(None), epoch: AtomicU64::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.inner.location.dialect().name()
    }

    pub(crate) fn shown(&self) -> String {
        self.inner.location.shown()
    }

    pub(crate) async fn close(&self) {
        if let Some(leadership) = self.inner.leadership.lock().await.take() {
            leadership.release().await;
        }
        self.inner.pool.close().await;
    }

    fn fault(&self, error: sqlx::Error) -> Error {
        self.inner.location.fault(error)
    }

    /// Begins a transaction that writes: alone, and only while no later epoch was acquired.
    async fn write(&self) -> Result<Transaction<'static, Any>> {
        let mut transaction = self.inner.pool.begin().await.map_err(|error| self.fault(error))?;
        let epoch = self.inner.epoch.load(Ordering::Acquire);
        // Writing the row that an acquirer of the next epoch must write, too, keeps it out until this ends.
        let fence = match epoch {
            0 => sqlx::query("UPDATE counters SET value = value WHERE name = 'epoch'"),
            _ => sqlx::query("UPDATE counters SET value = value WHERE name = 'epoch' AND value = $1").bind(epoch as i64),
        };
        if self.run(fence, &mut transaction).await? != 1 {
            return Err(Error::closed(format!(
                "another coordinator has taken over metadata database {}: epoch {epoch} is past",
                self.shown()
            )));
        }
        Ok(transaction)
    }

    /// Runs a statement; gives how many rows it has written.
    async fn run(&self, statement: Query<'_, Any, AnyArguments>, connection: &mut AnyConnection) -> Result<u64> {
        let written = statement.execute(connection).await.map_err(|error| self.fault(error))?;
        Ok(written.rows_affected())
    }

    /// The row that a statement gives, where it gives one.
    async fn row(&self, statement: Query<'_, Any, AnyArguments>, connection: &mut AnyConnection) -> Result<Option<AnyRow>> {
        statement.fetch_optional(connection).await.map_err(|error| self.fault(error))
    }

    async fn commit(&self, transaction: Transaction<'static, Any>) -> Result<()> {
        transaction.commit().await.map_err(|error| self.fault(error))
    }
}

/// Brings the schema up to date. Of several that turn a new SQLite file's journal to WAL at once all but one are told that it is
/// locked, at once and whatever `busy_timeout` says, so they ask again until the time for a connection is over.
async fn prepare(location: &Location) -> Result<()> {
    let deadline = instant() + CONNECT_TIMEOUT;
    loop {
        match prepare_once(location).await {
            Err(error) if location.dialect() == Dialect::Sqlite && error.kind() == ErrorKind::Retry && instant() < deadline => {
                sleep(PREPARE_PAUSE).await;
            }
            prepared => return prepared,
        }
    }
}

async fn prepare_once(location: &Location) -> Result<()> {
    let mut connection = connect(location).await?;
    let migrated = schema::migrate(location, &mut connection).await;
    let _ = connection.close().await;
    migrated
}
