//! Gives the columns of one table file the order and types of the table's schema; what does not fit is an error, not a null.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::error::Result;
use forebay_table::{Projection, Table};
use forebay_types::Error;
use object_store::path::Path;

use super::rows::is_number;
use crate::error::external;
use crate::location::shown;
use crate::null_fields::with_null_fields;

const STRICT: CastOptions<'static> = CastOptions { safe: false, format_options: FormatOptions::new() };

/// Some columns of the engine's schema, as one file has them: in another order, in another type, or not at all.
#[derive(Clone)]
pub(super) struct Adapted {
    /// What the engine wants.
    pub(super) schema: SchemaRef,
    /// What is read of the file.
    pub(super) projection: Projection,
    /// For each wanted column where its values are.
    places: Vec<Place>,
    as_they_are: bool,
}

/// Where a wanted column's values are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In this column of what is read.
    Read(usize),
    /// In the rows' places.
    Number,
    /// Nowhere: the file is without it.
    Nowhere,
}

impl Adapted {
    pub(super) fn new(table: &Table, schema: &Schema, columns: &[usize]) -> Result<Self> {
        let wanted = Arc::new(schema.project(columns)?);
        let own = table.schema().arrow();
        let (mut read, mut places) = (Vec::new(), Vec::new());
        for field in wanted.fields() {
            places.push(match own.index_of(field.name()) {
                _ if is_number(field) => Place::Number,
                Ok(found) => {
                    read.push(found);
                    Place::Read(read.len() - 1)
                }
                Err(_) => Place::Nowhere,
            });
        }
        let projection = table.schema().project(&read).map_err(external)?;
        let types = wanted.fields().iter().zip(projection.schema().fields());
        let as_they_are = read.len() == columns.len() && types.into_iter().all(|(a, b)| a.data_type() == b.data_type());
        Ok(Self { schema: wanted, projection, places, as_they_are })
    }

    /// Whether the numbers of rows are wanted.
    pub(super) fn has_numbers(&self) -> bool {
        self.places.contains(&Place::Number)
    }

    /// A batch of the file's projection as the engine wants it, with its rows' numbers where these are wanted. A value that the wanted
    /// type does not have is an error, never null: that would be another answer.
    pub(super) fn adapt(&self, batch: &RecordBatch, numbers: Option<&ArrayRef>, file: &Path) -> Result<RecordBatch> {
        let read = self.projection.schema().fields().len();
        assert_eq!(batch.num_columns(), read, "a batch has the columns of its projection");
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let column = |(place, field): (&Place, &Arc<Field>)| match place {
            Place::Nowhere => Ok(new_null_array(field.data_type(), batch.num_rows())),
            Place::Number => numbers.cloned().ok_or_else(|| external(Error::internal("rows without numbers"))),
            Place::Read(at) if batch.column(*at).data_type() == field.data_type() => Ok(Arc::clone(batch.column(*at))),
            Place::Read(at) => cast_with_options(batch.column(*at), field.data_type(), &STRICT).map_err(|error| {
                let (file, own) = (shown(file.as_ref()), batch.column(*at).data_type());
                external(Error::invalid(format!(
                    "'{file}', column `{}`: {error}; the file has it as {own}: declare that, and cast in the query",
                    field.name()
                )))
            }),
        };
        let columns = match self.as_they_are {
            true => batch.columns().to_vec(),
            false => self.places.iter().zip(self.schema.fields()).map(column).collect::<Result<_>>()?,
        };
        Ok(with_null_fields(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)?)
    }
}
