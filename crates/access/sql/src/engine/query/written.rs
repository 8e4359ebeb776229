//! The rows of files, which tell when they stop coming because of an error.
//!
//! The engine's own sinks end a file where its rows stop coming, whatever the reason, and show it: after an error the first part of the
//! rows stood in the place of the whole file that had been there.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use crate::plan_nodes::only_child;
use crate::stores::Seen;

type Plan = Arc<dyn ExecutionPlan>;

/// The same plan; where it writes files, below EXPLAIN ANALYZE too, none is shown once its rows have failed.
pub(super) fn shown_whole(plan: Plan, seen: &Arc<Seen>) -> Result<Plan> {
    let told = |plan: Plan| {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Ok(Transformed::no(plan)) };
        let rows: Plan = Arc::new(WrittenRows { input: Arc::clone(writes.input()), seen: Arc::clone(seen) });
        plan.with_new_children(vec![rows]).map(Transformed::yes)
    };
    plan.transform_up(told).map(|told| told.data)
}

/// Hands on the rows of its input, and tells their error.
#[derive(Debug)]
struct WrittenRows {
    input: Plan,
    seen: Arc<Seen>,
}

impl DisplayAs for WrittenRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WrittenRows")
    }
}

impl ExecutionPlan for WrittenRows {
    fn name(&self) -> &str {
        "WrittenRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    crate::no_expressions!();

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Ok(Arc::new(Self { input: only_child(children)?, seen: Arc::clone(&self.seen) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let seen = Arc::clone(&self.seen);
        let told = rows.map_err(move |error: DataFusionError| {
            let error = Arc::new(error);
            seen.rows_failed(&error);
            DataFusionError::Shared(error)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), told)))
    }
}
