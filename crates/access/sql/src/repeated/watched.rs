//! Looks at rows before they are repeated, and hands them on as they are, or in parts.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::ListUnnest;
use futures::{StreamExt, TryStreamExt, stream};

use super::bound::{Bound, Parts};
use super::lists;
use crate::functions::{CallMemory, is_of_one_width};
use crate::plan_nodes::{only_child, shown_by_name};

/// What a node does with the rows of an input.
#[derive(Clone, Debug)]
pub(super) enum Repeated {
    /// Values of these columns come once for each of many rows.
    Columns(Arc<[usize]>),
    /// All but these lists does, for each of their elements.
    BesideLists(Arc<[ListUnnest]>),
}

impl Repeated {
    /// Whether no row of that is wider than another: a batch takes no more memory where one of its rows stands in all of it.
    pub(super) fn is_even(&self, schema: &Schema) -> bool {
        let Self::Columns(columns) = self else { return false };
        columns.iter().all(|column| is_of_one_width(schema.field(*column).data_type()))
    }
}

/// The rows of its input, of which none is too wide for what is done with them.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) input: Arc<dyn ExecutionPlan>,
    pub(super) repeated: Repeated,
    pub(super) memory: CallMemory,
}

shown_by_name!(Watched);

impl ExecutionPlan for Watched {
    fn name(&self) -> &str {
        "Watched"
    }

    crate::over_its_input!(input);

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let (repeated, memory) = (self.repeated.clone(), self.memory.clone());
        Ok(Arc::new(Self { input: only_child(children)?, repeated, memory }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let bound = Bound { rows: context.session_config().batch_size().max(1), bytes: self.memory.most_of_all() };
        let repeated = self.repeated.clone();
        let rows = self.input.execute(partition, context)?;
        let schema = rows.schema();
        let parts = rows.map(move |batch| Ok::<_, DataFusionError>(stream::iter(parts(batch?, &repeated, bound)?)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, parts.try_flatten())))
    }
}

fn parts(batch: RecordBatch, repeated: &Repeated, bound: Bound) -> Result<Parts> {
    match repeated {
        Repeated::Columns(columns) => {
            bound.check(bound.width(&batch, columns))?;
            Ok(Box::new(std::iter::once(Ok(batch))))
        }
        Repeated::BesideLists(of) => lists::parts(batch, of, bound),
    }
}
