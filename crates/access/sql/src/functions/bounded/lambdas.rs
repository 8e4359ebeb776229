//! Functions that call a lambda for each element of their lists: what stands beside a list is repeated for each of its elements, and a constant
//! is made for each. The lambda is called for some elements at a time, and what it gives is counted.

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{concat, take_arrays};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int32Type, Int64Type, Schema};
use datafusion::common::not_impl_err;
use datafusion::common::utils::{list_values, list_values_row_number, remove_list_null_values};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda,
};
use datafusion::physical_expr::PhysicalExpr;

use super::alive::{CallMemory, Taken};
use super::argument::{Argument, widest};
use super::{FOLDED_BYTES_MAX, counted, is_folding, no_room, refused};

/// Bytes that are repeated at once of what stands beside lists.
const BESIDE_BYTES: u64 = 16 << 20;

/// The engine's function, whose lambda is called for some elements at a time.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Calling {
    own: Arc<HigherOrderUDF>,
    memory: CallMemory,
}

impl Calling {
    pub(super) fn new(own: Arc<HigherOrderUDF>, memory: &CallMemory) -> Self {
        Self { own, memory: memory.clone() }
    }

    /// What the lambda gives for each element of the lists, so many of them at a time; `made` counts it.
    fn given(
        &self,
        lambda: &LambdaArgument,
        lists: &ArrayRef,
        values: &ArrayRef,
        at_once: usize,
        made: &mut Taken,
    ) -> Result<ArrayRef> {
        let (most, rows) = (most_of(&self.memory), list_values_row_number(lists.as_ref())?);
        assert_eq!(rows.len(), values.len(), "each element is in one list");
        let (mut from, mut parts) = (0, Vec::new());
        while from < values.len() {
            let count = Cell::new(at_once.min(values.len() - from));
            let elements: &dyn Fn() -> Result<ArrayRef> = &|| Ok(values.slice(from, count.get()));
            // What stands beside the lists is asked for first, if there is any.
            let part = lambda.evaluate(&[elements], |beside| {
                count.set(fitting(beside, rows.as_ref(), from, count.get()));
                Ok(take_arrays(beside, &rows.slice(from, count.get()), None)?)
            })?;
            let count = count.get();
            let bytes = Argument::of(&part, count)?.bytes();
            let together = made.bytes().saturating_add(bytes);
            if together > most {
                return Err(refused(self.name(), together, lists.len(), most));
            }
            made.grow(bytes, &self.memory).map_err(|others| no_room(self.name(), bytes, others))?;
            parts.push(part.into_array(count)?);
            from += count;
        }
        if let [part] = parts.as_slice() {
            return Ok(Arc::clone(part));
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        Ok(concat(&parts)?)
    }
}

/// What a call makes at most: little where a constant is made of it.
fn most_of(memory: &CallMemory) -> u64 {
    if is_folding() { FOLDED_BYTES_MAX } else { memory.most() }
}

/// How many elements, of so many from one on, have what stands beside their lists repeated at once: `rows` says which list each is in.
fn fitting(beside: &[ArrayRef], rows: &dyn Array, from: usize, count: usize) -> usize {
    assert!(count > 0, "a lambda is called for no element");
    let (first, last) = (row_at(rows, from), row_at(rows, from + count - 1));
    let enough = BESIDE_BYTES / (count * beside.len().max(1)) as u64;
    let of_rows = |values: &ArrayRef| widest(values.slice(first, last - first + 1).as_ref(), enough);
    let bytes = beside.iter().map(of_rows).fold(0, u64::saturating_add);
    usize::try_from(BESIDE_BYTES / bytes.max(1)).unwrap_or(usize::MAX).clamp(1, count)
}

fn row_at(rows: &dyn Array, element: usize) -> usize {
    match rows.data_type() {
        DataType::Int32 => rows.as_primitive::<Int32Type>().value(element) as usize,
        _ => rows.as_primitive::<Int64Type>().value(element) as usize,
    }
}

impl HigherOrderUDFImpl for Calling {
    forebay_types::handed_on! {
        [own]
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn schema_name(&self, args: &[Expr]) -> Result<String>;
        fn signature(&self) -> &HigherOrderSignature;
        fn coerce_values_for_lambdas(&self, fields: &[ValueOrLambda<DataType, DataType>]) -> Result<Option<Vec<DataType>>>;
        fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef>;
        fn short_circuits(&self) -> bool;
        fn coerce_value_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
        fn lambda_parameters(
            &self,
            step: usize,
            fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>]
        ) -> Result<LambdaParametersProgress>;
    }

    /// They are cleared here, where it is known how large a constant list is in all rows.
    fn clear_null_values(&self) -> bool {
        false
    }

    fn invoke_with_args(&self, mut args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let (rows, at_once) = (args.number_rows, args.config_options.execution.batch_size.get());
        let [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] = args.args.as_slice() else {
            return not_impl_err!("{} of anything but a list and a lambda", self.name());
        };
        if let ColumnarValue::Scalar(_) = list {
            let (asked, most) = (Argument::of(list, rows)?.bytes(), most_of(&self.memory));
            if asked > most {
                return Err(refused(self.name(), asked, rows, most));
            }
        }
        let mut lists = list.to_array(rows)?;
        let clears = self.own.clear_null_values() && matches!(lists.data_type(), DataType::List(_) | DataType::LargeList(_));
        if clears && lists.null_count() > 0 {
            lists = remove_list_null_values(&lists)?;
        }
        let (values, mut made) = (list_values(lists.as_ref())?, self.memory.nothing());
        let lambda = if values.is_empty() {
            lambda.clone()
        } else {
            let given = self.given(lambda, &lists, &values, at_once, &mut made)?;
            LambdaArgument::new(Vec::new(), Arc::new(Given(given)), None, &[])
        };
        args.args = vec![ValueOrLambda::Value(ColumnarValue::Array(lists)), ValueOrLambda::Lambda(lambda)];
        let answer = self.own.invoke_with_args(args)?;
        counted(answer, rows, Some(made).filter(Taken::is_much))
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.own.conditional_arguments(args)
    }
}

/// What a lambda has given for all elements.
#[derive(Debug)]
struct Given(ArrayRef);

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Given {}

impl Hash for Given {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("given")
    }
}

impl PhysicalExpr for Given {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(self.0.data_type().clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, _: &RecordBatch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(Arc::clone(&self.0)))
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
