//! What plan nodes of our own have in common.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

/// What a plan node has that has no expressions.
#[macro_export]
macro_rules! no_expressions {
    () => {
        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_expr::PhysicalExpr>,
            ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

/// What a plan node has that is as its one input, in the field that is named, but for what comes of its rows.
#[macro_export]
macro_rules! over_its_input {
    ($input:tt) => {
        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            self.$input.properties()
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.$input]
        }

        $crate::no_expressions!();
    };
}

/// The same of one that hands on these rows as they are.
#[macro_export]
macro_rules! as_its_input {
    ($input:tt) => {
        $crate::over_its_input!($input);

        fn execute(
            &self,
            partition: usize,
            context: ::std::sync::Arc<::datafusion::execution::TaskContext>,
        ) -> ::datafusion::error::Result<::datafusion::execution::SendableRecordBatchStream> {
            self.$input.execute(partition, context)
        }

        fn child_stats_requests(&self, partition: Option<usize>) -> Vec<::datafusion::physical_plan::statistics::ChildStats> {
            vec![::datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            of_input: &[::std::sync::Arc<::datafusion::common::Statistics>],
            _: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::error::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            Ok(::std::sync::Arc::clone(&of_input[0]))
        }
    };
}

/// What a source of files has that stands for the engine's own, in the field that is named: it says of itself what that one says.
macro_rules! as_own_source {
    ($own:tt) => {
        ::forebay_types::handed_on! {
            [$own]
            fn table_schema(&self) -> &::datafusion::datasource::table_schema::TableSchema;
            fn projection(&self) -> Option<&::datafusion::physical_expr::projection::ProjectionExprs>;
            fn metrics(&self) -> &::datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
            fn file_type(&self) -> &str;
            fn apply_expressions(
                &self,
                f: &mut dyn FnMut(
                    &::std::sync::Arc<dyn ::datafusion::physical_expr::PhysicalExpr>,
                ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion>
            ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion>;
        }
    };
}

/// The same of a format of files: what its files are called.
macro_rules! names_of_own {
    ($own:tt) => {
        ::forebay_types::handed_on! {
            [$own]
            fn get_ext(&self) -> String;
            fn get_ext_with_compression(
                &self,
                compression: &::datafusion::datasource::file_format::file_compression_type::FileCompressionType
            ) -> ::datafusion::error::Result<String>;
            fn compression_type(&self) -> Option<::datafusion::datasource::file_format::file_compression_type::FileCompressionType>;
        }
    };
}

/// Has plans show a node by the name of its type.
macro_rules! shown_by_name {
    ($node:ident) => {
        impl ::datafusion::physical_plan::DisplayAs for $node {
            fn fmt_as(
                &self,
                _: ::datafusion::physical_plan::DisplayFormatType,
                f: &mut ::std::fmt::Formatter<'_>,
            ) -> ::std::fmt::Result {
                f.write_str(stringify!($node))
            }
        }
    };
}

pub(crate) use {as_own_source, names_of_own, shown_by_name};

/// The child of a plan node that has one.
pub fn only_child(children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    let [child] = <[_; 1]>::try_from(children).or_else(|others| internal_err!("one node is expected, not {}", others.len()))?;
    Ok(child)
}
