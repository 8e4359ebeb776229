//! Changes of objects that all workers hear of before the writer does.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_protocol::{ControlReply, ControlRequest};
use forebay_runtime::{Defect, planted, simulated};
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, MountId, Result, WorkerId};
use futures::FutureExt;

use super::Cluster;
use super::coordinator::ask;
use crate::single_flight::SingleFlight;

/// Time between two looks whether a worker has forgotten: it is woken to do so.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same while the coordinator does not answer.
const PAUSE: Duration = Duration::from_millis(250);
/// What a writer waits beyond two leases, in one of which a worker that is gone is lost.
const SLACK: Duration = Duration::from_secs(5);

/// What some workers hear in the place of what all others do, which says more.
#[derive(Default)]
pub(crate) struct Fuller {
    pub(crate) to: Vec<WorkerId>,
    pub(crate) message: Bytes,
    pub(crate) payload: Bytes,
}

/// Makes workers forget, by the coordinator, that can't be told of a change.
pub(crate) struct Forgetting {
    coordinator: Address,
    security: Security,
    line: tokio::sync::Mutex<Option<Connection>>,
    /// When the last one that ended began.
    asking: SingleFlight<WorkerId, Instant>,
}

impl Forgetting {
    pub(crate) fn new(coordinator: Address, security: Security) -> Self {
        Self { coordinator, security, line: Default::default(), asking: SingleFlight::default() }
    }

    /// Back when `worker` can't answer any more from what it knew when this was called: it has forgotten, or its lease is over.
    async fn forgotten(&self, mount: MountId, worker: WorkerId) {
        let came = forebay_runtime::now();
        let asking = self.asking.join(worker);
        let mut last = asking.turn().await;
        if last.is_some_and(|began| began >= came) {
            return;
        }
        let began = forebay_runtime::now();
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
                    forebay_runtime::time::sleep(LOOK_EVERY).await;
                }
                Ok(ControlReply::Done) => break,
                // A new coordinator knows nothing of numbers from before: it is asked from the start.
                Ok(_) | Err(_) => {
                    number = None;
                    forebay_runtime::time::sleep(PAUSE).await;
                }
            }
        }
        *last = Some(began);
    }
}

impl Cluster {
    /// Waits until this worker hears of what others write, and so knows of all who are to hear of its own writes. `Retry` when
    /// that takes longer than two leases.
    pub(crate) async fn may_write(&self) -> Result<()> {
        let patience = 2 * self.hearing.lease();
        forebay_runtime::time::timeout(patience, self.hearing.hears()).await.map_err(|_| {
            let coordinator = &self.forgetting.coordinator;
            Error::retry(format!(
                "nothing was written: this worker has no lease, so others would not hear of it; see whether the coordinator at \
                 {coordinator} runs, and try again"
            ))
        })
    }

    /// Tells all workers of a change, by a message of it. Back when none of them can answer from what it knew before; `Retry` when that is not
    /// certain within two leases and a little.
    pub(crate) async fn tell_everyone(&self, mount: MountId, message: Bytes) -> Result<()> {
        self.tell_some_more(mount, message, &Fuller::default()).await
    }

    /// The same where some hear more.
    pub(crate) async fn tell_some_more(&self, mount: MountId, message: Bytes, fuller: &Fuller) -> Result<()> {
        let telling = async {
            simulated::lingers("tell", Duration::from_millis(300)).await;
            // By the view of a worker that hears: it names all who hear.
            self.hearing.hears().await;
            let others = self.others();
            let told = others.iter().map(|peer| {
                let (message, payload) = match fuller.to.contains(&peer.id) {
                    true => (fuller.message.clone(), vec![fuller.payload.clone()]),
                    false => (message.clone(), Vec::new()),
                };
                async move {
                    if !self.peers.tell_now(peer, message, payload).await {
                        self.forgetting.forgotten(mount, peer.id).await;
                    }
                }
            });
            let told = futures::future::join_all(told);
            if planted(Defect::AckBeforeTold) { drop(told.now_or_never()) } else { drop(told.await) }
        };
        forebay_runtime::time::timeout(2 * self.hearing.lease() + SLACK, telling).await.map(drop).map_err(|_| {
            Error::retry("it is written, but not all workers have heard of it: some may answer with the old one for a while")
        })
    }
}
