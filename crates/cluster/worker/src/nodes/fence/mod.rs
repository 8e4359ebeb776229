//! What may be answered about names, after workers were lost: others, or this one.
//!
//! Owns: the two ways to the names (to look at them, to change them), the losses that are heeded, the waits for the lease before a call and
//! after it, and which numbered calls were done.
//!
//! Never does: decide who is lost, which views tell, or drop the names, which `sweep` does.
//!
//! Start with [`Nodes::begins`], [`Nodes::reached`] and [`Nodes::counts`], in the order of a call.
//!
//! Clients remember the ways to containers, so a worker must not answer by a way that nobody finds any more. Three rules see to that
//! ([specs/nodes.md](../../../../../../docs/specs/nodes.md#a-worker-that-is-lost)): a worker answers only under its lease, and drops all names when
//! it was lost; with each view that tells of a loss, ways from before it are old; and what a lost worker had is given to nobody else
//! before all have that view.

mod once;

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use forebay_nodes::{CallNumber, DirId, Namespace, NodeError, NodeErrorKind, NodeResult};
use forebay_protocol::{ClusterView, NodeOp};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

use super::Nodes;

pub(super) use once::Answer;

/// How long a call waits for the lease before it is refused, without having done anything.
const BEGINS_WITHIN: Duration = Duration::from_secs(5);
/// How long one that is done waits until it is certain that it counts. Less than clients wait.
const COUNTS_WITHIN: Duration = Duration::from_secs(25);

/// A container as a call came to it: nothing is done there once a worker on the way may be lost.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    pub(super) dir: DirId,
    /// Losses known when the way was walked; none for who needs no way.
    pub(super) losses: Option<u64>,
    /// By which the call takes effect once; none of what may do so twice.
    pub(super) number: Option<CallNumber>,
}

impl From<DirId> for Reached {
    fn from(dir: DirId) -> Self {
        Self { dir, losses: None, number: None }
    }
}

/// The losses that are known.
#[derive(Default)]
pub(super) struct Heeded {
    number: u64,
    /// The view that told of the last one.
    view: u64,
}

impl Heeded {
    /// Whether the last one that is known is of a later epoch than a view: the coordinator's database is an older copy, and its clock is
    /// behind. Its numbers begin anew.
    fn is_past(&self, view: &ClusterView) -> bool {
        view.epoch < self.number >> 32
    }
}

impl Nodes {
    /// The names, to be looked at beside others who do, for who came to a container. `Moving` when the way to it is to be looked for anew, `Retry`
    /// when the call is to have no effect any more.
    pub(super) fn reached(&self, at: Reached) -> NodeResult<RwLockReadGuard<'_, Namespace>> {
        let names = self.names.read();
        self.check_reached(at)?;
        Ok(names)
    }

    /// The same, to be changed by nobody else meanwhile.
    pub(super) fn changing(&self, at: Reached) -> NodeResult<RwLockWriteGuard<'_, Namespace>> {
        let names = self.names.write();
        self.check_reached(at)?;
        Ok(names)
    }

    /// To be asked while the names are locked: what it says is true until they are not.
    fn check_reached(&self, at: Reached) -> NodeResult<()> {
        if at.losses.is_some_and(|losses| losses != self.fence.losses.load(Relaxed)) {
            return Err(NodeError::new(NodeErrorKind::Moving, "a worker was lost meanwhile: the way is looked for anew"));
        }
        self.check_open(at)
    }

    /// Takes over what a view tells of lost workers: ways that clients remember from before are old, whichever workers they lead over.
    pub(super) fn heed(&self, view: &ClusterView) {
        let mut heeded = self.fence.heeded.lock();
        let is_past = heeded.is_past(view);
        if is_past {
            self.cluster.forget_settled();
        }
        if view.losses > heeded.number || is_past {
            *heeded = Heeded { number: view.losses, view: view.version };
            // No call is between its way and what it does.
            let _names = self.names.write();
            self.fence.losses.fetch_add(1, Relaxed);
            self.moves.fetch_add(1, Relaxed);
        }
    }

    /// Whether what lost workers had may be given to others: everybody knows that they are lost, and is led to it no more.
    pub(super) fn may_replace_lost(&self) -> bool {
        self.cluster.hearing.holds() && self.cluster.is_known_to_all(self.fence.heeded.lock().view)
    }

    /// Waits until a call about names may begin; the life of this worker that it is in.
    pub(super) async fn begins(&self) -> NodeResult<u64> {
        match self.cluster.lease.held(BEGINS_WITHIN).await {
            true => Ok(self.fence.lives.load(Acquire)),
            false => Err(NodeError::new(NodeErrorKind::Moving, "the worker has no lease: it does not hear from the coordinator")),
        }
    }

    /// Waits until it is certain that a call counts that is done: that nobody took this worker for lost before it was.
    pub(super) async fn counts(&self, life: u64) -> NodeResult<()> {
        if !self.cluster.lease.held(COUNTS_WITHIN).await {
            let message = "it may be done or not: the worker has no lease, see whether the coordinator runs";
            return Err(NodeError::new(NodeErrorKind::Retry, message));
        }
        match self.fence.lives.load(Acquire) == life {
            true => Ok(()),
            false => Err(NodeError::new(NodeErrorKind::DataLost, "the worker that had it was lost: make it again")),
        }
    }
}

/// Whether a call is about names; all else is about blocks, which are what they are whoever is lost.
pub(super) fn is_about_names(op: &NodeOp<'_>) -> bool {
    !matches!(op, NodeOp::BlockWrite { .. } | NodeOp::BlockRead { .. } | NodeOp::Prepare { .. } | NodeOp::Written { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_an_earlier_epoch_are_news() {
        let of =
            |epoch: u64| ClusterView { version: (epoch << 32) + 9, epoch, losses: (epoch << 32) + 2, ..ClusterView::default() };
        let view = of(7);
        let heeded = Heeded { number: view.losses, view: view.version };
        assert_eq!([of(6), of(7), of(8)].map(|view| heeded.is_past(&view)), [true, false, false]);
        assert!(!Heeded::default().is_past(&of(1)));
    }
}
