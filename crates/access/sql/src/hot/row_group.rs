//! Makes batches that point into the cells which workers hold, for a row group of Parquet or a chunk of text.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
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
        assert_eq!(cells.len(), schema.fields().len(), "each column that is wanted has a cell");
        let mut columns = Vec::with_capacity(cells.len());
        let mut batches: Option<Vec<usize>> = None;
        for (bytes, field) in cells.into_iter().zip(schema.fields()) {
            let table = Table::open(&bytes)?;
            let Some(found) = table.schema().arrow().fields().first().cloned() else { return Ok(None) };
            let is_same = found.data_type() == field.data_type();
            let fits = is_same || is_made_of(field.data_type(), found.data_type());
            if !fits || (!field.is_nullable() && found.is_nullable()) {
                return Ok(None);
            }
            let given = (!is_same).then(|| field.data_type().clone());
            let cut: Vec<_> = (0..table.row_groups()).map(|at| table.row_group_rows(at)).collect();
            let fits = rows.is_none_or(|rows| cut.iter().sum::<usize>() == rows);
            if !fits || batches.as_ref().is_some_and(|known| *known != cut) {
                return Err(Error::corrupt(format!(
                    "a decoded column has {} rows, the file or other columns have not",
                    table.rows()
                )));
            }
            batches.get_or_insert(cut);
            let projection = table.schema().projection();
            columns.push(Column { bytes, table, projection, given });
        }
        Ok(batches.map(|batches| Self { columns, batches }))
    }

    /// A batch; it points into the cells, but for strings that the scan gives in another layout.
    fn batch(&self, at: usize, schema: &SchemaRef) -> Result<RecordBatch> {
        let arrays = self.columns.iter().map(|column| column.array(at)).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|error| Error::corrupt(format!("decoded columns: {error}")))
    }
}

impl Column {
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
