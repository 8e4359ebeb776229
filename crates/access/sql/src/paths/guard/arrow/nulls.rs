//! Fields of structs that are null are null: what an Arrow file has there means nothing, and the engine would show it.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray,
};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

type Result<T> = std::result::Result<T, ArrowError>;

/// The same rows, with nulls in all fields of structs that are null.
pub(super) fn with_null_fields(rows: RecordBatch) -> Result<RecordBatch> {
    if !rows.columns().iter().any(|column| has_structs(column.data_type())) {
        return Ok(rows);
    }
    let columns = rows.columns().iter().map(with_nulls).collect::<Result<Vec<_>>>()?;
    let count = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(rows.schema(), columns, &count)
}

fn has_structs(kind: &DataType) -> bool {
    match kind {
        DataType::Struct(_) => true,
        DataType::List(values) | DataType::LargeList(values) => has_structs(values.data_type()),
        _ => false,
    }
}

fn with_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Struct(_) => of_struct(array.as_struct()),
        DataType::List(values) if has_structs(values.data_type()) => of_list(array.as_list::<i32>()),
        DataType::LargeList(values) if has_structs(values.data_type()) => of_list(array.as_list::<i64>()),
        _ => Ok(Arc::clone(array)),
    }
}

fn of_struct(array: &StructArray) -> Result<ArrayRef> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let is_null = nulls.map(|nulls| BooleanArray::new(!nulls.inner(), None));
    let field = |field: &ArrayRef| -> Result<ArrayRef> {
        match &is_null {
            // These say of their parts what is null.
            _ if matches!(field.data_type(), DataType::Union(..) | DataType::RunEndEncoded(..)) => Ok(Arc::clone(field)),
            Some(is_null) => with_nulls(&nullif(field, is_null)?),
            None => with_nulls(field),
        }
    };
    let fields = array.columns().iter().map(field).collect::<Result<Vec<_>>>()?;
    let nulls = array.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(array.fields().clone(), fields, nulls, array.len())?))
}

fn of_list<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> Result<ArrayRef> {
    let (field, offsets, values, nulls) = array.clone().into_parts();
    Ok(Arc::new(GenericListArray::<O>::try_new(field, offsets, with_nulls(&values)?, nulls)?))
}
