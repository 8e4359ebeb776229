//! Calls that take effect once: by a number, by which a worker says what became of one whose answer was lost.

use std::sync::Arc;

use bytes::Bytes;
use forebay_nodes::{CallNumber, NodeErrorKind, ROOT, Slots};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, WorkerInfo};
use forebay_runtime::time::{Instant, instant};
use forebay_types::Error;
use parking_lot::Mutex;

use super::reach::NodeAnswer;
use super::silence::{Patience, Silence};
use crate::nodes::Nodes;

/// The number of a call while it is under way; none of a kind that has none.
pub(super) struct Numbered<'s> {
    slots: &'s Mutex<Slots>,
    number: Option<CallNumber>,
}

impl<'s> Numbered<'s> {
    pub(super) fn of(slots: &'s Mutex<Slots>, op: &NodeOp<'_>) -> Self {
        let number = op.is_numbered().then(|| slots.lock().draw());
        Self { slots, number }
    }

    pub(super) fn number(&self) -> Option<CallNumber> {
        self.number
    }

    /// The call is made anew: what was said under its number before counts no more.
    pub(super) fn renew(&mut self) {
        let renewed = self.number.map(CallNumber::renewed);
        debug_assert!(renewed.is_none() || renewed != self.number, "{renewed:?} was drawn before");
        self.number = renewed;
    }
}

impl Drop for Numbered<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.slots.lock().give_back(number);
        }
    }
}

impl Nodes {
    /// Asks one worker. One that has a numbered call, and from which no answer came, is asked what became of it.
    pub(super) async fn ask_once(
        &self,
        worker: &Arc<WorkerInfo>,
        call: &NodeCall<'_>,
        payload: Vec<Bytes>,
    ) -> Result<NodeAnswer, Silence> {
        debug_assert_eq!(
            call.number.is_some(),
            call.op.is_numbered(),
            "{:?} takes effect once, or may not be made again",
            call.op
        );
        // Calls without a number don't pay for it.
        let begun = call.number.map(|number| (number, instant(), self.shared.routes.view.known().view.losses));
        match (self.ask(worker, call, payload).await, begun) {
            (Err(Silence::Doubt { why, .. }), Some((number, sent, losses))) => {
                self.settle((worker, losses), (number, sent), why).await
            }
            (asked, _) => asked,
        }
    }

    /// Asks a worker, as it was when so many losses were known, what became of a call that was sent then: its answer where it was done, and
    /// `Undone` where it was not and never will be.
    async fn settle(
        &self,
        (worker, losses): (&Arc<WorkerInfo>, u64),
        (number, sent): (CallNumber, Instant),
        mut why: Error,
    ) -> Result<NodeAnswer, Silence> {
        let (routes, mut patience) = (&self.shared.routes, Patience::new());
        loop {
            // It may have another address by now.
            let there = routes.view.known().worker(worker.id).cloned();
            let Some(there) = there.filter(|_| routes.is_live(worker, losses)) else {
                return Err(Silence::Gone { worker: worker.id, is_asked: true });
            };
            // What is heard later than that is no answer.
            let within = sent.elapsed().saturating_add(routes.connections.read_deadline());
            let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
            let op = NodeOp::WasDone { number, within_ms };
            let question = NodeCall { from: ROOT, moves: 0, path: "", op, number: None };
            why = match self.ask(&there, &question, Vec::new()).await {
                Ok(answer) => match NodeReply::decode(&answer.meta) {
                    Ok(NodeReply::Outcome(false)) => return Err(Silence::Undone { worker: worker.id, why }),
                    // It has no lease now.
                    Ok(NodeReply::Failed(error)) if error.kind == NodeErrorKind::Moving => Error::retry(error.message),
                    // Whatever it is, it is not said of the call.
                    Ok(NodeReply::Failed(error)) => {
                        return Err(Silence::Doubt { worker: worker.id, why: Error::retry(error.message) });
                    }
                    _ => return Ok(answer),
                },
                Err(Silence::Away { why, .. }) => why,
                Err(Silence::Gone { worker, .. }) => return Err(Silence::Gone { worker, is_asked: true }),
                Err(Silence::Denied(error) | Silence::Refused(error)) => {
                    return Err(Silence::Doubt { worker: worker.id, why: Error::retry(error.message) });
                }
                Err(silence) => return Err(silence),
            };
            if !patience.wait_away().await {
                return Err(Silence::Doubt { worker: worker.id, why });
            }
        }
    }
}
