//! The queues that commands of the state wait in for the writer and for the planner.

use forebay_protocol::ControlReply;
use tokio::sync::{mpsc, oneshot};

use crate::decide::{Change, Checkpoint, Problem};

/// Changes that may wait.
const JOBS_MAX: usize = 256;

/// Where changes wait for the writer.
pub(crate) type WriterQueue = mpsc::Sender<Job>;

/// Where problems wait for the planner: one at a time.
pub(crate) type PlannerQueue = mpsc::Sender<Box<Problem>>;

pub(crate) enum Job {
    Change(Box<Change>, oneshot::Sender<ControlReply>),
    Checkpoint(Box<Checkpoint>),
}

pub(crate) fn for_writer() -> (WriterQueue, mpsc::Receiver<Job>) {
    mpsc::channel(JOBS_MAX)
}

pub(crate) fn for_planner() -> (PlannerQueue, mpsc::Receiver<Box<Problem>>) {
    mpsc::channel(1)
}
