//! Functions of one row whose result may be far more than what they are given: no budget of memory counts what they make, and a process
//! that gets no memory ends, with all that it serves. What a call may make is computed before it is made, and refused over a bound.
//!
//! Owns: which functions these are and the most that each makes ([`Grows`]), `||` as one of them ([`Joined`]), those that call lambdas
//! ([`Calling`]), what all of them have made that is still there ([`CallMemory`]), that large constants are made where they are counted, and
//! what others come to in each row ([`LateConstants`]).
//! Never does: change what a function answers.

mod alive;
mod argument;
mod grows;
mod joined;
mod lambdas;
mod late;
mod spread;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, HigherOrderUDF, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use forebay_types::format_bytes;

pub use alive::CallMemory;
use alive::Taken;
use argument::Argument;
pub(crate) use argument::{bytes_of, elements_within, is_of_one_width, widest};
use grows::Grows;
use joined::Joined;
use lambdas::Calling;
pub(crate) use late::LateConstants;
use late::{Late, late};

/// Bytes of a constant that planning makes. What is larger is made when the statement runs, where it is known for how many rows: a constant
/// may stand in each of them.
const FOLDED_BYTES_MAX: u64 = 64 << 10;
/// The same of a list that a value is looked for in: the engine has its elements for all rows then, and else the list in each of them.
const LIST_BYTES_MAX: u64 = 1 << 20;
/// What a constant may make is so many times what it makes, as a rule.
const FOLDED_ASKED: u64 = 16;

/// A function with a list that the engine knows by its own function for it.
const HAS: (&str, &str) = ("array_has", "make_array");

tokio::task_local! {
    static FOLDING: ();
}

/// Does a step of optimizing a plan, in which large constants stay the calls that they are.
pub(crate) fn folding<T>(optimize: impl FnOnce() -> T) -> T {
    FOLDING.sync_scope((), optimize)
}

fn is_folding() -> bool {
    FOLDING.try_with(|()| ()).is_ok()
}

/// Puts bounded functions in the place of the engine's: those that statements name, and those that its planner writes by itself.
pub(super) fn register(functions: &mut dyn FunctionRegistry, memory: &CallMemory) -> Result<()> {
    let named = functions.udfs().into_iter().map(|name| functions.udf(&name)).collect::<Result<Vec<_>>>()?;
    let mended = named.iter().filter_map(|own| Bounded::of(own, memory)).chain([joining(memory)]);
    for bounded in mended.collect::<Vec<_>>() {
        functions.register_udf(late(&bounded))?;
        functions.register_udf(Arc::new(ScalarUDF::new_from_impl(bounded)))?;
    }
    for name in functions.higher_order_function_names() {
        let calling = Calling::new(functions.higher_order_function(&name)?, memory);
        functions.register_higher_order_function(Arc::new(HigherOrderUDF::new_from_impl(calling)))?;
    }
    functions.register_function_rewrite(Arc::new(Replaced { memory: memory.clone() }))
}

/// `||`.
fn joining(memory: &CallMemory) -> Bounded {
    let own = Arc::new(ScalarUDF::new_from_impl(Joined::new()));
    Bounded { own, grows: Grows::Sum, memory: memory.clone(), folded: FOLDED_BYTES_MAX, late: None }
}

/// A list that a value is looked for in, where it is known otherwise than another one: without a bound where no list is made of it, or
/// a constant.
fn looked_in(call: &ScalarFunction) -> Option<ScalarFunction> {
    let bounded = call.func.inner().downcast_ref::<Bounded>()?;
    let own = Arc::clone(&bounded.own);
    if own.name() == HAS.1 {
        return Some(ScalarFunction::new_udf(own, call.args.clone()));
    }
    if bounded.folded == LIST_BYTES_MAX || call.args.iter().any(Expr::any_column_refs) {
        return None;
    }
    let (grows, memory) = (bounded.grows, bounded.memory.clone());
    let list = Bounded { own, grows, memory, folded: LIST_BYTES_MAX, late: None };
    Some(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(list)), call.args.clone()))
}

