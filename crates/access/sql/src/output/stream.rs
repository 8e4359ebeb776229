//! Results as Arrow, without the engine's newer types, which some clients can't read yet.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use forebay_types::Result;

use super::from_arrow;

/// The rows of one query as a stream of Arrow's IPC format, in bytes that are given out as they are made.
pub struct ArrowStream {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
}

impl ArrowStream {
    /// Of rows with these columns.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let schema = plain_schema(schema);
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(from_arrow)?;
        Ok(Self { schema, writer })
    }

    /// The bytes of some rows; with the first ones those of the stream's head.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<Vec<u8>> {
        let rows = plain_rows(rows, &self.schema).map_err(from_arrow)?;
        self.writer.write(&rows).map_err(from_arrow)?;
        Ok(std::mem::take(self.writer.get_mut()))
    }

    /// What belongs after the last row; all of the stream where there was none.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.writer.into_inner().map_err(from_arrow)
    }
}

/// The columns in types that all clients know: the engine's views of text and bytes are newer than some of them.
pub fn plain_schema(schema: &SchemaRef) -> SchemaRef {
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
pub fn plain_rows(rows: &RecordBatch, schema: &SchemaRef) -> std::result::Result<RecordBatch, ArrowError> {
    let columns =
        rows.columns().iter().zip(schema.fields()).map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        });
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Array, ArrayRef, AsArray, DictionaryArray, Int8Array, Int32Array, StringArray, StringViewArray, StructArray,
    };
    use datafusion::arrow::datatypes::{Int8Type, Int32Type};
    use datafusion::arrow::ipc::reader::StreamReader;

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

    fn rows(of: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(of).unwrap()
    }

    #[test]
    fn what_is_given_out_piece_by_piece_is_one_stream() {
        let part = |numbers: Vec<i32>, texts: Vec<Option<&str>>| {
            let keys = Int8Array::from_iter_values((0..texts.len()).map(|key| key as i8));
            let words = DictionaryArray::<Int8Type>::new(keys, Arc::new(StringArray::from(texts.clone())));
            let number: ArrayRef = Arc::new(Int32Array::from(numbers));
            let text: ArrayRef = Arc::new(StringViewArray::from(texts));
            rows(vec![("number", number), ("text", text), ("word", Arc::new(words) as ArrayRef)])
        };
        let parts = [part(vec![1, 2], vec![Some("a longer text than fits into a view"), None]), part(vec![3], vec![Some("c")])];
        let mut stream = ArrowStream::new(&parts[0].schema()).unwrap();
        let mut bytes = Vec::new();
        for part in &parts {
            let written = stream.write(part).unwrap();
            assert!(!written.is_empty(), "what is written is given out at once");
            bytes.extend(written);
        }
        bytes.extend(stream.finish().unwrap());
        let read: Vec<RecordBatch> = StreamReader::try_new(&bytes[..], None).unwrap().map(|batch| batch.unwrap()).collect();
        let numbers = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
        assert_eq!(read.iter().flat_map(numbers).collect::<Vec<_>>(), [1, 2, 3]);
        let text = read[0].column(1).as_string::<i32>();
        assert_eq!((text.value(0), text.is_null(1)), ("a longer text than fits into a view", true));
        let word = read[1].column(2).as_dictionary::<Int8Type>();
        assert_eq!(
            word.values().as_string::<i32>().value(word.keys().value(0) as usize),
            "c",
            "dictionaries may change on the way"
        );
    }

    #[test]
    fn a_stream_without_rows_has_its_columns() {
        let schema = rows(vec![("number", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).schema();
        let bytes = ArrowStream::new(&schema).unwrap().finish().unwrap();
        let read = StreamReader::try_new(&bytes[..], None).unwrap();
        assert_eq!((read.schema(), read.count()), (schema, 0));
    }
}
