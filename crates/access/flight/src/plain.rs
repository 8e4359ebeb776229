//! Schemas and rows without the engine's newer types, which some clients of Arrow can't read yet.

use std::sync::Arc;

use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::arrow::compute::cast;
use forebay_sql::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use forebay_sql::arrow::error::ArrowError;

/// The columns in types that all clients know: the engine's views of text and bytes are newer than some of them.
pub(crate) fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(plain_field).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    match plain_type(field.data_type()) {
        Some(kind) => Arc::new(Field::clone(field).with_data_type(kind)),
        None => Arc::clone(field),
    }
}

/// The type that takes the place of one; none where it may stay.
fn plain_type(kind: &DataType) -> Option<DataType> {
    let inner = |field: &FieldRef| plain_type(field.data_type()).map(|_| plain_field(field));
    match kind {
        DataType::Utf8View => Some(DataType::Utf8),
        DataType::BinaryView => Some(DataType::Binary),
        DataType::List(field) | DataType::ListView(field) => inner(field).map(DataType::List),
        DataType::LargeList(field) => inner(field).map(DataType::LargeList),
        DataType::Struct(fields) if fields.iter().any(|field| inner(field).is_some()) => {
            Some(DataType::Struct(fields.iter().map(plain_field).collect()))
        }
        _ => None,
    }
}

/// Rows in the types of `schema`; what has them already is not copied.
pub(crate) fn plain_rows(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns =
        rows.columns().iter().zip(schema.fields()).map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = forebay_sql::arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

#[cfg(test)]
mod tests {
    use forebay_sql::arrow::array::{Array, ArrayRef, Int32Array, StringViewArray, StructArray};

    use super::*;

    #[test]
    fn views_become_plain_wherever_they_are() {
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a longer text than fits into a view"), None]));
        let number: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let field = |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
        let both = StructArray::from(vec![(field("text", &text), text.clone()), (field("number", &number), number.clone())]);
        let rows =
            RecordBatch::try_from_iter([("text", text), ("number", number.clone()), ("both", Arc::new(both) as _)]).unwrap();
        let schema = plain_schema(&rows.schema());
        let plain = plain_rows(&rows, &schema).unwrap();
        assert_eq!(plain.column(0).data_type(), &DataType::Utf8);
        assert!(Arc::ptr_eq(plain.column(1), rows.column(1)));
        assert!(!format!("{schema:?}").contains("View"), "{schema:?}");
        assert!(plain.column(0).is_null(1));
    }
}
