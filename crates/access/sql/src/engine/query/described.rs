//! DESCRIBE tells plain types of columns.

use std::sync::Arc;

use datafusion::logical_expr::{DescribeTable, LogicalPlan};

use crate::catalog::plain_schema;

/// The plan of a statement, of which DESCRIBE shows plain types.
pub(super) fn with_plain_types(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::DescribeTable(DescribeTable { schema, output_schema }) => {
            LogicalPlan::DescribeTable(DescribeTable { schema: Arc::new(plain_schema(&schema)), output_schema })
        }
        other => other,
    }
}
