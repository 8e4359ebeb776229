use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_protocol::{ControlReply, ControlRequest, DataRequest, WorkerInfo, encode};
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, MountId, Result, WorkerId};
use parking_lot::Mutex;

use crate::membership::ask;
use crate::serving::Serving;

/// Time between two looks whether a worker has forgotten: it is woken to do so.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same while the coordinator does not answer.
const PAUSE: Duration = Duration::from_millis(250);
/// What a writer waits beyond two leases, in one of which a worker that is gone is lost.
const SLACK: Duration = Duration::from_secs(5);

/// Makes workers forget, by the coordinator, that can't be told of a change.
pub(crate) struct Forgetting {
    coordinator: Address,
    security: Security,
    line: tokio::sync::Mutex<Option<Connection>>,
    /// One asks for all who come at the same time: when the last one that ended began.
    turns: Mutex<HashMap<WorkerId, Arc<tokio::sync::Mutex<Option<Instant>>>>>,
}

impl Forgetting {
    pub(crate) fn new(coordinator: Address, security: Security) -> Self {
        Self { coordinator, security, line: Default::default(), turns: Mutex::default() }
    }

    /// Forgets workers that are gone.
    pub(crate) fn retain(&self, workers: &[WorkerInfo]) {
        self.turns.lock().retain(|id, _| workers.iter().any(|worker| worker.id == *id));
    }

    /// Back when `worker` can't answer any more from what it knew when this was called: it has forgotten, or its lease is over.
    async fn forgotten(&self, mount: MountId, worker: WorkerId) {
        let came = Instant::now();
        let turn = Arc::clone(self.turns.lock().entry(worker).or_default());
        let mut last = turn.lock().await;
        if last.is_some_and(|began| began >= came) {
            return;
        }
        let began = Instant::now();
        let mut number = None;
        loop {
            let request = ControlRequest::Unheard { mount, worker, number };
            let answer = {
                let mut line = self.line.lock().await;
                ask(&self.coordinator, &self.security, &mut line, request).await
            };
            match answer {
                Ok(ControlReply::Unheard { number: wanted }) => {
                    number = Some(wanted);
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Ok(ControlReply::Done) => break,
                // A new coordinator knows nothing of numbers from before: it is asked from the start.
                Ok(_) | Err(_) => {
                    number = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        *last = Some(began);
    }
}

impl Serving {
    /// Waits until this worker hears of what others write, and so knows of all who are to hear of its own writes. `Retry` when
    /// that takes longer than two leases.
    pub(crate) async fn may_write(&self) -> Result<()> {
        let patience = 2 * self.hearing.lease();
        tokio::time::timeout(patience, self.hearing.hears()).await.map_err(|_| {
            let coordinator = &self.forgetting.coordinator;
            Error::retry(format!(
                "nothing was written: this worker has no lease, so others would not hear of it; see whether the coordinator at \
                 {coordinator} runs, and try again"
            ))
        })
    }

    /// Tells all workers of a change. Back when none of them can answer from what it knew before; `Retry` when that is not
    /// certain within two leases and a little.
    pub(crate) async fn tell_everyone(&self, mount: MountId, request: &DataRequest) -> Result<()> {
        let message = encode(request);
        let telling = async {
            // By the view of a worker that hears: it names all who hear.
            self.hearing.hears().await;
            let others = self.others();
            let told = others.iter().map(|peer| {
                let message = message.clone();
                async move {
                    if !self.peers.tell_now(peer, message).await {
                        self.forgetting.forgotten(mount, peer.id).await;
                    }
                }
            });
            futures::future::join_all(told).await;
        };
        tokio::time::timeout(2 * self.hearing.lease() + SLACK, telling).await.map(drop).map_err(|_| {
            Error::retry("it is written, but not all workers have heard of it: some may answer with the old one for a while")
        })
    }
}
