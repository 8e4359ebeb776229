//! Rows that windows hold. A window keeps all rows of its input, or those that it has no answer for yet, where no budget knows of them. They
//! are counted in the memory of queries for as long as it has them, with the texts and lists that it gives each of them, and a statement for which
//! there is no room fails.
//!
//! Owns: what counts rows on their way into a window ([`Counting`]), and what ends with the window ([`Holding`]).
//! Never does: change which rows there are.
//!
//! Start with [`counted`].

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use futures::{Stream, StreamExt, stream};
use parking_lot::Mutex;

use crate::functions::{Counts, bytes_of, counting};
use crate::plan_nodes::{only_child, shown_by_name};

type Plan = Arc<dyn ExecutionPlan>;

/// What the partitions of a window hold that have begun, and whose input has not.
type Begun = Arc<Mutex<HashMap<usize, Arc<Held>>>>;

/// How often a row is in memory: as it came, and beside the others that the window computes over.
const COPIES: u64 = 2;
/// Bytes of what a window says of a row, by itself and beside the others, without texts and lists.
const VALUE_BYTES: u64 = 16;

/// A plan that is ready to run, whose windows hold no more rows than there is memory for.
pub(crate) fn counted(plan: Plan) -> Result<Plan> {
    plan.transform_up(|node| {
        let gives_early = node.is::<BoundedWindowAggExec>();
        if !gives_early && !node.is::<WindowAggExec>() {
            return Ok(Transformed::no(node));
        }
        let input = Arc::clone(node.children()[0]);
        assert!(node.schema().fields().len() > input.schema().fields().len(), "a window adds columns");
        let values = (node.schema().fields().len() - input.schema().fields().len()) as u64;
        let begun = Begun::default();
        let counting: Plan = Arc::new(Counting { input, begun: Arc::clone(&begun) });
        let window = replace_children_if_necessary(node, vec![counting])?;
        Ok(Transformed::yes(Arc::new(Holding { window, values, gives_early, begun }) as Plan))
    })
    .data()
}

/// What one partition of a window holds.
#[derive(Debug)]
struct Held {
    reservation: MemoryReservation,
    /// Columns that the window adds.
    values: u64,
    /// Whether the window gives rows as soon as it has an answer for them, and holds them no longer.
    gives_early: bool,
    /// Rows, and the bytes that are counted of them.
    there: Mutex<(usize, usize)>,
}

impl Held {
    /// Rows that come. All of them are put beside each other at once by a window that gives none before: until then they are there once.
    fn take(&self, batch: &RecordBatch) -> Result<()> {
        let bytes = batch.columns().iter().map(bytes_of_column).fold(0, u64::saturating_add);
        let rows = batch.num_rows();
        self.grow(rows, if self.gives_early { bytes.saturating_mul(COPIES).saturating_add(self.said_of(rows)) } else { bytes })
    }

    /// No more rows come, and nothing is left of what made them.
    fn compute(&self) -> Result<()> {
        if self.gives_early {
            return Ok(());
        }
        let (rows, bytes) = *self.there.lock();
        debug_assert_eq!(self.reservation.size(), bytes, "what is there is what is counted");
        self.grow(0, (bytes as u64).saturating_mul(COPIES - 1).saturating_add(self.said_of(rows)))
    }

    fn said_of(&self, rows: usize) -> u64 {
        (rows as u64).saturating_mul(self.values * VALUE_BYTES)
    }

    fn grow(&self, rows: usize, bytes: u64) -> Result<()> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut there = self.there.lock();
        self.reservation.try_grow(bytes)?;
        there.0 += rows;
        there.1 += bytes;
        Ok(())
    }

    /// So many rows are there no longer, of those that came first.
    fn give(&self, rows: usize) {
        let mut there = self.there.lock();
        let (before, bytes) = *there;
        debug_assert!(rows <= before, "a window gives {rows} rows of {before}");
        let left = before.saturating_sub(rows);
        let gone = if left == 0 { bytes } else { bytes / before * (before - left) };
        self.reservation.shrink(gone);
        *there = (left, bytes - gone);
    }
}

impl Counts for Held {
    fn count(&self, bytes: u64) -> Result<()> {
        self.grow(0, bytes)
    }
}

/// Bytes of a column, whose dictionary has each word once.
fn bytes_of_column(column: &ArrayRef) -> u64 {
    let all = bytes_of(column.as_ref());
    match column.as_any_dictionary_opt() {
        Some(words) => all.min(bytes_of(words.keys()).saturating_add(bytes_of(words.values().as_ref()))),
        None => all,
    }
}

/// The rows of its input, counted as the window's that they go to.
#[derive(Debug)]
struct Counting {
    input: Plan,
    begun: Begun,
}

shown_by_name!(Counting);

impl ExecutionPlan for Counting {
    fn name(&self) -> &str {
        "Counting"
    }

    crate::over_its_input!(input);

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Ok(Arc::new(Self { input: only_child(children)?, begun: Arc::clone(&self.begun) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let held = self.begun.lock().remove(&partition);
        let rows = self.input.execute(partition, context)?;
        let Some(held) = held else { return Ok(rows) };
        Ok(Box::pin(Counted { schema: rows.schema(), rows: Some(rows), held }))
    }
}

/// Rows that are counted; none when there were all of them.
struct Counted {
    schema: SchemaRef,
    rows: Option<SendableRecordBatchStream>,
    held: Arc<Held>,
}

impl Stream for Counted {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(rows) = &mut self.rows else { return Poll::Ready(None) };
        let Some(batch) = ready!(counting(None, || rows.poll_next_unpin(cx))) else {
            // A sort holds its rows for as long as it is there.
            self.rows = None;
            return Poll::Ready(self.held.compute().err().map(Err));
        };
        Poll::Ready(Some(batch.and_then(|batch| self.held.take(&batch).map(|()| batch))))
    }
}

impl RecordBatchStream for Counted {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The rows of a window. What it holds is counted until it has given the last of them, or nobody asks for more.
#[derive(Debug)]
struct Holding {
    window: Plan,
    values: u64,
    /// Whether it gives rows as soon as it has an answer for them, and holds them no longer.
    gives_early: bool,
    begun: Begun,
}

shown_by_name!(Holding);

impl ExecutionPlan for Holding {
    fn name(&self) -> &str {
        "Holding"
    }

    crate::over_its_input!(window);

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let (values, gives_early, begun) = (self.values, self.gives_early, Arc::clone(&self.begun));
        Ok(Arc::new(Self { window: only_child(children)?, values, gives_early, begun }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("window[{partition}]")).register(context.memory_pool());
        let (values, gives_early) = (self.values, self.gives_early);
        let held = Arc::new(Held { reservation, values, gives_early, there: Mutex::default() });
        self.begun.lock().insert(partition, Arc::clone(&held));
        let mut rows = self.window.execute(partition, context)?;
        let schema = rows.schema();
        let given = stream::poll_fn(move |cx| {
            let counts: Arc<dyn Counts> = Arc::<Held>::clone(&held);
            let polled = counting(Some(counts), || rows.poll_next_unpin(cx));
            if let Poll::Ready(Some(Ok(batch))) = &polled
                && held.gives_early
            {
                held.give(batch.num_rows());
            }
            polled
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, given)))
    }
}

#[cfg(test)]
mod tests;
