//! The number of a row in its file, from 0: a column that no file has. A path that ends with `#row` asks for it.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use forebay_table::{Selection, Table};
use forebay_types::{Error, Result};

/// What the column is called.
const NAME: &str = "row";
/// What marks it among the columns of files, wherever the schema travels to.
const MARK: &str = "forebay.row";
/// What a path has at its end that asks for it.
const SUFFIX: &str = "#row";

/// The path of the files of a path that asks for their rows' numbers; none of another path.
pub(crate) fn numbered(text: &str) -> Option<&str> {
    text.strip_suffix(SUFFIX)
}

/// Whether a column is the number of its row.
pub(crate) fn is_number(field: &Field) -> bool {
    field.metadata().contains_key(MARK)
}

/// A column of a file, which may have been written from one that was the number of a row.
pub(super) fn of_file(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.remove(MARK);
    field.clone().with_metadata(metadata)
}

/// Files' columns with the number of the row behind them; `Invalid` where they, or the folders, have a column of that name.
pub(crate) fn with_number(schema: &Schema, partitions: &[(String, DataType)]) -> Result<Schema> {
    if schema.index_of(NAME).is_ok() || partitions.iter().any(|(name, _)| name == NAME) {
        return Err(Error::invalid(format!("there is a column `{NAME}` already: leave `{SUFFIX}` at the end of the path out")));
    }
    let number = Field::new(NAME, DataType::Int64, false).with_metadata([(MARK.to_string(), String::new())].into());
    let fields = schema.fields().iter().cloned().chain([Arc::new(number)]);
    Ok(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Where a row group begins in its file.
pub(super) fn first(table: &Table, row_group: usize) -> i64 {
    i64::try_from(table.first_row(row_group)).unwrap_or(i64::MAX)
}

/// The numbers of rows that follow each other.
pub(super) fn run(first: i64, rows: usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|row| first + row)))
}

/// The numbers of some rows of a row group.
pub(super) fn of(first: i64, rows: &Selection) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.rows().iter().map(|row| first + i64::from(*row))))
}
