//! Bounds of floats in Parquet files leave NaN out, which here is greater than every number: rows that are NaN were left out with others by
//! `x >= 10`, and the greatest value was a number. Nobody says which columns have none, so that every column of floats is taken to have one.

use std::sync::Arc;

use datafusion::parquet::basic::{LogicalType, Type};
use datafusion::parquet::data_type::FixedLenByteArray;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, ParquetMetaData};
use datafusion::parquet::file::page_index::column_index::{ColumnIndexMetaData, PrimitiveColumnIndex};
use datafusion::parquet::file::statistics::{Statistics as Bounds, ValueStatistics};
use datafusion::parquet::schema::types::ColumnDescriptor;

/// A footer in which the greatest float of every row group and page is NaN; the same one, where that is so. Where its index of pages was not
/// read yet, it says of no floats where theirs is: who reads it later does not come this way.
pub(crate) fn with_nan(read: Arc<ParquetMetaData>) -> ParquetResult<Arc<ParquetMetaData>> {
    if !read.file_metadata().schema_descr().columns().iter().any(|column| is_float(column)) {
        return Ok(read);
    }
    let has_pages = read.column_index().is_some();
    let mut is_new = read.row_groups().iter().flat_map(|group| group.columns()).any(|chunk| other(chunk, has_pages).is_some());
    for (group, pages) in read.row_groups().iter().zip(read.column_index().into_iter().flatten()) {
        for (chunk, pages) in group.columns().iter().zip(pages) {
            is_new = is_new || of_pages(chunk, pages)?.is_some();
        }
    }
    if !is_new {
        return Ok(read);
    }
    // What is wide is copied once.
    let mut whole = read.as_ref().clone().into_builder();
    let groups = whole.take_row_groups().into_iter().map(|group| {
        let mut group = group.into_builder();
        let columns = group.take_columns().into_iter().map(|chunk| other(&chunk, has_pages).unwrap_or(Ok(chunk)));
        group.set_column_metadata(columns.collect::<ParquetResult<Vec<_>>>()?).build()
    });
    let groups = groups.collect::<ParquetResult<Vec<_>>>()?;
    let mut index = whole.take_column_index();
    for (group, pages) in groups.iter().zip(index.iter_mut().flatten()) {
        for (chunk, pages) in group.columns().iter().zip(pages) {
            if let Some(raised) = of_pages(chunk, pages)? {
                *pages = raised;
            }
        }
    }
    Ok(Arc::new(whole.set_row_groups(groups).set_column_index(index).build()))
}

/// What bounds of floats are made of.
trait Float: Copy + Default + PartialOrd {
    const NAN: Self;
    const LEAST: Self;
    const ZERO_BELOW: Self;

    fn bytes(self) -> Vec<u8>;

    /// What is not above any value of which this is said to be the least: NaN says nothing, and of zeros either may be meant.
    fn lowered(self) -> Self {
        if is_no_number(self) {
            Self::LEAST
        } else if self == Self::default() {
            Self::ZERO_BELOW
        } else {
            self
        }
    }
}

impl Float for f32 {
    const NAN: Self = f32::NAN;
    const LEAST: Self = f32::NEG_INFINITY;
    const ZERO_BELOW: Self = -0.0;

    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Float for f64 {
    const NAN: Self = f64::NAN;
    const LEAST: Self = f64::NEG_INFINITY;
    const ZERO_BELOW: Self = -0.0;

    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

/// Whether a value is no number.
fn is_no_number<T: Float>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// Whether bounds hold of NaN, too.
fn holds<T: Float>(min: Option<T>, max: Option<T>) -> bool {
    max.is_none_or(is_no_number) && !min.is_some_and(is_no_number)
}

fn is_half(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Float16))
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE) || is_half(column)
}

/// Another word of a column of a row group; none where its own holds.
fn other(chunk: &ColumnChunkMetaData, has_pages: bool) -> Option<ParquetResult<ColumnChunkMetaData>> {
    let bounds = of_chunk(chunk);
    let is_unread = !has_pages && is_float(chunk.column_descr()) && chunk.column_index_offset().is_some();
    if bounds.is_none() && !is_unread {
        return None;
    }
    let mut other = chunk.clone().into_builder();
    if let Some(bounds) = bounds {
        other = other.set_statistics(bounds);
    }
    if is_unread {
        other = other.set_column_index_offset(None).set_column_index_length(None);
    }
    Some(other.build())
}

/// Other bounds of a column of a row group; none where its own hold.
fn of_chunk(chunk: &ColumnChunkMetaData) -> Option<Bounds> {
    match chunk.statistics()? {
        Bounds::Float(bounds) => raised(bounds),
        Bounds::Double(bounds) => raised(bounds),
        Bounds::FixedLenByteArray(bounds)
            if is_half(chunk.column_descr()) && (bounds.min_opt().is_some() || bounds.max_opt().is_some()) =>
        {
            let (distinct, nulls) = (bounds.distinct_count(), bounds.null_count_opt());
            Some(Bounds::from(ValueStatistics::<FixedLenByteArray>::new(None, None, distinct, nulls, false)))
        }
        _ => None,
    }
}

