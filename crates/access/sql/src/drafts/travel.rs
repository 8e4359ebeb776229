//! The writing of a statement's files on its way to other processes.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use forebay_client::Client;
use forebay_types::{OperationId, Result, WorkerId};
use serde::{Deserialize, Serialize};

use super::exec::DraftExec;
use super::options::SinkOptions;
use crate::error::from_engine;

/// Whose drafts a plan writes, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftsTo {
    /// The statement that they are of.
    pub operation: OperationId,
    /// Workers at which they may begin.
    pub open_at: Vec<WorkerId>,
    /// How their files are written, beside what the engine's message of the sink says.
    pub options: SinkOptions,
}

/// What is written by a node that writes drafts, and the engine's sink, which has no rows; none of any other node.
pub fn drafts_to_send(node: &Arc<dyn ExecutionPlan>) -> Option<(DraftsTo, Arc<dyn ExecutionPlan>)> {
    let writes = node.downcast_ref::<DraftExec>()?;
    let (operation, open_at, options) = (writes.operation, writes.open_at.to_vec(), SinkOptions::of(writes.sink()));
    Some((DraftsTo { operation, open_at, options }, SinkOptions::in_message(writes.sink())))
}

/// The node again, over its input: written by a client, beside a worker, where it is to run.
///
/// # Errors
/// Where the sink is none that writes files below a mount, of other columns, or of options that there are not.
pub fn drafts_of(
    to: DraftsTo,
    sink: Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
    runs: Option<(Client, Option<WorkerId>)>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let sink = to.options.put_into(&sink)?;
    Ok(Arc::new(DraftExec::new(input, sink, to.operation, to.open_at, runs).map_err(from_engine)?))
}
