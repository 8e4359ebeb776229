//! Fields of structs that are null are null: what a file has there means nothing, and the engine would show it.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch,
    RecordBatchOptions, StructArray,
};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

type Result<T> = std::result::Result<T, ArrowError>;

/// The same rows, with nulls in all fields of structs that are null.
pub(crate) fn with_null_fields(rows: RecordBatch) -> Result<RecordBatch> {
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
        DataType::List(values) | DataType::LargeList(values) | DataType::FixedSizeList(values, _) => {
            has_structs(values.data_type())
        }
        DataType::Map(entries, _) => match entries.data_type() {
            // Others are no maps by the format's word, though they can be read.
            DataType::Struct(pair) if !entries.is_nullable() && pair.first().is_some_and(|key| !key.is_nullable()) => {
                pair.iter().any(|field| has_structs(field.data_type()))
            }
            _ => false,
        },
        _ => false,
    }
}

fn with_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Struct(_) => Ok(Arc::new(of_struct(array.as_struct())?)),
        DataType::List(values) if has_structs(values.data_type()) => of_list(array.as_list::<i32>()),
        DataType::LargeList(values) if has_structs(values.data_type()) => of_list(array.as_list::<i64>()),
        DataType::FixedSizeList(values, _) if has_structs(values.data_type()) => {
            let (field, length, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            let values = with_nulls(&values)?;
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(field, length, values, nulls, array.len())?))
        }
        DataType::Map(..) if has_structs(array.data_type()) => {
            let (field, offsets, entries, nulls, is_sorted) = array.as_map().clone().into_parts();
            Ok(Arc::new(MapArray::try_new(field, offsets, of_struct(&entries)?, nulls, is_sorted)?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn of_struct(array: &StructArray) -> Result<StructArray> {
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
    StructArray::try_new_with_length(array.fields().clone(), fields, nulls, array.len())
}

fn of_list<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> Result<ArrayRef> {
    let (field, offsets, values, nulls) = array.clone().into_parts();
    if !field.is_nullable() && values.null_count() > 0 {
        // The file is at odds with itself, and was read so far.
        return Ok(Arc::new(array.clone()));
    }
    Ok(Arc::new(GenericListArray::<O>::try_new(field, offsets, with_nulls(&values)?, nulls)?))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn structs_within_maps_and_lists_of_one_length_are_found() {
        let values = Arc::new(Int64Array::from(vec![1, 2, 4, 8])) as ArrayRef;
        let nulls = NullBuffer::from(vec![true, false, true, false]);
        let structs =
            StructArray::try_new(vec![Field::new("a", DataType::Int64, false)].into(), vec![values], Some(nulls)).unwrap();
        let of_structs = |name: &str| Field::new(name, structs.data_type().clone(), true);
        let pairs = FixedSizeListArray::try_new(Arc::new(of_structs("item")), 2, Arc::new(structs.clone()), None).unwrap();
        let keys = Arc::new(StringArray::from(vec!["k", "l", "k", "l"])) as ArrayRef;
        let fields = vec![Field::new("key", DataType::Utf8, false), of_structs("value")];
        let entries = StructArray::try_new(fields.into(), vec![keys, Arc::new(structs.clone())], None).unwrap();
        let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let map = MapArray::try_new(entry, OffsetBuffer::from_lengths([2, 2]), entries, None, false).unwrap();
        let rows = RecordBatch::try_from_iter([("p", Arc::new(pairs) as ArrayRef), ("m", Arc::new(map) as ArrayRef)]).unwrap();
        let rows = with_null_fields(rows).unwrap();
        let below = |structs: &ArrayRef| structs.as_struct().column(0).null_count();
        assert_eq!(below(rows.column(0).as_fixed_size_list().values()), 2);
        assert_eq!(below(rows.column(1).as_map().values()), 2);
    }
}
