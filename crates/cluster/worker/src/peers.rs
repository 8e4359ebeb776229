use std::collections::HashMap;
use std::time::{Duration, Instant};

use forebay_protocol::{DataReply, DataRequest, WorkerInfo, decode, encode};
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, Result, WorkerId};
use parking_lot::Mutex;

/// How long a peer may take to hear of a write.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// How long a peer that did not answer is left alone: its lease runs out meanwhile, and writes don't wait for it each.
const AWAY_FOR: Duration = Duration::from_secs(3);

/// The other workers, who are told of writes. A connection each, made at the first word and kept.
pub(crate) struct Peers {
    security: Security,
    lines: Mutex<HashMap<WorkerId, Line>>,
}

enum Line {
    Open(String, Connection),
    AwayUntil(Instant),
}

impl Peers {
    pub(crate) fn new(security: Security) -> Self {
        Self { security, lines: Mutex::default() }
    }

    /// Closes the lines to workers that are gone.
    pub(crate) fn retain(&self, workers: &[WorkerInfo]) {
        self.lines.lock().retain(|id, _| workers.iter().any(|worker| worker.id == *id));
    }

    /// Says `request` to all `peers` at once and waits until each has answered, or failed to within a second. Best effort:
    /// the mounts' rules bound how long a peer that did not hear goes on with what it knows.
    pub(crate) async fn tell(&self, peers: &[WorkerInfo], request: &DataRequest) {
        if peers.is_empty() {
            return;
        }
        let message = encode(request);
        let told = peers.iter().filter(|peer| !self.is_away(peer.id)).map(|peer| {
            let message = message.clone();
            async move {
                let told = tokio::time::timeout(TELL_WITHIN, self.tell_one(peer, message)).await;
                if let Err(error) = told.unwrap_or_else(|_| Err(Error::retry("no answer within a second"))) {
                    tracing::debug!(worker = %peer.id, %error, "peer did not hear of a write");
                    self.lines.lock().insert(peer.id, Line::AwayUntil(Instant::now() + AWAY_FOR));
                }
            }
        });
        futures::future::join_all(told).await;
    }

    async fn tell_one(&self, peer: &WorkerInfo, message: bytes::Bytes) -> Result<()> {
        let open = match self.lines.lock().get(&peer.id) {
            Some(Line::Open(address, line)) if *address == peer.address && !line.is_closed() => Some(line.clone()),
            _ => None,
        };
        let line = match open {
            Some(line) => line,
            None => {
                let line = Connection::connect(&Address::Tcp(peer.address.clone()), &self.security).await?;
                self.lines.lock().insert(peer.id, Line::Open(peer.address.clone(), line.clone()));
                line
            }
        };
        match decode(&line.call(message, Vec::new()).await?.meta)? {
            DataReply::Failed { kind, message } => Err(Error::new(kind, message)),
            _ => Ok(()),
        }
    }

    fn is_away(&self, peer: WorkerId) -> bool {
        matches!(self.lines.lock().get(&peer), Some(Line::AwayUntil(until)) if Instant::now() < *until)
    }
}
