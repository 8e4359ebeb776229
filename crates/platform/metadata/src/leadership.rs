//! The lock that says who leads, and the watch over it.

use std::time::Duration;

use forebay_data_folder::FileLock;
use forebay_runtime::time::{MissedTickBehavior, interval, timeout};
use forebay_types::{Error, Result};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::warn;

use crate::connect::connect;
use crate::dialect::Dialect;
use crate::location::Location;
use crate::sqlite_file;

/// How often the connection that holds the lock is asked whether it still stands, and how long it may take to answer.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The lock that one coordinator holds.
pub(crate) enum Leadership {
    /// On a file beside the database; it can't be lost.
    File { _lock: FileLock },
    /// Of a session of PostgreSQL, as long as its connection stands.
    Session(Session),
}

pub(crate) struct Session {
    stop: Option<oneshot::Sender<()>>,
    lost: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl Leadership {
    /// `Invalid` or `Retry` while another process has it.
    pub(crate) async fn acquire(location: &Location) -> Result<Self> {
        if let Location::Sqlite(path) = location {
            return Ok(Self::File { _lock: sqlite_file::lock(path)? });
        }
        let mut connection = connect(location).await?;
        let got = sqlx::query(AssertSqlSafe(Dialect::try_lock_leader())).fetch_one(&mut connection).await;
        let got: i32 = got.and_then(|row| row.try_get(0)).map_err(|error| location.fault(error))?;
        if got != 1 {
            let _ = connection.close().await;
            return Err(Error::retry(format!("another coordinator leads with metadata database {}", location.shown())));
        }
        let (stop, stopped) = oneshot::channel();
        let (lost_now, lost) = watch::channel(false);
        let task = forebay_runtime::spawn(hold(connection, location.shown(), stopped, lost_now));
        Ok(Self::Session(Session { stop: Some(stop), lost, task }))
    }

    /// Turns true when the lock is lost; none for one that can't be.
    pub(crate) fn lost(&self) -> Option<watch::Receiver<bool>> {
        match self {
            Self::Session(session) => Some(session.lost.clone()),
            Self::File { .. } => None,
        }
    }

    /// Gives the lock up; it is free when this returns.
    pub(crate) async fn release(self) {
        if let Self::Session(mut session) = self {
            drop(session.stop.take());
            let _ = timeout(PROBE_TIMEOUT, &mut session.task).await;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps the session, and says when it is lost.
async fn hold(mut connection: AnyConnection, shown: String, mut stopped: oneshot::Receiver<()>, lost: watch::Sender<bool>) {
    let mut probes = interval(PROBE_EVERY);
    probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut stopped => {
                let _ = connection.close().await;
                return;
            }
            _ = probes.tick() => {
                let probe = timeout(PROBE_TIMEOUT, sqlx::query("SELECT 1").execute(&mut connection)).await;
                let error = match probe {
                    Ok(Ok(_)) => continue,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "no answer".to_string(),
                };
                warn!(database = shown, error, "leadership lost");
                let _ = lost.send(true);
                return;
            }
        }
    }
}