fn raised<T: Float>(bounds: &ValueStatistics<T>) -> Option<Bounds>
where
    Bounds: From<ValueStatistics<T>>,
{
    let (min, max) = (bounds.min_opt().copied(), bounds.max_opt().copied());
    if holds(min, max) {
        return None;
    }
    let (distinct, nulls) = (bounds.distinct_count(), bounds.null_count_opt());
    let raised = ValueStatistics::new(min.map(Float::lowered), max.map(|_| T::NAN), distinct, nulls, false);
    Some(Bounds::from(raised.with_min_is_exact(false).with_max_is_exact(false)))
}

/// Other bounds of the pages of a column; none where their own hold.
fn of_pages(chunk: &ColumnChunkMetaData, pages: &ColumnIndexMetaData) -> ParquetResult<Option<ColumnIndexMetaData>> {
    match pages {
        ColumnIndexMetaData::FLOAT(pages) => raised_pages(pages, Type::FLOAT),
        ColumnIndexMetaData::DOUBLE(pages) => raised_pages(pages, Type::DOUBLE),
        ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(_) if is_half(chunk.column_descr()) => Ok(Some(ColumnIndexMetaData::NONE)),
        _ => Ok(None),
    }
}

fn raised_pages<T: Float>(pages: &PrimitiveColumnIndex<T>, kind: Type) -> ParquetResult<Option<ColumnIndexMetaData>> {
    let count = pages.max_values().len();
    if (0..count).all(|page| holds(pages.min_value(page).copied(), pages.max_value(page).copied())) {
        return Ok(None);
    }
    let mut raised = ColumnIndexBuilder::new(kind);
    for page in 0..count {
        let Some(nulls) = pages.null_count(page) else { return Ok(Some(ColumnIndexMetaData::NONE)) };
        match pages.min_value(page) {
            Some(min) => raised.append(false, min.lowered().bytes(), T::NAN.bytes(), nulls),
            None => raised.append(true, Vec::new(), Vec::new(), nulls),
        }
    }
    raised.build().map(Some)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use datafusion::arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};

    use super::*;

    #[test]
    fn the_greatest_float_of_what_a_footer_tells_is_nan() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.0), Some(7.5), Some(f64::NAN), None]));
        let narrow: ArrayRef = Arc::new(Float32Array::from(vec![-1.0, 2.0, 3.0, 4.0]));
        let whole: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let batch = RecordBatch::try_from_iter([("d", floats), ("f", narrow), ("i", whole)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let bytes = Bytes::from(bytes);
        let footer = |policy: PageIndexPolicy| {
            let reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
            Arc::new(reader.parse_and_finish(&bytes).unwrap())
        };
        let read = footer(PageIndexPolicy::Required);
        let raised = with_nan(Arc::clone(&read)).unwrap();

        let [d, f, i] = [0, 1, 2].map(|column| raised.row_group(0).column(column).statistics().unwrap());
        let Bounds::Double(d) = d else { panic!("{d:?}") };
        assert!(
            d.max_opt().unwrap().is_nan() && d.min_opt().unwrap().is_sign_negative() && d.null_count_opt() == Some(1),
            "{d:?}"
        );
        let Bounds::Float(f) = f else { panic!("{f:?}") };
        assert!(f.max_opt().unwrap().is_nan() && f.min_opt() == Some(&-1.0), "{f:?}");
        assert_eq!(Some(i), read.row_group(0).column(2).statistics());
        let pages = &raised.column_index().unwrap()[0];
        let ColumnIndexMetaData::DOUBLE(d) = &pages[0] else { panic!("{pages:?}") };
        assert!(d.max_value(0).unwrap().is_nan() && d.null_count(0) == Some(1), "{d:?}");
        assert_eq!(pages[2], read.column_index().unwrap()[0][2]);
        assert_eq!(raised.offset_index(), read.offset_index());
        assert!(Arc::ptr_eq(&raised, &with_nan(Arc::clone(&raised)).unwrap()), "which is so already");

        let unread = with_nan(footer(PageIndexPolicy::Skip)).unwrap();
        let of = |column: usize| unread.row_group(0).column(column);
        assert!([0, 1].iter().all(|column| of(*column).column_index_offset().is_none()), "{unread:?}");
        assert!(
            [0, 1, 2].iter().all(|column| of(*column).offset_index_offset().is_some()) && of(2).column_index_offset().is_some()
        );
        assert!(Arc::ptr_eq(&unread, &with_nan(Arc::clone(&unread)).unwrap()));
    }
}
