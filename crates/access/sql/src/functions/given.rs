//! What windows give each row of texts and lists, counted as it is made: the longest text of all rows may stand in each of them (`max(s) over ()`), or
//! a list of all (`array_agg(x) over ()`).
//!
//! Owns: what counts values ([`Counts`]) while a window computes them ([`counting`]), and the functions whose values are as wide as what they are given.
//! Never does: change what a function answers, or count what is computed outside of windows.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::function::{
    AccumulatorArgs, ExpressionArgs, PartitionEvaluatorArgs, StateFieldsArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, LimitEffect, PartitionEvaluator, ReversedUDAF,
    ReversedUDWF, SetMonotonicity, Signature, StatisticsArgs, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;

use super::bounded::{bytes_of, is_of_one_width};

const AGGREGATES: [&str; 4] = ["min", "max", "array_agg", "string_agg"];
const WINDOWS: [&str; 5] = ["first_value", "last_value", "nth_value", "lag", "lead"];

/// How often a value of a row is in memory: by itself, and beside those of the others.
const COPIES: u64 = 2;

/// Where bytes of values are counted.
pub(crate) trait Counts: Send + Sync {
    /// So many bytes more.
    ///
    /// # Errors
    /// There is no room for them.
    fn count(&self, bytes: u64) -> Result<()>;

    /// So many bytes of rows of one key are there, of those that have come.
    ///
    /// # Errors
    /// There is no room for them.
    fn kept(&self, bytes: u64) -> Result<()>;
}

/// A step of a window, or of what is below it.
struct Step {
    /// None for what is below.
    counts: Option<Arc<dyn Counts>>,
    /// Rows of the partition that a filter was asked of, until its value is there.
    rows: Cell<u64>,
}

tokio::task_local! {
    static STEP: Step;
}

/// Does a step of a window, whose values are counted, or one of what is below it, whose are not.
pub(crate) fn counting<T>(counts: Option<Arc<dyn Counts>>, step: impl FnOnce() -> T) -> T {
    STEP.sync_scope(Step { counts, rows: Cell::new(0) }, step)
}

/// So many bytes of rows of one key are there in the window's step.
pub(crate) fn kept(bytes: u64) -> Result<()> {
    let kept = STEP.try_with(|step| step.counts.as_ref().map_or(Ok(()), |counts| counts.kept(bytes)));
    kept.unwrap_or(Ok(()))
}

/// The next value of the window's step is one that so many rows have.
pub(super) fn of_partition(rows: u64) {
    // Outside of windows nothing is counted.
    let _ = STEP.try_with(|step| step.rows.set(rows));
}

fn count(bytes: impl FnOnce() -> u64) -> Result<()> {
    let counted = STEP.try_with(|step| match &step.counts {
        // Of numbers, of which each row may have one, nothing is counted here.
        Some(counts) => match bytes() {
            0 => Ok(()),
            bytes => counts.count(bytes),
        },
        None => Ok(()),
    });
    counted.unwrap_or(Ok(()))
}

/// Bytes of a value of any width; those of one width are counted with their rows.
fn bytes_of_value(value: &ScalarValue) -> u64 {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map_or(0, |text| text.len() as u64)
        }
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) | ScalarValue::BinaryView(bytes) => {
            bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)
        }
        ScalarValue::List(lists) => bytes_of(&**lists),
        ScalarValue::LargeList(lists) => bytes_of(&**lists),
        ScalarValue::FixedSizeList(lists) => bytes_of(&**lists),
        ScalarValue::Struct(structs) => bytes_of(&**structs),
        ScalarValue::Map(maps) => bytes_of(&**maps),
        ScalarValue::Dictionary(_, word) => bytes_of_value(word),
        _ => 0,
    }
}

/// Puts counted functions in the place of those that are there.
pub(super) fn register(functions: &mut dyn FunctionRegistry) -> Result<()> {
    for name in AGGREGATES {
        let own = functions.udaf(name)?;
        if !is_counted(&own) {
            functions.register_udaf(of_windows(own))?;
        }
    }
    for name in WINDOWS {
        let own = functions.udwf(name)?;
        if !own.inner().is::<Counted>() {
            functions.register_udwf(counted(own))?;
        }
    }
    Ok(())
}

/// Whether it is an aggregate whose values are counted in windows.
pub(super) fn is_counted(own: &AggregateUDF) -> bool {
    own.inner().is::<OfWindows>()
}

