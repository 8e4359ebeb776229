//! Becoming the leader: at once where nobody leads, else by standing by for as long as it takes.

use std::time::Duration;

use forebay_metadata::Metadata;
use forebay_types::{Error, ErrorKind, Result};
use tracing::{info, warn};

/// How often a standby tries to become the leader.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Opens the database, becomes the leader, and returns the epoch.
///
/// With PostgreSQL another coordinator may lead: this one stands by until it is gone, however long that takes, and
/// does not listen meanwhile. A database that is away at the start is an error; one that goes away while standing by
/// is waited for.
pub(crate) async fn become_leader(url: &str) -> Result<(Metadata, u64)> {
    let metadata = Metadata::open(url).await?;
    let mut waiting: Option<Error> = None;
    loop {
        match metadata.acquire_epoch().await {
            Ok(epoch) => return Ok((metadata, epoch)),
            Err(error) if error.kind() == ErrorKind::Retry => {
                if waiting.is_none() {
                    info!(database = metadata.shown(), reason = %error, "standing by");
                } else if waiting.as_ref().is_some_and(|before| before.message() != error.message()) {
                    warn!(database = metadata.shown(), reason = %error, "still standing by");
                }
                waiting = Some(error);
                forebay_runtime::time::sleep(TRY_EVERY).await;
            }
            Err(error) => {
                metadata.close().await;
                return Err(error);
            }
        }
    }
}
