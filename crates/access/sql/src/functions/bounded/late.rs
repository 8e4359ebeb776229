//! Large constants are made where a statement runs. A reader of files makes constants of calls that it is handed, for one row; what has them in
//! each of its rows is not counted then. What may be another value each time it leaves as it is.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarUDF, Signature, TableProviderFilterPushDown, TableScan, Volatility,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::argument::Argument;
use super::{Bounded, CallMemory, spread};

/// What the names of such functions begin with, by which they are sent as well. Columns have the names that they have without.
const LATE: &str = "late ";

/// What a function is called and says of itself that nobody makes a constant of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Late {
    pub(super) name: String,
    pub(super) signature: Signature,
}

impl Late {
    fn of(own: &ScalarUDF) -> Self {
        let signature = Signature { volatility: Volatility::Volatile, ..own.signature().clone() };
        Self { name: format!("{LATE}{}", own.name()), signature }
    }
}

/// The same function, late.
pub(super) fn late(bounded: &Bounded) -> Arc<ScalarUDF> {
    let (own, memory) = (Arc::clone(&bounded.own), bounded.memory.clone());
    let late = Some(Late::of(&own));
    Arc::new(ScalarUDF::new_from_impl(Bounded { own, grows: bounded.grows, memory, folded: bounded.folded, late }))
}

/// Comes last: constants that are not large were made by then, and are counted together where they stand in each row.
#[derive(Debug)]
pub(crate) struct LateConstants(pub(crate) CallMemory);

impl OptimizerRule for LateConstants {
    fn name(&self) -> &'static str {
        "late_constants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        spread::check(&plan, config.options().execution.batch_size.get(), self.0.most_of_all())?;
        let mut whole = match &plan {
            LogicalPlan::TableScan(scan) => done_by_table(scan)?.into_iter(),
            _ => Vec::new().into_iter(),
        };
        plan.map_expressions(|expr| match whole.next() {
            Some(true) => Ok(Transformed::no(expr)),
            _ => expr.transform_up(|expr| Ok(made_late(expr))),
        })
    }
}

/// Which filters of a scan nobody looks at after its table, which would not do that with what may be another value each time.
fn done_by_table(scan: &TableScan) -> Result<Vec<bool>> {
    let filters: Vec<&Expr> = scan.filters.iter().collect();
    let verdicts = scan.source.supports_filters_pushdown(&filters)?;
    Ok(verdicts.into_iter().map(|verdict| verdict == TableProviderFilterPushDown::Exact).collect())
}

fn made_late(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(call) => match large_constant(&call) {
            Some(func) => Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, ..call })),
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        other => Transformed::no(other),
    }
}

/// The late function of a call of constants that makes much.
fn large_constant(call: &ScalarFunction) -> Option<Arc<ScalarUDF>> {
    let bounded = call.func.inner().downcast_ref::<Bounded>().filter(|bounded| bounded.late.is_none())?;
    let of = |arg: &Expr| match arg {
        Expr::Literal(value, _) => Argument::of(&ColumnarValue::Scalar(value.clone()), 1).ok(),
        _ => None,
    };
    let arguments = call.args.iter().map(of).collect::<Option<Vec<_>>>()?;
    (bounded.grows.bytes(&arguments, 1) > bounded.folded).then(|| late(bounded))
}
