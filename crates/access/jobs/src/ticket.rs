//! What all tasks of a query must know, where a task reads, and beside which worker an executor is.

use forebay_trace::TraceContext;
use forebay_types::{ObjectInfo, OperationId, PageRun, SegmentId, WorkerId};
use serde::{Deserialize, Serialize};

/// What all tasks of a query must know: they read the versions that it was planned with. Fields that come later stand at its end, as
/// those of messages do (`forebay_protocol::write_since`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ticket {
    /// Of whom reads are.
    pub operation: OperationId,
    /// The higher first.
    pub priority: i32,
    /// The statement, as people are told it.
    pub sql: String,
    /// The versions.
    pub pins: Vec<ObjectInfo>,
    /// Whose query it is, as its engine knows them.
    pub who: String,
    /// Where in a trace it is.
    pub trace: Option<TraceContext>,
}

impl Ticket {
    /// Of a job that says nothing of itself: it reads what is current.
    pub fn silent(operation: OperationId) -> Self {
        Self { operation, priority: 0, sql: String::new(), pins: Vec::new(), who: String::new(), trace: None }
    }
}

/// Where a task reads what of its input.
pub type Places = Vec<(SegmentId, PageRun, WorkerId)>;

/// Beside which worker an executor is, from its name. One that has none gets a number that no worker has.
pub fn worker_of(executor: &str) -> Option<WorkerId> {
    u64::from_str_radix(executor.split_once('-')?.0, 16).ok().map(WorkerId)
}
