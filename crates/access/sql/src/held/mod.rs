//! Rows that windows hold. A window keeps all rows of its input, or those that it has no answer for yet, where no budget knows of them. They
//! are counted in the memory of queries for as long as it has them, with the texts and lists that it gives each of them and those that later rows
//! look back at, and a statement for which there is no room fails.
//!
//! Owns: what counts rows on their way into a window ([`Counting`]), and what ends with the window ([`Holding`]).
//! Never does: change which rows there are.
//!
//! Start with [`counted`].

mod kept;

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
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, replace_children_if_necessary};
use futures::{Stream, StreamExt, stream};
use parking_lot::Mutex;

use self::kept::{Kept, keeping};
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
        let early = node.downcast_ref::<BoundedWindowAggExec>();
        let gives_early = early.is_some();
        if !gives_early && !node.is::<WindowAggExec>() {
            return Ok(Transformed::no(node));
        }
        let input = Arc::clone(node.children()[0]);
        assert!(node.schema().fields().len() > input.schema().fields().len(), "a window adds columns");
        let values = (node.schema().fields().len() - input.schema().fields().len()) as u64;
        let begun = Begun::default();
        let counting: Plan = Arc::new(Counting { input, begun: Arc::clone(&begun) });
        let own = early.map(|early| keeping(early, Arc::clone(&counting))).transpose()?.flatten();
        let (window, without_kept) = match own {
            Some(window) => (window, Some(Arc::clone(node.properties()))),
            None => (replace_children_if_necessary(node, vec![counting])?, None),
        };
        Ok(Transformed::yes(Arc::new(Holding { window, values, gives_early, without_kept, begun }) as Plan))
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
    /// Rows that are there once more, beside others of their key, for as long as later ones look back at them; none where they are not seen.
    kept: Option<Mutex<Kept>>,
}

impl Held {
    /// Rows that come. All of them are put beside each other at once by a window that gives none before: until then they are there once.
    fn take(&self, batch: &RecordBatch) -> Result<()> {
        let (rows, bytes) = (batch.num_rows(), bytes_of_rows(batch));
        if let Some(kept) = &self.kept {
            self.grow(rows, bytes.saturating_add(self.said_of(rows)))?;
            return self.step(&mut kept.lock(), bytes);
        }
        self.grow(rows, if self.gives_early { bytes.saturating_mul(COPIES).saturating_add(self.said_of(rows)) } else { bytes })
    }

    /// No more rows come, and nothing is left of what made them.
    fn compute(&self) -> Result<()> {
        if let Some(kept) = &self.kept {
            return self.step(&mut kept.lock(), 0);
        }
        if self.gives_early {
            return Ok(());
        }
        let (rows, bytes) = *self.there.lock();
        debug_assert_eq!(self.reservation.size(), bytes, "what is there is what is counted");
        self.grow(0, (bytes as u64).saturating_mul(COPIES - 1).saturating_add(self.said_of(rows)))
    }

    /// A step of the window begins, by so many bytes of rows that are put beside others.
    fn step(&self, kept: &mut Kept, bytes: u64) -> Result<()> {
        self.reservation.shrink(counted_bytes(kept.begin()));
        self.keep(kept, bytes)
    }

    fn keep(&self, kept: &mut Kept, bytes: u64) -> Result<()> {
        self.reservation.try_grow(counted_bytes(bytes))?;
        kept.count(bytes);
        Ok(())
    }

    /// No rows are kept any more.
    fn end(&self) {
        if let Some(kept) = &self.kept {
            self.reservation.shrink(counted_bytes(kept.lock().end()));
        }
    }

    fn said_of(&self, rows: usize) -> u64 {
        (rows as u64).saturating_mul(self.values * VALUE_BYTES)
    }

    fn grow(&self, rows: usize, bytes: u64) -> Result<()> {
        let bytes = counted_bytes(bytes);
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

    fn kept(&self, bytes: u64) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let mut kept = kept.lock();
        let more = kept.see(bytes);
        self.keep(&mut kept, more)
    }
}

fn counted_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn bytes_of_rows(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(bytes_of_column).fold(0, u64::saturating_add)
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
    /// What is known of its rows without the column by which those that it keeps are counted; none where it has no such column.
    without_kept: Option<Arc<PlanProperties>>,
    begun: Begun,
}

shown_by_name!(Holding);

impl ExecutionPlan for Holding {
    fn name(&self) -> &str {
        "Holding"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.without_kept.as_ref().unwrap_or_else(|| self.window.properties())
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.window]
    }

    crate::no_expressions!();

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let (without_kept, begun) = (self.without_kept.clone(), Arc::clone(&self.begun));
        Ok(Arc::new(Self { window: only_child(children)?, without_kept, begun, ..*self }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("window[{partition}]")).register(context.memory_pool());
        let (values, gives_early) = (self.values, self.gives_early);
        let kept = self.without_kept.as_ref().map(|_| Mutex::default());
        let held = Arc::new(Held { reservation, values, gives_early, there: Mutex::default(), kept });
        self.begun.lock().insert(partition, Arc::clone(&held));
        let mut rows = self.window.execute(partition, context)?;
        let schema = self.schema();
        let shown = Arc::clone(&schema);
        let given = stream::poll_fn(move |cx| {
            let counts: Arc<dyn Counts> = Arc::<Held>::clone(&held);
            let polled = ready!(counting(Some(counts), || rows.poll_next_unpin(cx)));
            match &polled {
                Some(Ok(batch)) if held.gives_early => held.give(batch.num_rows()),
                Some(_) => {}
                None => held.end(),
            }
            Poll::Ready(polled.map(|batch| without_kept(batch?, &shown)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, given)))
    }
}

/// The rows without the column by which they are counted.
fn without_kept(batch: RecordBatch, shown: &SchemaRef) -> Result<RecordBatch> {
    let columns = shown.fields().len();
    if batch.num_columns() == columns {
        return Ok(batch);
    }
    debug_assert_eq!(batch.num_columns(), columns + 1, "one column is nobody's");
    Ok(RecordBatch::try_new(Arc::clone(shown), batch.columns()[..columns].to_vec())?)
}

#[cfg(test)]
mod tests;
