//! How many rows a window gives one value of a filter (`max(s) filter (where ..) over ()`): its aggregate sees those that the filter leaves alone, and
//! all of the partition's rows have the value.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::utils::take_function_args;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowFunctionDefinition,
};

use super::bounded::is_of_one_width;
use super::given::{is_counted, of_partition};

/// What such a filter is called where a plan is shown. Columns have the names that they have without, and no part of a plan with it is sent: executors
/// can't be told of filters of windows.
const NAME: &str = "filter of all rows";

/// A condition, which says how many rows it is asked of. Volatile, as what is asked elsewhere tells nothing.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Told {
    signature: Signature,
}

impl ScalarUDFImpl for Told {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        Ok(kinds[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [condition] = take_function_args(NAME, args.args)?;
        of_partition(args.number_rows as u64);
        Ok(condition)
    }
}

/// Puts it around filters of windows that give all rows of a partition one value, where that has no one width.
#[derive(Debug)]
pub(super) struct Filtered;

impl FunctionRewrite for Filtered {
    fn name(&self) -> &'static str {
        "filters_of_windows"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let Expr::WindowFunction(window) = &expr else { return Ok(Transformed::no(expr)) };
        let (frame, filter) = (&window.params.window_frame, window.params.filter.as_deref());
        let is_whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
        let is_of_windows = matches!(&window.fun, WindowFunctionDefinition::AggregateUDF(own) if is_counted(own));
        let Some(filter) = filter.filter(|filter| is_whole && is_of_windows && !is_told(filter)) else {
            return Ok(Transformed::no(expr));
        };
        if expr.get_type(schema).is_ok_and(|kind| is_of_one_width(&kind)) {
            return Ok(Transformed::no(expr));
        }
        let told = ScalarUDF::new_from_impl(Told { signature: Signature::any(1, Volatility::Volatile) });
        let told = ScalarFunction::new_udf(Arc::new(told), vec![filter.clone()]);
        let mut window = window.clone();
        window.params.filter = Some(Box::new(Expr::ScalarFunction(told)));
        Ok(Transformed::yes(Expr::WindowFunction(window)))
    }
}

fn is_told(filter: &Expr) -> bool {
    matches!(filter, Expr::ScalarFunction(call) if call.func.inner().is::<Told>())
}
