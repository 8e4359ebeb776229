//! The rows of files, which tell when they stop coming before their end.
//!
//! The engine's own sinks end a file where its rows stop coming, whatever the reason, and show it: after an error the first part of the
//! rows stood in the place of the whole file that had been there.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use futures::{Stream, StreamExt};

use crate::plan_nodes::{only_child, shown_by_name};
use crate::stores::Seen;

type Plan = Arc<dyn ExecutionPlan>;

/// The same plan; where it writes files, below EXPLAIN ANALYZE too, none is shown once its rows have failed.
pub(super) fn shown_whole(plan: Plan, seen: &Arc<Seen>) -> Result<Plan> {
    let told = |plan: Plan| {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Ok(Transformed::no(plan)) };
        let rows: Plan = Arc::new(WrittenRows { input: Arc::clone(writes.input()), seen: Arc::clone(seen) });
        let over_them = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(vec![rows], over_them).map(Transformed::yes)
    };
    plan.transform_up(told).map(|told| told.data)
}

/// Hands on the rows of its input, and tells how they ended.
#[derive(Debug)]
struct WrittenRows {
    input: Plan,
    seen: Arc<Seen>,
}

shown_by_name!(WrittenRows);

impl ExecutionPlan for WrittenRows {
    fn name(&self) -> &str {
        "WrittenRows"
    }

    crate::over_its_input!(input);

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Ok(Arc::new(Self { input: only_child(children)?, seen: Arc::clone(&self.seen) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        Ok(Box::pin(Told { rows, seen: Arc::clone(&self.seen), is_over: false }))
    }
}

/// Rows that tell how they ended. Dropped before their end, by a panic or since nobody waits for the statement any more, they are not whole.
struct Told {
    rows: SendableRecordBatchStream,
    seen: Arc<Seen>,
    is_over: bool,
}

impl Stream for Told {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.rows.poll_next_unpin(cx));
        self.is_over |= !matches!(next, Some(Ok(_)));
        Poll::Ready(next.map(|rows| {
            rows.map_err(|error| {
                let error = Arc::new(error);
                self.seen.rows_failed(&error);
                DataFusionError::Shared(error)
            })
        }))
    }
}

impl RecordBatchStream for Told {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if !self.is_over {
            self.seen.rows_given_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStore, PutOptions, PutPayload};

    use super::*;
    use crate::stores::Observed;

    #[tokio::test]
    async fn no_file_is_shown_whose_rows_stop_coming_before_their_end() {
        let schema = Arc::new(Schema::empty());
        for ends in [true, false] {
            let seen = Arc::new(Seen::default());
            let store = Observed::new(Arc::new(InMemory::new()), Arc::clone(&seen));
            let rows = futures::stream::iter([Ok::<_, DataFusionError>(RecordBatch::new_empty(Arc::clone(&schema)))]);
            let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows));
            let mut told = Told { rows, seen, is_over: false };
            assert!(told.next().await.is_some_and(|rows| rows.is_ok()));
            assert!(!ends || told.next().await.is_none());
            drop(told);
            let shown = store.put_opts(&Path::from("x"), PutPayload::from("rows"), PutOptions::default()).await;
            assert_eq!(shown.is_ok(), ends, "{shown:?}");
        }
    }
}
