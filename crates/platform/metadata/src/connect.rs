//! Connections to the database, each set up in the same way.

use std::time::Duration;

use forebay_types::Result;
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, Connection};

use crate::location::Location;

/// How long a connection may take, and how long a caller waits for one.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a connection is made with.
pub(crate) fn options(location: &Location) -> Result<AnyConnectOptions> {
    location.connect_url().parse().map_err(|error| location.fault(error))
}

/// A connection of its own, set up as those of the pool.
pub(crate) async fn connect(location: &Location) -> Result<AnyConnection> {
    let options = options(location)?;
    let connecting = async {
        let mut connection = AnyConnection::connect_with(&options).await?;
        sqlx::raw_sql(location.dialect().session_settings()).execute(&mut connection).await?;
        Ok(connection)
    };
    match forebay_runtime::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(connection) => connection.map_err(|error| location.fault(error)),
        Err(_) => Err(location.fault(sqlx::Error::PoolTimedOut)),
    }
}