/// A call in the place of what the engine's planner has written, where that may grow.
fn replaced(expr: Expr, memory: &CallMemory) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(mut call) if call.func.name() == HAS.0 => {
            let mut is_changed = false;
            // `x in (..)` is made of it, and no list.
            if let Some(Expr::ScalarFunction(list)) = call.args.first_mut()
                && let Some(known) = looked_in(list)
            {
                *list = known;
                is_changed = true;
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), is_changed)
        }
        Expr::ScalarFunction(call) => match Bounded::of(&call.func, memory) {
            Some(bounded) => {
                let func = Arc::new(ScalarUDF::new_from_impl(bounded));
                Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, ..call }))
            }
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        other => Transformed::no(other),
    }
}

/// Finds calls that the engine's planner has written, and `||`.
#[derive(Debug)]
struct Replaced {
    memory: CallMemory,
}

impl FunctionRewrite for Replaced {
    fn name(&self) -> &str {
        "bounded_functions"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let joined = joined::call(expr, schema, || Arc::new(ScalarUDF::new_from_impl(joining(&self.memory))));
        Ok(if joined.transformed { joined } else { replaced(joined.data, &self.memory) })
    }
}

/// The engine's function, which is called only for what it may make.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    own: Arc<ScalarUDF>,
    grows: Grows,
    memory: CallMemory,
    /// Bytes of a constant that planning makes of it.
    folded: u64,
    /// None where it is a constant of constants.
    late: Option<Late>,
}

impl Bounded {
    /// The function with a bound; none where it needs none, or has one.
    fn of(own: &Arc<ScalarUDF>, memory: &CallMemory) -> Option<Self> {
        let grows = Grows::of(own.name()).filter(|_| !own.inner().is::<Self>())?;
        Some(Self { own: Arc::clone(own), grows, memory: memory.clone(), folded: FOLDED_BYTES_MAX, late: None })
    }

    /// The most bytes that a call makes.
    fn asked(&self, args: &ScalarFunctionArgs) -> Result<u64> {
        let arguments = args.args.iter().map(|value| Argument::of(value, args.number_rows)).collect::<Result<Vec<_>>>()?;
        Ok(self.grows.bytes(&arguments, args.number_rows as u64))
    }

    /// Calls it for some of the rows at a time, as what one row is given is not what all of them are. `made` counts the bytes.
    fn parts(
        &self,
        args: &ScalarFunctionArgs,
        from: usize,
        rows: usize,
        made: &mut Taken,
        parts: &mut Vec<ArrayRef>,
    ) -> Result<()> {
        assert!(rows > 0, "a part of a batch without rows");
        let part = some(args, from, rows);
        let (asked, before) = (self.asked(&part)?, made.bytes());
        let together = before.saturating_add(asked);
        let mut others = None;
        if together <= self.memory.most() {
            match made.grow(asked, &self.memory) {
                Ok(()) => {
                    let part = self.own.invoke_with_args(part)?.into_array(rows)?;
                    made.shrink(asked - bytes_of(part.as_ref()).min(asked));
                    parts.push(part);
                    return Ok(());
                }
                Err(bytes) => others = Some(bytes),
            }
        }
        if rows <= 1 {
            let which = if before == 0 { 1 } else { from + rows };
            return Err(match others {
                Some(others) => no_room(self.own.name(), asked, others),
                None => refused(self.own.name(), together, which, self.memory.most()),
            });
        }
        let half = rows / 2;
        self.parts(args, from, half, made, parts)?;
        self.parts(args, from + half, rows - half, made, parts)
    }

    /// A constant that planning makes, where it is no large one.
    fn fold(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (asked, rows) = (self.asked(&args)?, args.number_rows);
        if asked > self.folded.saturating_mul(FOLDED_ASKED) {
            return Err(refused(self.own.name(), asked, rows, self.folded));
        }
        let made = self.own.invoke_with_args(args)?;
        match Argument::of(&made, rows)?.bytes() {
            bytes if bytes > self.folded => Err(refused(self.own.name(), bytes, rows, self.folded)),
            _ => Ok(made),
        }
    }
}

