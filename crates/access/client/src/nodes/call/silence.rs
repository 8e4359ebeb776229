//! What it means that a worker gives no answer, and how long a call goes on without one.

use std::mem::replace;
use std::time::Duration;

use forebay_nodes::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};
use forebay_protocol::NodeOp;
use forebay_runtime::time::{Instant, instant, sleep};
use forebay_types::{Error, WorkerId};

use crate::connect::REFUSED_FOR;

/// How long what is just moving to another worker, or can't be reached, is waited for, and the pauses between.
const PATIENCE: Duration = Duration::from_secs(30);
const MOVING_PAUSE: Duration = Duration::from_millis(5);
const MOVING_PAUSE_MAX: Duration = Duration::from_millis(100);
/// The longest pause before a worker is asked again that can't be reached; the first one is [`REFUSED_FOR`].
const AWAY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Why a worker gave no answer.
#[derive(Debug)]
pub(crate) enum Failed {
    /// There is no connection to it: nothing was asked of it.
    Unreached(Error),
    /// It was asked, and the connection ended, or the view lost it: it may have done what it was asked for.
    Broken(Error),
    /// Who asks is not let in: it may have not heard of a new token yet.
    Denied(NodeError),
    /// Another try would say the same.
    Refused(NodeError),
}

impl Failed {
    /// The error of a block that it did not take: nothing is lost by that, whether it is there or not.
    pub(crate) fn into_error(self, worker: WorkerId) -> NodeError {
        match self {
            Self::Unreached(why) | Self::Broken(why) => NodeError::new(
                NodeErrorKind::Retry,
                format!("worker {worker} did not take a block, try again: {}", why.message()),
            ),
            Self::Denied(error) | Self::Refused(error) => error,
        }
    }
}

/// A worker gave no answer, and what that means.
#[derive(Debug)]
pub(super) enum Silence {
    /// It has what it had, and can be asked again. Where it `is_asked`, it may have done what it was asked for.
    Away { worker: WorkerId, is_asked: bool, why: Error },
    /// What it was asked for may be done or not, and asking again might do it twice.
    Unknown(WorkerId),
    /// The same of a call with a number, of which it says what became of it when it is asked that.
    Doubt { worker: WorkerId, why: Error },
    /// It has said that it did not do what it was asked for, and does not do it under that number.
    Undone { worker: WorkerId, why: Error },
    /// The cluster has lost it.
    Gone { worker: WorkerId, is_asked: bool },
    /// See [`Failed::Denied`].
    Denied(NodeError),
    /// See [`Failed::Refused`].
    Refused(NodeError),
}

impl Silence {
    /// What it means that a worker gave no answer, which the view has as it was, or not. What it has is lost when the cluster has lost it, and
    /// not before: a connection that ends, or can't be made from here, says nothing of that.
    pub(super) fn of(failed: Failed, worker: WorkerId, is_live: bool, op: &NodeOp<'_>) -> Self {
        let (is_asked, why) = match failed {
            Failed::Unreached(why) => (false, why),
            Failed::Broken(why) => (true, why),
            Failed::Denied(error) => return Self::Denied(error),
            Failed::Refused(error) => return Self::Refused(error),
        };
        match is_live {
            false => Self::Gone { worker, is_asked },
            true if is_asked && op.is_numbered() => Self::Doubt { worker, why },
            true if is_asked && !may_repeat(op) => Self::Unknown(worker),
            true => Self::Away { worker, is_asked, why },
        }
    }
}

/// What a call has met on its way so far.
pub(super) struct Met {
    pub(super) patience: Patience,
    /// By a worker that said nothing any more: what another one says of now says nothing of that.
    may_be_done: bool,
    /// A worker has said that it was not done: of what an earlier process of it did it does not know, which is lost.
    is_undone: bool,
    is_denied: bool,
    is_broken: bool,
    /// There was a pause after it may have been done.
    is_paused: bool,
    /// Workers that were lost when the way led to them: it is the way of now that does so a second time.
    gone: Vec<WorkerId>,
}

impl Met {
    pub(super) fn new() -> Self {
        let (may_be_done, is_undone, is_denied, is_broken, is_paused) = (false, false, false, false, false);
        Self { patience: Patience::new(), may_be_done, is_undone, is_denied, is_broken, is_paused, gone: Vec::new() }
    }

