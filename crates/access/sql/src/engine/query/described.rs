//! DESCRIBE tells the types of columns, without what files say of fields beside: that differs from file to file of a folder.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::logical_expr::{DescribeTable, LogicalPlan};

/// The plan of a statement, of which DESCRIBE shows plain types.
pub(super) fn with_plain_types(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::DescribeTable(DescribeTable { schema, output_schema }) => {
            let columns: Vec<FieldRef> = schema.fields().iter().map(plain).collect();
            LogicalPlan::DescribeTable(DescribeTable { schema: Arc::new(Schema::new(columns)), output_schema })
        }
        other => other,
    }
}

fn plain(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::List(item) => DataType::List(plain(item)),
        DataType::LargeList(item) => DataType::LargeList(plain(item)),
        DataType::FixedSizeList(item, count) => DataType::FixedSizeList(plain(item), *count),
        DataType::Map(entries, sorted) => DataType::Map(plain(entries), *sorted),
        other => other.clone(),
    };
    Arc::new(Field::new(field.name(), kind, field.is_nullable()))
}
