//! Columns of an Arrow file by their names: the engine's reader takes them by their places in the first file, and where they stand in another
//! order it swaps them without a word.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};

use crate::paths::guard::fault::{Fault, Result};
use crate::paths::widths::width;

/// What is asked of a table's files: columns, and where they are in files that have all of the table's in its order.
#[derive(Clone, Debug)]
pub(in crate::paths::guard) struct Asked {
    pub(in crate::paths::guard) places: Vec<usize>,
    pub(in crate::paths::guard) fields: Vec<FieldRef>,
}

impl Asked {
    /// Where a file has its columns of these; and how its rows become rows of all, where they are not yet.
    pub(super) fn of(&self, file: &Schema, decoded_bytes_max: u64) -> Result<(Vec<usize>, Option<Arranged>)> {
        debug_assert_eq!(self.places.len(), self.fields.len(), "each column has its place");
        let is_there = |place: usize, field: &FieldRef| file.fields().get(place).is_some_and(|own| own.name() == field.name());
        if self.places.iter().zip(&self.fields).all(|(place, field)| is_there(*place, field)) {
            return Ok((self.places.clone(), None));
        }
        let (mut places, mut from, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for field in &self.fields {
            let Some((place, own)) = file.fields().find(field.name()) else {
                from.push(None);
                fields.push(field.as_ref().clone().with_nullable(true));
                continue;
            };
            if own.data_type() != field.data_type() {
                let (name, here, there) = (field.name(), own.data_type(), field.data_type());
                return Err(Fault::Unsupported(format!("its column '{name}' is of type {here}, the table's of {there}")));
            }
            from.push(Some(places.len()));
            places.push(place);
            fields.push(field.as_ref().clone());
        }
        Ok((places, Some(Arranged { schema: Arc::new(Schema::new(fields)), from, decoded_bytes_max })))
    }
}

/// How rows of a file become rows of the columns that are asked for: those that it lacks are null.
#[derive(Clone, Debug)]
pub(super) struct Arranged {
    schema: SchemaRef,
    from: Vec<Option<usize>>,
    decoded_bytes_max: u64,
}

impl Arranged {
    pub(super) fn rows(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let bytes = self.lacking_bytes(rows.num_rows() as u64);
        if bytes > self.decoded_bytes_max {
            return Err(Fault::TooLarge { bytes, most: self.decoded_bytes_max });
        }
        let column = |(field, from): (&FieldRef, &Option<usize>)| match from {
            Some(from) => Arc::clone(rows.column(*from)),
            None => new_null_array(field.data_type(), rows.num_rows()),
        };
        let columns = self.schema.fields().iter().zip(&self.from).map(column).collect();
        let count = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &count)?)
    }

    /// What the nulls of so many rows take: another file says how wide a value is, and this one how many there are.
    fn lacking_bytes(&self, rows: u64) -> u64 {
        let lacking = self.schema.fields().iter().zip(&self.from).filter(|(_, from)| from.is_none());
        lacking.fold(0_u64, |sum, (field, _)| sum.saturating_add(width(field.data_type()).saturating_mul(rows)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn nulls_of_a_wide_column_that_a_file_lacks_take_no_more_than_there_is() {
        let id = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
        let rows = RecordBatch::try_from_iter([("id", id)]).unwrap();
        let fields = vec![
            Arc::new(Field::new("wide", DataType::FixedSizeBinary(1 << 10), false)),
            Arc::new(Field::new("id", DataType::Int64, true)),
        ];
        let asked = Asked { places: vec![0, 1], fields };
        let of = |most| {
            let (places, arranged) = asked.of(&rows.schema(), most).unwrap();
            assert_eq!(places, [0]);
            arranged.unwrap().rows(&rows)
        };
        let whole = of(3 << 10).unwrap();
        assert_eq!((whole.num_rows(), whole.column(0).null_count(), whole.column(1).null_count()), (3, 3, 0));
        assert!(matches!(of((3 << 10) - 1), Err(Fault::TooLarge { bytes: 3072, most: 3071 })));
    }
}