    /// Back when a call that got no answer of what is `at` some worker is to go its way again, after a pause where one is due; with its error
    /// when it is over.
    pub(super) async fn silence(&mut self, path: &str, at: DirId, op: &NodeOp<'_>, silence: Silence) -> NodeResult<()> {
        if let Silence::Away { worker, is_asked, .. } | Silence::Gone { worker, is_asked } = &silence {
            debug_assert!(at == ROOT || worker.0 == at.worker, "{at:?} is with another worker than {worker}");
            self.may_be_done |= *is_asked && !only_reads(op);
        }
        match silence {
            Silence::Denied(error) if replace(&mut self.is_denied, true) => Err(self.honest(error)),
            Silence::Denied(_) => {
                sleep(REFUSED_FOR).await;
                Ok(())
            }
            Silence::Refused(error) => Err(self.honest(error)),
            Silence::Unknown(worker) => Err(unknown(path, worker)),
            Silence::Doubt { worker, why } => Err(doubt(path, worker, &why)),
            // Others may go on as they like meanwhile: it is done once, now.
            Silence::Undone { worker, why } => {
                self.is_undone = true;
                let goes_on = !replace(&mut self.is_broken, true) || self.patience.wait_away().await;
                goes_on.then_some(()).ok_or_else(|| self.away(path, worker, &why))
            }
            // A connection that ended can be made anew at once, as a rule.
            Silence::Away { is_asked: true, .. } if !replace(&mut self.is_broken, true) => Ok(()),
            // What may be done is not done once more a while later, when others have gone on from it.
            Silence::Away { worker, why, .. } if self.is_paused => Err(self.away(path, worker, &why)),
            Silence::Away { worker, why, .. } => {
                self.is_paused = self.may_be_done;
                self.patience.wait_away().await.then_some(()).ok_or_else(|| self.away(path, worker, &why))
            }
            // The root may be with another one by now.
            Silence::Gone { worker, .. } if at == ROOT => {
                self.patience.wait().await.then_some(()).ok_or_else(|| lost(path, worker))
            }
            Silence::Gone { worker, .. } if self.gone.contains(&worker) => Err(lost(path, worker)),
            Silence::Gone { worker, .. } => {
                self.gone.push(worker);
                Ok(())
            }
        }
    }

    /// The error of a worker that the cluster has, as far as is known here, and that does not answer.
    fn away(&self, path: &str, worker: WorkerId, why: &Error) -> NodeError {
        let (named, why) = (named(path), why.message());
        let may_be = if self.may_be_done { " (it may be done or not)" } else { "" };
        let message = format!(
            "{named}worker {worker} can't be reached from here, and is not lost: try again, and see to the network where it stays so: \
             {why}{may_be}"
        );
        NodeError::new(NodeErrorKind::Retry, message)
    }

    /// An error of the call, when it may be done already: others may have seen it before it was lost, so none is left that says that nothing was
    /// changed.
    pub(super) fn honest(&self, error: NodeError) -> NodeError {
        use NodeErrorKind::{DataLost, Internal, Moving, Retry};
        if !(self.may_be_done || self.is_undone) || matches!(error.kind, DataLost | Retry | Moving | Internal) {
            return error;
        }
        NodeError::new(DataLost, format!("it may have been done, and be lost with its worker; asked again: {}", error.message))
    }
}

/// Whether a call that may be done already comes to the same when it is done again: what changes nothing, the question what became of
/// a call, and what is of one writer alone, by its number. All else would add twice, find its own work in its place, or undo another's, as a
/// put would that comes after another's. Blocks that are put a second time would be given back with the value that they are put in the place of.
fn may_repeat(op: &NodeOp<'_>) -> bool {
    use NodeOp::*;
    only_reads(op) || matches!(op, WasDone { .. } | OpenWriter { .. } | CloseWriter { .. })
}

fn only_reads(op: &NodeOp<'_>) -> bool {
    use NodeOp::*;
    matches!(op, Get | GetMany { .. } | Stat | Usage | List { .. } | Read { .. } | Extents { .. } | Parent | BlockRead { .. })
}

/// Waits for what moves, and for who can't be reached, longer each time, until it has been long enough.
pub(crate) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { until: instant() + PATIENCE, pause: Duration::ZERO }
    }

    /// For what is just moving. False when it is over.
    pub(crate) async fn wait(&mut self) -> bool {
        self.wait_between(MOVING_PAUSE, MOVING_PAUSE_MAX).await
    }

    /// For a worker that can't be reached: in the pause after one that failed no connection to it is made.
    pub(crate) async fn wait_away(&mut self) -> bool {
        self.wait_between(REFUSED_FOR, AWAY_PAUSE_MAX).await
    }

    async fn wait_between(&mut self, least: Duration, most: Duration) -> bool {
        if instant() >= self.until {
            return false;
        }
        let pause = self.pause.clamp(least, most);
        self.pause = pause * 2;
        sleep(pause).await;
        true
    }
}

