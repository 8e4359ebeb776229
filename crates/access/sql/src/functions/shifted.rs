//! `lag` and `lead` that look past nulls ahead, over a partition as a whole: where it comes a piece at a time, the engine counts only what
//! is not null behind the piece that it has, and `lead(x, 2) ignore nulls` was of another row or null. Looking back it is right, and holds
//! a few rows.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::error::Result;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;

pub(super) fn functions() -> [Arc<WindowUDF>; 2] {
    [lag_udwf(), lead_udwf()].map(of_partitions)
}

fn of_partitions(own: Arc<WindowUDF>) -> Arc<WindowUDF> {
    Arc::new(WindowUDF::new_from_impl(OfPartitions { own }))
}

/// The engine's function, which says that it wants its partitions whole where it looks past nulls ahead.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfPartitions {
    own: Arc<WindowUDF>,
}

impl WindowUDFImpl for OfPartitions {
    forebay_types::handed_on! {
        [own.inner()]
        fn name(&self) -> &str;
        fn signature(&self) -> &Signature;
        fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>>;
        fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef>;
        fn documentation(&self) -> Option<&Documentation>;
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores_nulls = args.ignore_nulls();
        let own = self.own.inner().partition_evaluator(args)?;
        match ignores_nulls && !own.is_causal() {
            true => Ok(Box::new(Whole { own })),
            false => Ok(own),
        }
    }

    /// The engine's are their own reverse, told by an argument.
    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::Reversed(of_partitions(Arc::clone(&self.own)))
    }

    /// The engine's say how many rows ahead they look, whatever they look past and in whichever direction.
    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::Unknown
    }
}

/// Evaluates partitions as a whole: the other way is said not to be there.
#[derive(Debug)]
struct Whole {
    own: Box<dyn PartitionEvaluator>,
}

impl PartitionEvaluator for Whole {
    forebay_types::handed_on! {
        [own]
        fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>>;
        fn is_causal(&self) -> bool;
        fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef>;
    }
}