fn of_windows(own: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(OfWindows { own }))
}

fn counted(own: Arc<WindowUDF>) -> Arc<WindowUDF> {
    Arc::new(WindowUDF::new_from_impl(Counted { own }))
}

/// An aggregate, whose values are counted in windows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfWindows {
    own: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for OfWindows {
    forebay_types::handed_on! {
        [own.inner()]
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, kinds: &[DataType]) -> Result<DataType>;
        fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef>;
        fn is_nullable(&self) -> bool;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool;
        fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
        fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>>;
        fn is_descending(&self) -> Option<bool>;
        fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue>;
        fn default_value(&self, kind: &DataType) -> Result<ScalarValue>;
        fn supports_null_handling_clause(&self) -> bool;
        fn supports_within_group_clause(&self) -> bool;
        fn documentation(&self) -> Option<&Documentation>;
        fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity;
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let is_narrow = is_of_one_width(args.return_field.data_type());
        self.own.inner().accumulator(args).map(|own| values_of(own, is_narrow))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let is_narrow = is_of_one_width(args.return_field.data_type());
        self.own.inner().create_sliding_accumulator(args).map(|own| values_of(own, is_narrow))
    }

    fn with_beneficial_ordering(self: Arc<Self>, is_beneficial: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let own = Arc::clone(self.own.inner()).with_beneficial_ordering(is_beneficial)?;
        Ok(own.map(|own| Arc::new(Self { own: Arc::new(AggregateUDF::new_from_shared_impl(own)) }) as Arc<dyn AggregateUDFImpl>))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.own.inner().reverse_expr() {
            ReversedUDAF::Reversed(own) => ReversedUDAF::Reversed(of_windows(own)),
            other => other,
        }
    }
}

fn values_of(own: Box<dyn Accumulator>, is_narrow: bool) -> Box<dyn Accumulator> {
    if is_narrow { own } else { Box::new(Values { own, rows: 0 }) }
}

/// The values of an aggregate.
#[derive(Debug)]
struct Values {
    own: Box<dyn Accumulator>,
    /// Rows that came since the last value: each may have the next one, which is made once for all rows of a partition where that is one frame.
    rows: u64,
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows += values.first().map_or(0, |values| values.len() as u64);
        self.own.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.own.evaluate()?;
        let partition = STEP.try_with(|step| step.rows.take()).unwrap_or_default();
        let rows = std::mem::take(&mut self.rows).max(partition);
        // Views of all rows are of one text.
        let is_view = matches!(value, ScalarValue::Utf8View(_) | ScalarValue::BinaryView(_));
        let times = if is_view { COPIES } else { rows + 1 };
        count(|| bytes_of_value(&value).saturating_mul(times))?;
        Ok(value)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.own.size()
    }

    forebay_types::handed_on! {
        [own]
        fn state(&mut self) -> Result<Vec<ScalarValue>>;
        fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()>;
        fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()>;
        fn supports_retract_batch(&self) -> bool;
    }
}

/// A function of windows, whose values are counted.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Counted {
    own: Arc<WindowUDF>,
}

impl WindowUDFImpl for Counted {
    forebay_types::handed_on! {
        [own.inner()]
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>>;
        fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef>;
        fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
        fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect;
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Given { own: self.own.inner().partition_evaluator(args)? }))
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.own.inner().reverse_expr() {
            ReversedUDWF::Reversed(own) => ReversedUDWF::Reversed(counted(own)),
            other => other,
        }
    }
}

/// The values of a function of windows.
#[derive(Debug)]
struct Given {
    own: Box<dyn PartitionEvaluator>,
}

impl PartitionEvaluator for Given {
    forebay_types::handed_on! {
        [own]
        fn memoize(&mut self, state: &mut WindowAggState) -> Result<()>;
        fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>>;
        fn is_causal(&self) -> bool;
        fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef>;
        fn supports_bounded_execution(&self) -> bool;
        fn uses_window_frame(&self) -> bool;
        fn include_rank(&self) -> bool;
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let given = self.own.evaluate_all(values, rows)?;
        if !is_of_one_width(given.data_type()) {
            count(|| bytes_of(given.as_ref()))?;
        }
        Ok(given)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let value = self.own.evaluate(values, range)?;
        count(|| bytes_of_value(&value).saturating_mul(COPIES))?;
        Ok(value)
    }
}