/// The error of a call for whose result there is no room beside those of others.
fn no_room(name: &str, bytes: u64, others: u64) -> DataFusionError {
    let (bytes, others) = (format_bytes(bytes), format_bytes(others));
    DataFusionError::ResourcesExhausted(format!("{name} may make {bytes}, and what functions have made takes {others}"))
}

/// The error of a call that may make more than one makes at most.
fn refused(name: &str, asked: u64, rows: usize, most: u64) -> DataFusionError {
    let (asked, most) = (format_bytes(asked), format_bytes(most));
    let (rows, fewer) = match rows {
        1 => ("one row".to_string(), ""),
        rows => (format!("{rows} rows"), ", have fewer rows made at once (`SET datafusion.execution.batch_size`)"),
    };
    DataFusionError::Execution(format!(
        "{name}: for {rows} it may make {asked}, and one call of a function makes {most} at most: ask for less{fewer}, or allow SQL \
         more (`sql-memory`, of which that is a quarter, 64 MiB at least and 1 GiB at most)"
    ))
}

/// The arguments of some of the rows.
fn some(args: &ScalarFunctionArgs, from: usize, rows: usize) -> ScalarFunctionArgs {
    let of_rows = |value: &ColumnarValue| match value {
        ColumnarValue::Array(values) => ColumnarValue::Array(values.slice(from, rows)),
        constant => constant.clone(),
    };
    ScalarFunctionArgs {
        args: args.args.iter().map(of_rows).collect(),
        arg_fields: args.arg_fields.clone(),
        number_rows: rows,
        return_field: Arc::clone(&args.return_field),
        config_options: Arc::clone(&args.config_options),
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.late.as_ref().map_or_else(|| self.own.name(), |late| late.name.as_str())
    }

    fn aliases(&self) -> &[String] {
        if self.late.is_some() { &[] } else { self.own.aliases() }
    }

    forebay_types::handed_on! {
        [own]
        fn schema_name(&self, args: &[Expr]) -> Result<String>;
        fn return_type(&self, kinds: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef>;
        fn is_strict(&self) -> bool;
        fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }

    fn signature(&self) -> &Signature {
        self.late.as_ref().map_or_else(|| self.own.signature(), |late| &late.signature)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match self.own.simplify(args, info)? {
            // Written by the engine's own functions.
            ExprSimplifyResult::Simplified(expr) => {
                ExprSimplifyResult::Simplified(expr.transform_up(|expr| Ok(replaced(expr, &self.memory))).data()?)
            }
            original => original,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if is_folding() {
            return self.fold(args);
        }
        let (asked, rows, most) = (self.asked(&args)?, args.number_rows, self.memory.most());
        let is_whole = rows <= 1 || !args.args.iter().any(|value| matches!(value, ColumnarValue::Array(_)));
        if asked <= most {
            match self.memory.take(asked) {
                Ok(taken) => return counted(self.own.invoke_with_args(args)?, rows, taken),
                Err(others) if is_whole => return Err(no_room(self.own.name(), asked, others)),
                // Other threads call functions as well, and most make less than they may.
                Err(_) => {}
            }
        } else if is_whole {
            return Err(refused(self.own.name(), asked, rows, most));
        }
        let (mut made, mut parts) = (self.memory.nothing(), Vec::new());
        self.parts(&args, 0, rows, &mut made, &mut parts)?;
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), rows, "each row is in one part");
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        counted(ColumnarValue::Array(concat(&parts)?), rows, Some(made))
    }
}

/// The values, which are counted for as long as they are there; a large constant as all that it stands for.
fn counted(values: ColumnarValue, rows: usize, taken: Option<Taken>) -> Result<ColumnarValue> {
    match taken {
        Some(taken) => Ok(ColumnarValue::Array(taken.of(&values.into_array(rows)?)?)),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests;
