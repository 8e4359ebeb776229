//! Makes columns into such as JSON's writer can take, and refuses times that it would write wrongly.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use forebay_types::{Error, Result};

use super::from_arrow;

/// A batch whose values a writer can take as they are: without dictionaries, whose values may be null where no key is,
/// with text for the keys of maps, and without times that no calendar has.
pub(super) fn plain(batch: &RecordBatch) -> Result<RecordBatch> {
    let fields: Vec<FieldRef> = batch.schema_ref().fields().iter().map(plain_field).collect();
    let mut columns = Vec::with_capacity(fields.len());
    for (column, field) in batch.columns().iter().zip(&fields) {
        let column: ArrayRef = match column.data_type() == field.data_type() {
            true => Arc::clone(column),
            false => cast(column, field.data_type()).map_err(from_arrow)?,
        };
        check_times(field, &column)?;
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(from_arrow)
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let plain = plain_type(field.data_type());
    match plain == *field.data_type() {
        true => Arc::clone(field),
        // A value of a dictionary may be null where the field says that no key is.
        false => Arc::new(Field::new(field.name(), plain, true)),
    }
}

fn plain_type(kind: &DataType) -> DataType {
    let fields = |fields: &Fields| fields.iter().map(plain_field).collect::<Fields>();
    match kind {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::Struct(children) => DataType::Struct(fields(children)),
        DataType::List(child) => DataType::List(plain_field(child)),
        DataType::LargeList(child) => DataType::LargeList(plain_field(child)),
        DataType::FixedSizeList(child, length) => DataType::FixedSizeList(plain_field(child), *length),
        DataType::Map(entries, is_sorted) => match entries.data_type() {
            DataType::Struct(children) => {
                let children = children.iter().enumerate();
                let children = children.map(|(at, child)| if at == 0 { name_of(child) } else { plain_field(child) }).collect();
                DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(children))), *is_sorted)
            }
            _ => kind.clone(),
        },
        other => other.clone(),
    }
}

/// The key of a map as the name of a member of an object, which is text.
fn name_of(key: &FieldRef) -> FieldRef {
    let name = match plain_type(key.data_type()) {
        DataType::Boolean | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => DataType::Utf8,
        number if number.is_numeric() => DataType::Utf8,
        other => other,
    };
    Arc::new(key.as_ref().clone().with_data_type(name))
}

/// Refuses what has no written form, of which the writer would make a text that is none.
fn check_times(field: &Field, column: &ArrayRef) -> Result<()> {
    if !has_times(field.data_type()) {
        return Ok(());
    }
    let formatter = ArrayFormatter::try_new(column, &FormatOptions::new().with_display_error(false)).map_err(from_arrow)?;
    for row in 0..column.len() {
        formatter.value(row).try_to_string().map_err(|error| {
            let name = field.name();
            Error::invalid(format!("column `{name}`: {error}: no calendar has that time; read it as arrow_cast({name}, 'Int64')"))
        })?;
    }
    Ok(())
}

fn has_times(kind: &DataType) -> bool {
    match kind {
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) | DataType::Map(child, _) => {
            has_times(child.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_times(field.data_type())),
        other => other.is_temporal(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        DictionaryArray, Int8Array, Int64Array, Int64Builder, MapBuilder, StringArray, StringBuilder, StructArray,
        TimestampSecondArray,
    };

    use super::*;
    use crate::output::json::JsonWriter;

    fn json(columns: Vec<(&str, ArrayRef)>) -> Result<String> {
        let mut writer = JsonWriter::lines(Vec::new());
        writer.write(&RecordBatch::try_from_iter(columns).unwrap())?;
        Ok(String::from_utf8(writer.finish().unwrap()).unwrap())
    }

    fn dictionary(values: ArrayRef) -> ArrayRef {
        Arc::new(DictionaryArray::new(Int8Array::from(vec![0, 1]), values))
    }

    #[test]
    fn a_null_among_the_values_of_a_dictionary_is_written_as_null() {
        let texts = dictionary(Arc::new(StringArray::from(vec![Some("x"), None])));
        let numbers = dictionary(Arc::new(Int64Array::from(vec![Some(1), None])));
        let nested =
            Arc::new(StructArray::from(vec![(Arc::new(Field::new("t", texts.data_type().clone(), true)), Arc::clone(&texts))]));
        let written = json(vec![("t", texts), ("n", numbers), ("s", nested)]).unwrap();
        assert_eq!(written, "{\"t\":\"x\",\"n\":1,\"s\":{\"t\":\"x\"}}\n{\"t\":null,\"n\":null,\"s\":{\"t\":null}}\n");
    }

    #[test]
    fn keys_of_maps_are_names_in_objects_though_they_are_numbers() {
        let mut maps = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
        for (key, value) in [(-7, Some("x")), (8, None)] {
            maps.keys().append_value(key);
            maps.values().append_option(value);
        }
        maps.append(true).unwrap();
        maps.append(false).unwrap();
        let maps: ArrayRef = Arc::new(maps.finish());
        let nested = StructArray::from(vec![(Arc::new(Field::new("m", maps.data_type().clone(), true)), Arc::clone(&maps))]);
        let written = json(vec![("m", maps), ("s", Arc::new(nested))]).unwrap();
        let first = "{\"m\":{\"-7\":\"x\",\"8\":null},\"s\":{\"m\":{\"-7\":\"x\",\"8\":null}}}";
        assert_eq!(written, format!("{first}\n{{\"m\":null,\"s\":{{\"m\":null}}}}\n"));
    }

    #[test]
    fn a_time_that_no_calendar_has_is_an_error_and_not_text() {
        let times = |last: i64| Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(last)])) as ArrayRef;
        assert_eq!(json(vec![("at", times(60))]).unwrap().lines().last(), Some("{\"at\":\"1970-01-01T00:01:00\"}"));
        let error = json(vec![("at", times(i64::MAX))]).unwrap_err();
        assert!(error.message().contains("`at`") && error.message().contains("arrow_cast"), "{error}");
        let times = times(i64::MIN);
        let field = Arc::new(Field::new("deep", times.data_type().clone(), true));
        assert!(json(vec![("s", Arc::new(StructArray::from(vec![(field, times)])))]).is_err());
    }
}
