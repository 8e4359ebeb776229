//! Calls with a number: each takes effect once, and its client is told what became of it when it has lost the answer.

use std::time::Duration;

use forebay_nodes::{CallNumber, Namespace, NodeError, NodeErrorKind, NodeResult, Settled};
use forebay_protocol::NodeReply;

use super::Reached;
use crate::nodes::Nodes;

/// What is remembered of a call's answer.
#[derive(Clone, Copy)]
pub(in crate::nodes) enum Answer {
    Done,
    Length(u64),
    /// Several values are put.
    AllPut,
    /// Some of several: errors are not remembered, as there may be many of them, and long ones.
    SomePut,
}

impl Nodes {
    /// `Retry` of a call that comes late: it was done already, or its client was told that it is not. To be asked while the names are locked.
    pub(in crate::nodes) fn check_open(&self, at: Reached) -> NodeResult<()> {
        debug_assert!(self.names.is_locked(), "a call takes effect with its number");
        match at.number.is_none_or(|number| self.fence.once.lock().is_open(number)) {
            true => Ok(()),
            false => Err(NodeError::new(NodeErrorKind::Retry, "the call came late: who made it has asked what became of it")),
        }
    }

    /// A call has changed the names, which are still its own.
    pub(in crate::nodes) fn took_effect(&self, _: &Namespace, at: Reached, answer: Answer) {
        debug_assert!(self.names.is_locked_exclusive(), "a call takes effect with its number");
        if let Some(number) = at.number {
            self.fence.once.lock().done(number, answer, || self.now());
        }
    }

    /// What became of a call whose answer its client has lost.
    pub(in crate::nodes) fn was_done(&self, number: CallNumber, within_ms: u64) -> NodeResult<NodeReply<'static>> {
        let settled = {
            // No call is between what it does and that being noted.
            let _names = self.names.write();
            let mut once = self.fence.once.lock();
            let settled = once.settle(number, Duration::from_millis(within_ms), self.now());
            debug_assert!(matches!(settled, Settled::Unknown) || !once.is_open(number), "{number:?} may still take effect");
            settled
        };
        match settled {
            Settled::Done(Answer::Done) => Ok(NodeReply::Done),
            Settled::Done(Answer::Length(len)) => Ok(NodeReply::Length(len)),
            Settled::Done(Answer::AllPut) => Ok(NodeReply::Refused(Vec::new())),
            Settled::Done(Answer::SomePut) => {
                let message = "some of the values were refused, the others are put: which ones is not known any more";
                Err(NodeError::new(NodeErrorKind::Retry, message))
            }
            Settled::Undone => Ok(NodeReply::Outcome(false)),
            Settled::Unknown => {
                let message = "it may be done or not: its answer was lost, and what it was is not known any more";
                Err(NodeError::new(NodeErrorKind::Retry, message))
            }
        }
    }

    /// Forgets calls of long ago.
    pub(in crate::nodes) fn forget_calls(&self) {
        let mut once = self.fence.once.lock();
        once.age(self.now());
    }

    /// The node goes away unless this is said again in time.
    pub(in crate::nodes) fn set_lease(&self, at: Reached, name: &str, ttl_ms: Option<u64>) -> NodeResult<()> {
        let until = ttl_ms.map(|ms| self.now() + Duration::from_millis(ms));
        let mut names = self.changing(at)?;
        names.set_lease(at.dir, name, until)?;
        self.took_effect(&names, at, Answer::Done);
        Ok(())
    }

    /// So much a container's files and values may have.
    pub(in crate::nodes) fn set_quota(&self, at: Reached, bytes: Option<u64>) -> NodeResult<()> {
        let mut names = self.changing(at)?;
        names.set_quota(at.dir, bytes)?;
        self.took_effect(&names, at, Answer::Done);
        Ok(())
    }
}