/// The worker is there, but for what may have been done there is no telling.
fn unknown(path: &str, worker: WorkerId) -> NodeError {
    let message =
        format!("{path:?}: the connection to worker {worker} ended before it answered: it may be done or not, make it again");
    NodeError::new(NodeErrorKind::DataLost, message)
}

/// The same where it can be asked what became of it, and does not say.
fn doubt(path: &str, worker: WorkerId, why: &Error) -> NodeError {
    let message = format!(
        "{path:?}: the connection to worker {worker} ended before it answered, and it does not say what became of it: it may be done or not, \
         look before you try again: {}",
        why.message()
    );
    NodeError::new(NodeErrorKind::Retry, message)
}

/// The error of what the cluster has lost with a worker.
pub(super) fn lost(path: &str, worker: WorkerId) -> NodeError {
    NodeError::new(NodeErrorKind::DataLost, format!("{}worker {worker}, which had it, is gone: make it again", named(path)))
}

/// What stands before a message; nothing where it is about the container that is asked itself.
fn named(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path:?}: ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_protocol::Raw;

    const WORKER: WorkerId = WorkerId(1);
    const APPEND: NodeOp<'static> = NodeOp::Append { writer: 0, bytes: Raw(&[]) };

    fn unreached() -> Failed {
        Failed::Unreached(Error::retry("it does not answer"))
    }

    fn broken() -> Failed {
        Failed::Broken(Error::closed("the connection ended"))
    }

    #[test]
    fn what_a_worker_has_is_lost_when_the_cluster_has_lost_it_and_not_with_a_connection() {
        let of = |failed, is_live, op: &NodeOp<'_>| Silence::of(failed, WORKER, is_live, op);
        for op in [NodeOp::Get, NodeOp::Put { value: Raw(&[]) }, APPEND] {
            assert!(matches!(of(unreached(), true, &op), Silence::Away { is_asked: false, .. }), "nothing was asked of it");
            assert!(matches!(of(unreached(), false, &op), Silence::Gone { is_asked: false, .. }));
            assert!(matches!(of(broken(), false, &op), Silence::Gone { is_asked: true, .. }));
        }
        assert!(matches!(of(broken(), true, &NodeOp::Get), Silence::Away { is_asked: true, .. }));
        assert!(matches!(of(broken(), true, &APPEND), Silence::Unknown(WORKER)), "it might be done twice");
        assert!(matches!(of(broken(), true, &NodeOp::Put { value: Raw(&[]) }), Silence::Doubt { worker: WORKER, .. }));
    }

    #[tokio::test]
    async fn what_was_not_done_is_tried_again_and_what_nobody_knows_of_is_an_error() {
        let (path, put, why) = ("/tmp/k", NodeOp::Put { value: Raw(&[]) }, || Error::closed("the connection ended"));
        let mut met = Met::new();
        met.silence(path, ROOT, &put, Silence::Undone { worker: WORKER, why: why() }).await.unwrap();
        let kind = |met: &Met, kind| met.honest(NodeError::new(kind, "no")).kind;
        assert_eq!(kind(&met, NodeErrorKind::NotFound), NodeErrorKind::DataLost, "an earlier process of it may have done it");
        let doubt = met.silence(path, ROOT, &put, Silence::Doubt { worker: WORKER, why: why() }).await.unwrap_err();
        assert_eq!(doubt.kind, NodeErrorKind::Retry);
        assert!(doubt.message.contains("may be done or not"), "{doubt}");
        assert_eq!(kind(&Met::new(), NodeErrorKind::NotFound), NodeErrorKind::NotFound);
    }

    #[test]
    fn who_can_not_be_reached_or_does_not_let_one_in_has_lost_nothing() {
        let kind = |failed: Failed| failed.into_error(WORKER).kind;
        assert_eq!((kind(unreached()), kind(broken())), (NodeErrorKind::Retry, NodeErrorKind::Retry));
        let gone = Failed::Broken(Error::retry("the cluster lost it before it answered"));
        assert!(!gone.into_error(WORKER).message.contains("not lost"), "it is");
        let denied = NodeError::from(&Error::denied("the token was taken away"));
        assert_eq!(kind(Failed::Denied(denied.clone())), NodeErrorKind::Denied);
        let silence = |is_live| Silence::of(Failed::Denied(denied.clone()), WORKER, is_live, &APPEND);
        assert!(matches!((silence(true), silence(false)), (Silence::Denied(_), Silence::Denied(_))));
    }
}
