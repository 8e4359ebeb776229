//! Makes batches that point into the cells which workers hold, for a row group of Parquet or a chunk of text.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use forebay_table::{Coded, Narrow, Projection, Table};
use forebay_types::{Error, Result};

/// The decoded columns of one row group of Parquet, or of one chunk of text.
pub(super) struct RowGroup {
    columns: Vec<Column>,
    /// Rows of each batch.
    batches: Vec<usize>,
}

struct Column {
    bytes: Bytes,
    table: Table,
    projection: Projection,
    /// How it was sent, where that is not as it is.
    narrow: Option<Narrow>,
    coded: Option<Coded>,
    /// The type that the scan gives, where it is not the cell's.
    given: Option<DataType>,
}

impl RowGroup {
    /// Opens cells that must hold these columns, in this order, of `rows` rows where that is known. None when they are of
    /// other types: those that a reader with other options wants.
    /// `Corrupt` when a cell can't be what was written.
    pub(super) fn open(cells: Vec<Bytes>, schema: &Schema, rows: Option<usize>) -> Result<Option<Self>> {
        assert_eq!(cells.len(), schema.fields().len(), "each column that is wanted has a cell");
        let mut columns = Vec::with_capacity(cells.len());
        let mut batches: Option<Vec<usize>> = None;
        for (bytes, field) in cells.into_iter().zip(schema.fields()) {
            let table = Table::open(&bytes)?;
            let Some(column) = Column::of(&table, 0, &bytes, field)? else { return Ok(None) };
            let cut: Vec<_> = (0..table.row_groups()).map(|at| table.row_group_rows(at)).collect();
            let fits = rows.is_none_or(|rows| cut.iter().sum::<usize>() == rows);
            if !fits || batches.as_ref().is_some_and(|known| *known != cut) {
                return Err(Error::corrupt(format!(
                    "a decoded column has {} rows, the file or other columns have not",
                    table.rows()
                )));
            }
            batches.get_or_insert(cut);
            columns.push(column);
        }
        Ok(batches.map(|batches| Self { columns, batches }))
    }

    /// Opens rows that a worker has selected: a table of these columns, in this order, of `rows` rows, which are at most `most` where that
    /// is known. They came over a network, so that all of it is verified. None when they are of other types.
    /// `Corrupt` when it can't be what was sent.
    pub(super) fn of_rows(bytes: &Bytes, schema: &Schema, rows: u64, most: Option<u64>) -> Result<Option<Self>> {
        let table = Table::open(bytes)?;
        let is_all = table.rows() == rows && most.is_none_or(|most| rows <= most);
        if !is_all || table.schema().arrow().fields().len() != schema.fields().len() {
            return Err(Error::corrupt(format!("{} rows of other columns than were asked for", table.rows())));
        }
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (at, field) in schema.fields().iter().enumerate() {
            let Some(column) = Column::of(&table, at, bytes, field)? else { return Ok(None) };
            columns.push(column);
        }
        let all = table.schema().projection();
        for at in 0..table.row_groups() {
            table.plan(at, &all)?.read(bytes)?;
        }
        let batches = (0..table.row_groups()).map(|at| table.row_group_rows(at)).collect();
        Ok(Some(Self { columns, batches }))
    }

    /// A batch; it points into the cells, but for strings that the scan gives in another layout.
    fn batch(&self, at: usize, schema: &SchemaRef) -> Result<RecordBatch> {
        let arrays = self.columns.iter().map(|column| column.array(at)).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|error| Error::corrupt(format!("decoded columns: {error}")))
    }
}

impl Column {
    /// A column of a table, as the scan gives it; none for one of another type.
    fn of(table: &Table, at: usize, bytes: &Bytes, field: &Field) -> Result<Option<Self>> {
        let Some(found) = table.schema().arrow().fields().get(at) else { return Ok(None) };
        let (narrow, coded) = (Narrow::of_field(found)?, Coded::of_field(found)?);
        let of = match (&narrow, &coded) {
            (Some(narrow), _) => narrow.data_type(),
            (None, Some(coded)) => coded.data_type(),
            (None, None) => found.data_type(),
        };
        let is_same = of == field.data_type();
        let fits = is_same || is_made_of(field.data_type(), of);
        if !fits || (!field.is_nullable() && found.is_nullable()) {
            return Ok(None);
        }
        let given = (!is_same).then(|| field.data_type().clone());
        let projection = table.schema().project(&[at])?;
        Ok(Some(Self { bytes: bytes.clone(), table: table.clone(), projection, narrow, coded, given }))
    }

