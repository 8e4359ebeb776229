//! The loop that ticks as long as this coordinator leads, and the order in which its parts end.

use std::sync::Arc;
use std::time::Duration;

use forebay_metadata::Metadata;
use forebay_runtime::time::sleep;
use forebay_transport::Server;
use forebay_types::{Error, Result};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tracing::{error, info};

use super::shared::Shared;
use crate::decide::Event;

/// How often leases are looked at, at least.
const TICK_EVERY: Duration = Duration::from_millis(250);
/// How often at most.
const TICK_GAP: Duration = Duration::from_millis(5);

/// What belongs to a running coordinator; all of it ends with this.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) metadata: Metadata,
    pub(crate) shared: Arc<Shared>,
    /// The writer, the planner, and who looks after the database.
    pub(crate) writer: JoinSet<Error>,
}

/// Ticks until asked to stop, or until another coordinator may lead; says how it ended.
pub(crate) async fn supervise(mut running: Running, stop: oneshot::Receiver<()>, ended: watch::Sender<Option<Result<()>>>) {
    let ticking = async {
        loop {
            running.shared.decide(Event::Tick);
            sleep(running.shared.next_tick().clamp(TICK_GAP, TICK_EVERY)).await;
        }
    };
    let end = tokio::select! {
        _ = stop => Ok(()),
        _ = running.metadata.leadership_lost() => Err(Error::closed(format!(
            "leadership is lost: the connection to metadata database {} ended, and another coordinator may lead; start this one \
             again to stand by",
            running.metadata.shown()
        ))),
        ended = running.writer.join_next() => Err(match ended {
            Some(Ok(error)) => error,
            _ => Error::internal("the coordinator's writer ended"),
        }),
        () = ticking => unreachable!("ticks don't end"),
    };
    running.shared.news.close();
    match &end {
        Ok(()) => {
            running.server.shutdown().await;
            info!("coordinator stopped");
        }
        // Nothing more is answered: someone else may be the one to ask.
        Err(reason) => {
            drop(running.server);
            error!(%reason, "coordinator stopped");
        }
    }
    running.writer.shutdown().await;
    running.metadata.close().await;
    let _ = ended.send(Some(end));
}
