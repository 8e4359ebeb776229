//! Rows that a window keeps though it has given them, since those to come look back at them (`rows between 1000000 preceding and ..`, `lag`). The
//! engine has them where nobody else looks, and hands all of them to the arguments of a function at each step: so such a window gets one function
//! more, whose argument counts them and whose column nobody gets.
//!
//! Owns: that function ([`keeping`]), and what is counted by it ([`Kept`]).
//! Never does: change what the window's own functions say.
//!
//! Start with [`keeping`].

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, LimitEffect, PartitionEvaluator, WindowFrameBound};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::window::{StandardWindowExpr, StandardWindowFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowExpr};
use datafusion::scalar::ScalarValue;

use super::{Plan, bytes_of_rows};
use crate::functions::kept;

/// What the window's column is called that nobody gets.
const NAME: &str = "rows kept";

/// The same window over another input, with a last column more that says nothing; none where no row that it has given is looked back at.
pub(super) fn keeping(window: &BoundedWindowAggExec, input: Plan) -> Result<Option<Plan>> {
    if !window.window_expr().iter().any(looks_back) {
        return Ok(None);
    }
    let first = &window.window_expr()[0];
    let frame = Arc::clone(first.get_window_frame());
    let own: Arc<dyn WindowExpr> =
        Arc::new(StandardWindowExpr::new(Arc::new(Keeping), first.partition_by(), first.order_by(), frame));
    let functions = window.window_expr().iter().cloned().chain([own]).collect();
    let can_repartition = !window.partition_keys().is_empty();
    let keeping = BoundedWindowAggExec::try_new(functions, input, window.input_order_mode.clone(), can_repartition)?;
    let columns = |window: &BoundedWindowAggExec| window.schema().fields().len();
    assert_eq!(columns(&keeping), columns(window) + 1, "its own column is the last");
    Ok(Some(Arc::new(keeping)))
}

/// Whether it needs rows that come before those which it says something of.
fn looks_back(function: &Arc<dyn WindowExpr>) -> bool {
    let frame = function.get_window_frame();
    match function.as_any().downcast_ref::<StandardWindowExpr>() {
        // Those of ranks and numbers have no arguments.
        Some(_) => !function.expressions().is_empty(),
        // Aggregates from the first row on need none that is in them.
        None => !frame.is_ever_expanding() || matches!(frame.end_bound, WindowFrameBound::Preceding(_)),
    }
}

/// Bytes of the rows that a window has, by its keys.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Those that are counted.
    counted: u64,
    /// Those that were seen in the present step.
    seen: u64,
}

impl Kept {
    /// A step begins: what is kept was seen in the last one. It answers how many bytes less are counted.
    pub fn begin(&mut self) -> u64 {
        let gone = self.counted.saturating_sub(self.seen);
        self.counted -= gone;
        self.seen = 0;
        gone
    }

    /// So many bytes are there, beside those seen before in this step; it answers how many more are to be counted than are.
    pub fn see(&mut self, bytes: u64) -> u64 {
        self.seen = self.seen.saturating_add(bytes);
        self.seen.saturating_sub(self.counted)
    }

    /// So many bytes more are counted.
    pub fn count(&mut self, bytes: u64) {
        self.counted = self.counted.saturating_add(bytes);
    }

    /// Nothing is kept any more; it answers how many bytes less are counted.
    pub fn end(&mut self) -> u64 {
        std::mem::take(self).counted
    }
}

/// A function that says the same of each row. It is asked with all rows that there are.
#[derive(Debug)]
struct Keeping;

impl StandardWindowFunctionExpr for Keeping {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn field(&self) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(NAME, DataType::Boolean, true)))
    }

    fn expressions(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        vec![Arc::new(AllRows)]
    }

    fn name(&self) -> &str {
        NAME
    }

    fn create_evaluator(&self) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Same))
    }

    fn limit_effect(&self) -> LimitEffect {
        LimitEffect::None
    }
}

#[derive(Debug)]
struct Same;

impl PartitionEvaluator for Same {
    fn is_causal(&self) -> bool {
        true
    }

    fn evaluate(&mut self, _: &[ArrayRef], _: &Range<usize>) -> Result<ScalarValue> {
        Ok(ScalarValue::Boolean(Some(true)))
    }

    fn supports_bounded_execution(&self) -> bool {
        true
    }
}

/// The argument, which is computed of the rows of one key after the other.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AllRows;

impl fmt::Display for AllRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all rows")
    }
}

impl PhysicalExpr for AllRows {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        kept(bytes_of_rows(batch))?;
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_next_step_does_not_see_is_kept_no_longer() {
        let mut kept = Kept::default();
        let see = |kept: &mut Kept, bytes| {
            let more = kept.see(bytes);
            kept.count(more);
            more
        };
        assert_eq!(kept.begin(), 0);
        // Two keys, of which the first ends.
        assert_eq!((see(&mut kept, 100), see(&mut kept, 50)), (100, 50));
        assert_eq!(kept.begin(), 0);
        assert_eq!(see(&mut kept, 70), 0);
        assert_eq!(kept.begin(), 80);
        assert_eq!(see(&mut kept, 90), 20);
        assert_eq!((kept.end(), kept.end()), (90, 0));
    }
}