    fn array(&self, at: usize) -> Result<ArrayRef> {
        let chunk = self.table.plan(at, &self.projection)?.read_trusted(&self.bytes)?;
        let array = chunk.batch()?.column(0).clone();
        let array = match (&self.narrow, &self.coded) {
            (Some(narrow), _) => narrow.widen(&array)?,
            (None, Some(coded)) => coded.decode(&array)?,
            (None, None) => array,
        };
        match &self.given {
            Some(given) => cast(&array, given).map_err(|error| Error::corrupt(format!("a decoded column: {error}"))),
            None => Ok(array),
        }
    }
}

/// Whether a scan's strings are those of a cell in another layout. Workers decode strings and binary behind views, and send them one after
/// the other; sessions that turn `schema_force_view_types` off, as all of distributed queries do, give them so. To copy them is less than to
/// decode them.
fn is_made_of(given: &DataType, cell: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    match cell {
        Utf8View | Utf8 => matches!(given, Utf8 | LargeUtf8 | Utf8View),
        BinaryView | Binary => matches!(given, Binary | LargeBinary | BinaryView),
        _ => false,
    }
}

/// The batches of row groups, one after the other, of columns with this schema.
pub(super) fn batches(
    run: Vec<RowGroup>,
    schema: &SchemaRef,
) -> impl Iterator<Item = datafusion::error::Result<RecordBatch>> + Send + use<> {
    let schema = Arc::clone(schema);
    run.into_iter().flat_map(move |row_group| {
        let schema = Arc::clone(&schema);
        (0..row_group.batches.len())
            .map(move |at| row_group.batch(at, &schema).map_err(|error| DataFusionError::External(Box::new(error))))
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};
    use forebay_table::{Options, Writer};
    use forebay_types::ErrorKind;

    use super::*;

    fn sent() -> (Bytes, SchemaRef) {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
        let words: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..500).map(|row| format!("a word of row {row}"))));
        let batch = RecordBatch::try_from_iter([("0", ids), ("1", words)]).unwrap();
        let options = Options { row_group_rows: 200, ..Options::default() };
        let mut writer = Writer::new(Vec::new(), batch.schema(), options).unwrap();
        writer.push(&batch).unwrap();
        let fields = [Field::new("id", DataType::Int64, true), Field::new("word", DataType::Utf8, true)];
        (writer.finish().unwrap().0.into(), Arc::new(Schema::new(fields.to_vec())))
    }

    #[test]
    fn rows_that_were_sent_are_read_in_the_types_of_the_scan() {
        let (bytes, schema) = sent();
        let opened = RowGroup::of_rows(&bytes, &schema, 500, Some(1000)).unwrap().unwrap();
        let read: Vec<_> = batches(vec![opened], &schema).collect::<Result<_, _>>().unwrap();
        assert_eq!(read.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [200, 200, 100]);
        assert!(read.iter().all(|batch| batch.schema() == schema));
    }

    #[test]
    fn what_was_not_sent_so_is_not_read() {
        let (bytes, schema) = sent();
        let kind = |bytes: &Bytes, rows, most| RowGroup::of_rows(bytes, &schema, rows, most).err().map(|error| error.kind());
        assert_eq!(kind(&bytes, 500, None), None);
        assert_eq!(kind(&bytes, 499, None), Some(ErrorKind::Corrupt));
        assert_eq!(kind(&bytes, 500, Some(499)), Some(ErrorKind::Corrupt), "more than the row group has");
        let one = Arc::new(Schema::new(vec![schema.field(0).clone()]));
        assert!(RowGroup::of_rows(&bytes, &one, 500, None).is_err());
        let other = Arc::new(Schema::new(vec![schema.field(1).clone(), schema.field(0).clone()]));
        assert!(RowGroup::of_rows(&bytes, &other, 500, None).unwrap().is_none(), "of other types");
        // The values of the first row group begin early in the file.
        let mut damaged = bytes.to_vec();
        damaged[100] ^= 1;
        assert_eq!(kind(&damaged.into(), 500, None), Some(ErrorKind::Corrupt));
        assert!(kind(&bytes.slice(..bytes.len() / 2), 500, None).is_some());
    }
}
