//! What is known of a Parquet file for certain: the engine takes the least and the greatest value that row groups tell for those of the file,
//! also where others tell none, and answers `min` and `max` by them, and leaves the file out of scans.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// What the engine says of a file, without bounds that its footer does not tell of all of its rows. Those of floats are none: the greatest may
/// be NaN, and one that is only likely is taken for certain where files are put one behind another in the order that they are said to have.
pub(super) fn known(mut statistics: Statistics, schema: &Schema, read: &ParquetMetaData) -> Statistics {
    let leaves = read.file_metadata().schema_descr().columns().iter().enumerate();
    let places: HashMap<&str, usize> = leaves
        .filter_map(|(place, leaf)| match leaf.path().parts() {
            [name] => Some((name.as_str(), place)),
            _ => None,
        })
        .collect();
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        let is_told = match places.get(field.name().as_str()) {
            Some(place) => read.row_groups().iter().all(|group| group.columns().get(*place).is_some_and(tells)),
            None => true,
        };
        let fit = fits(&column.min_value, field.data_type()) && fits(&column.max_value, field.data_type());
        if !is_told || !fit || is_of_floats(field.data_type()) {
            column.min_value = Precision::Absent;
            column.max_value = Precision::Absent;
        }
    }
    statistics
}

/// Whether a bound is one of the column's type. Of a file whose numbers are narrower than the table's the engine tells NULL, and takes the
/// bounds of the other files for those of all.
fn fits(bound: &Precision<ScalarValue>, kind: &DataType) -> bool {
    let is_one = |value: &ScalarValue| !value.is_null() && (!kind.is_numeric() || value.data_type() == *kind);
    bound.get_value().is_none_or(is_one)
}

fn is_of_floats(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => values.is_floating(),
        other => other.is_floating(),
    }
}

/// Whether a column of a row group tells its least and its greatest value, or that it has nulls only.
fn tells(chunk: &ColumnChunkMetaData) -> bool {
    chunk.statistics().is_some_and(|told| {
        let all_null = told.null_count_opt().is_some_and(|nulls| u64::try_from(chunk.num_values()) == Ok(nulls));
        all_null || (told.min_bytes_opt().is_some() && told.max_bytes_opt().is_some())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::metadata::ParquetMetaDataReader;

    use super::*;

    /// A file of two row groups. What the second one tells of its first column is left out of the other footer.
    fn footers() -> (ParquetMetaData, ParquetMetaData, Arc<Schema>) {
        let batch = |last: Option<i64>| {
            let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, last.unwrap_or(9)]));
            let nulls: ArrayRef = Arc::new(Int64Array::from(vec![last, last]));
            let floats: ArrayRef = Arc::new(Float64Array::from(vec![5.0, f64::NAN]));
            let columns = [("i", Arc::clone(&numbers)), ("j", numbers), ("n", nulls), ("f", floats)];
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
        };
        let (first, second) = (batch(Some(2)), batch(None));
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, first.schema(), None).unwrap();
        writer.write(&first).unwrap();
        writer.flush().unwrap();
        writer.write(&second).unwrap();
        writer.close().unwrap();
        let whole = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes)).unwrap();
        let groups = whole.row_groups().iter().enumerate().map(|(at, group)| {
            let mut group = group.clone().into_builder();
            let columns = group.take_columns().into_iter().enumerate().map(|(column, chunk)| match (at, column) {
                (1, 0) => chunk.into_builder().clear_statistics().build().unwrap(),
                _ => chunk,
            });
            let columns = columns.collect();
            group.set_column_metadata(columns).build().unwrap()
        });
        let lacking = whole.clone().into_builder().set_row_groups(groups.collect()).build();
        assert_eq!(whole.num_row_groups(), 2);
        (whole, lacking, first.schema())
    }

    #[test]
    fn bounds_are_known_where_all_row_groups_tell_them_and_never_of_floats() {
        let (whole, lacking, schema) = footers();
        for (read, is_told) in [(&whole, true), (&lacking, false)] {
            let engines = DFParquetMetadata::statistics_from_parquet_metadata(read, &schema).unwrap();
            let found = known(engines.clone(), &schema, read).column_statistics;
            let [engines_i, engines_j, engines_n, engines_f] = &engines.column_statistics[..] else { panic!("{engines:?}") };
            let [i, j, n, f] = &found[..] else { panic!("{found:?}") };
            assert_eq!((j, n), (engines_j, engines_n));
            assert_eq!(
                (&f.min_value, &f.max_value, f.null_count),
                (&Precision::Absent, &Precision::Absent, engines_f.null_count)
            );
            match is_told {
                true => assert_eq!(i, engines_i),
                false => assert_eq!((&i.min_value, &i.max_value), (&Precision::Absent, &Precision::Absent)),
            }
        }
        let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Float64));
        assert!(is_of_floats(&kind));
    }
}
