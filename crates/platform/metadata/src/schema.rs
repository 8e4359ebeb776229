//! The schema, and the way to it from earlier ones.

use forebay_types::{Error, Result};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tracing::info;

use crate::location::Location;

/// Version of the schema that this program writes; it migrates earlier ones and refuses later ones.
pub const SCHEMA_VERSION: u64 = MIGRATIONS.len() as u64;

/// Each brings the schema from the version of its place to the next. Never change one that was released: add another.
const MIGRATIONS: &[&[&str]] = &[
    &[
        // Numbers that only grow: the next mount's id and the leader's epoch.
        "CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
        "INSERT INTO counters (name, value) VALUES ('epoch', 0), ('mount_id', 0)",
        "CREATE TABLE mounts (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, url TEXT NOT NULL, options TEXT NOT NULL)",
        // Prefixes are bytes, so that no collation makes two of them one.
        "CREATE TABLE pins (mount_id BIGINT NOT NULL, prefix {blob} NOT NULL, PRIMARY KEY (mount_id, prefix))",
        "CREATE TABLE external_tables (name TEXT PRIMARY KEY, statement TEXT NOT NULL)",
        "CREATE TABLE checkpoints (kind TEXT PRIMARY KEY, window_ix BIGINT NOT NULL, bytes {blob} NOT NULL)",
    ],
    &[
        // Of the secret only what proofs are checked against.
        "CREATE TABLE tokens (id TEXT PRIMARY KEY, rights TEXT NOT NULL, created BIGINT NOT NULL, \
     stored_key {blob} NOT NULL, server_key {blob} NOT NULL)",
    ],
];

/// Brings the schema to [`SCHEMA_VERSION`] in one transaction. `Invalid`, with nothing changed, when it is newer.
pub(crate) async fn migrate(location: &Location, connection: &mut AnyConnection) -> Result<()> {
    check_encoding(location, connection).await?;
    let fault = |error| location.fault(error);
    let mut transaction = connection.begin().await.map_err(fault)?;
    if let Some(lock) = location.dialect().lock_schema() {
        sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *transaction).await.map_err(fault)?;
    }
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        .execute(&mut *transaction)
        .await
        .map_err(fault)?;
    let row = sqlx::query("SELECT version FROM schema_version").fetch_optional(&mut *transaction).await.map_err(fault)?;
    let version = row.map(|row| row.try_get::<i64, _>(0)).transpose().map_err(fault)?;
    let found = u64::try_from(version.unwrap_or(0)).unwrap_or(u64::MAX);
    if found > SCHEMA_VERSION {
        return Err(Error::invalid(format!(
            "metadata database {} has schema version {found}, made by a newer forebay (this one knows {SCHEMA_VERSION}): \
             run that version, or choose another database",
            location.shown()
        )));
    }
    if found == SCHEMA_VERSION {
        return transaction.rollback().await.map_err(fault);
    }
    for migration in &MIGRATIONS[found as usize..] {
        for statement in *migration {
            let statement = statement.replace("{blob}", location.dialect().blob());
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *transaction).await.map_err(fault)?;
        }
    }
    let record = match version {
        None => "INSERT INTO schema_version (version) VALUES ($1)",
        Some(_) => "UPDATE schema_version SET version = $1",
    };
    sqlx::query(record).bind(SCHEMA_VERSION as i64).execute(&mut *transaction).await.map_err(fault)?;
    transaction.commit().await.map_err(fault)?;
    info!(database = location.shown(), from = found, to = SCHEMA_VERSION, "metadata schema migrated");
    Ok(())
}

/// Names and statements are any Unicode text.
async fn check_encoding(location: &Location, connection: &mut AnyConnection) -> Result<()> {
    let Some(show) = location.dialect().show_encoding() else { return Ok(()) };
    let fault = |error| location.fault(error);
    let row = sqlx::query(show).fetch_one(connection).await.map_err(fault)?;
    let encoding: String = row.try_get(0).map_err(fault)?;
    if encoding != "UTF8" {
        return Err(Error::invalid(format!(
            "metadata database {} has the encoding {encoding}: make one with UTF8, as in `createdb -E UTF8 -T template0 NAME`",
            location.shown()
        )));
    }
    Ok(())
}
