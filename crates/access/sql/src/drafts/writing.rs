//! A statement's files on their way to executors: where they go, and the plan that writes them.

use std::sync::Arc;

use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result as Planned;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use forebay_client::{Client, Drafts};
use forebay_types::{ForebayPath, OperationId, Result, WorkerId};

use super::exec::DraftExec;
use super::sink::{below, config_of, is_single, keeps};
use crate::error::from_engine;

/// A statement that writes files below a mount, which executors can write.
pub(crate) struct Writing {
    input: Arc<dyn ExecutionPlan>,
    /// A [`DataSinkExec`] over nothing.
    sink: Arc<dyn ExecutionPlan>,
    below: ForebayPath,
    /// The statement names the one file that it writes.
    pub(super) single: bool,
}

impl Writing {
    /// What a plan writes; none of a plan that writes nothing, or what this process alone can write.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>().filter(|_| keeps(plan).is_none()) else { return Ok(None) };
        let Some(config) = config_of(writes.sink()) else { return Ok(None) };
        let single = is_single(config);
        // Rows that come in an order are one file's, or one's after another; those in no order each task writes where it has them.
        let merged = writes.input().downcast_ref::<CoalescePartitionsExec>().filter(|merged| !single && merged.fetch().is_none());
        let input = Arc::clone(merged.map_or(writes.input(), CoalescePartitionsExec::input));
        let sink = over_nothing(plan, &input).map_err(from_engine)?;
        Ok(Some(Self { input, sink, below: below(config, single)?, single }))
    }

    /// Lets executors write drafts. `Denied` for who may not write there.
    pub(crate) async fn open(&self, client: &Client, operation: OperationId) -> Result<Drafts> {
        client.open_drafts(operation, &self.below).await
    }

    /// The plan that executors run, which write at these workers.
    pub(crate) fn plan(&self, operation: OperationId, open_at: Vec<WorkerId>) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = DraftExec::new(Arc::clone(&self.input), Arc::clone(&self.sink), operation, open_at, None);
        Ok(Arc::new(plan.map_err(from_engine)?))
    }
}

/// The sink of a plan without what it is to write.
fn over_nothing(plan: &Arc<dyn ExecutionPlan>, input: &Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    replace_children_if_necessary(Arc::clone(plan), vec![Arc::new(EmptyExec::new(input.schema()))])
}
