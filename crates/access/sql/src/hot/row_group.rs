//! Makes batches that point into the cells which workers hold, for a row group of Parquet or a chunk of text.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use forebay_table::{Projection, Table};
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
    /// The type that the scan gives, where it is not the cell's.
    given: Option<DataType>,
}

impl RowGroup {
    /// Opens cells that must hold these columns, in this order, of `rows` rows where that is known. None when they are of
    /// other types: those that a reader with other options wants.
    ///
    /// # Errors
    /// `Corrupt` when a cell can't be what was written.
    pub(super) fn open(cells: Vec<Bytes>, schema: &Schema, rows: Option<usize>) -> Result<Option<Self>> {
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
    ///
    /// # Errors
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
        let is_same = found.data_type() == field.data_type();
        let fits = is_same || is_made_of(field.data_type(), found.data_type());
        if !fits || (!field.is_nullable() && found.is_nullable()) {
            return Ok(None);
        }
        let given = (!is_same).then(|| field.data_type().clone());
        let projection = table.schema().project(&[at])?;
        Ok(Some(Self { bytes: bytes.clone(), table: table.clone(), projection, given }))
    }

    fn array(&self, at: usize) -> Result<ArrayRef> {
        let chunk = self.table.plan(at, &self.projection)?.read_trusted(&self.bytes)?;
        let array = chunk.batch()?.column(0).clone();
        match &self.given {
            Some(given) => cast(&array, given).map_err(|error| Error::corrupt(format!("a decoded column: {error}"))),
            None => Ok(array),
        }
    }
}

/// Whether a scan's strings are those of a cell in another layout. Workers decode strings and binary behind views; sessions that turn
/// `schema_force_view_types` off, as all of distributed queries do, give them one after the other. To copy them so is less than to decode
/// them.
fn is_made_of(given: &DataType, cell: &DataType) -> bool {
    match cell {
        DataType::Utf8View => matches!(given, DataType::Utf8 | DataType::LargeUtf8),
        DataType::BinaryView => matches!(given, DataType::Binary | DataType::LargeBinary),
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
