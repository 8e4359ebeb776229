//! What it costs to send rows of a row group of Parquet, as far as the file's statistics tell.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::parquet::file::statistics::Statistics;
use forebay_client::{FarColumn, FarPart, far_share};
use forebay_types::RowTest;

/// Bytes that say where a text ends.
const OFFSET_BYTES: f64 = 4.0;

/// A file's row groups, and how much of each the engine's own reader reads.
pub(in crate::hot) struct Costs {
    footer: Arc<ParquetMetaData>,
    /// Shares of their rows: its page index spares it some.
    shares: Vec<f64>,
}

impl Costs {
    pub(in crate::hot) fn new(footer: &Arc<ParquetMetaData>, access: &ParquetAccessPlan) -> Self {
        let share = |(access, rows): (&RowGroupAccess, i64)| match access {
            RowGroupAccess::Skip => 0.0,
            RowGroupAccess::Scan => 1.0,
            RowGroupAccess::Selection(selection) => selection.row_count() as f64 / rows.max(1) as f64,
        };
        let rows = footer.row_groups().iter().map(|group| group.num_rows());
        Self { footer: Arc::clone(footer), shares: access.inner().iter().zip(rows).map(share).collect() }
    }

    /// Bytes that the file has of columns of a row group, and its rows.
    pub(in crate::hot) fn whole(&self, row_group: usize, leaves: &[usize]) -> (u64, u64) {
        let group = self.footer.row_group(row_group);
        let bytes = leaves.iter().map(|leaf| u64::try_from(group.column(*leaf).compressed_size()).unwrap_or(0));
        (bytes.fold(0, u64::saturating_add), u64::try_from(group.num_rows()).unwrap_or(0))
    }

    /// What it costs to send those rows of a row group that meet a condition; `leaves` are the columns of `stream`.
    pub(in crate::hot) fn of(
        &self,
        row_group: usize,
        (leaves, stream): (&[usize], &Schema),
        tests: &[RowTest],
        limit: Option<u64>,
    ) -> FarPart {
        let group = self.footer.row_group(row_group);
        let (raw, rows) = self.whole(row_group, leaves);
        let share_read = self.shares.get(row_group).copied().unwrap_or(1.0);
        let widths = leaves.iter().zip(stream.fields()).map(|(leaf, field)| width(field.data_type(), group.column(*leaf)));
        let known = |column: u32| known(group.column(*leaves.get(column as usize)?));
        let number = |column: u32, value: &[u8]| number(stream.fields().get(column as usize)?.data_type(), value);
        let most = limit.map_or(1.0, |limit| limit as f64 / rows.max(1) as f64);
        FarPart {
            raw_bytes: (raw as f64 * share_read) as u64,
            columns: leaves.len(),
            rows: Some(rows),
            row_bytes: widths.sum(),
            share: far_share(tests, known, number).min(most),
        }
    }
}

/// Bytes of a value, about.
fn width(data_type: &DataType, chunk: &ColumnChunkMetaData) -> f64 {
    match data_type {
        DataType::Boolean => 1.0 / 8.0,
        DataType::FixedSizeBinary(width) => f64::from(*width),
        other => match other.primitive_width() {
            Some(width) => narrow(width, chunk),
            // A column whose values take a byte in the file, or less, has few of them: they are sent so too.
            None if chunk.uncompressed_size() <= chunk.num_values() => 1.0,
            None => {
                let bytes = chunk.unencoded_byte_array_data_bytes().unwrap_or_else(|| chunk.uncompressed_size());
                OFFSET_BYTES + bytes as f64 / chunk.num_values().max(1) as f64
            }
        },
    }
}

/// Whole numbers are sent in as many bytes as their bounds take; those without a sign, the bounds of which may be the wrong way round
/// here, as they are.
fn narrow(width: usize, chunk: &ColumnChunkMetaData) -> f64 {
    let known = known(chunk).filter(|known| known.is_whole && known.min <= known.max);
    let bytes = known.map(|known| ((known.max - known.min + 1.0).log2() / 8.0).ceil());
    bytes.map_or(width as f64, |bytes| bytes.clamp(1.0, width as f64))
}

/// What is known of a column's numbers.
fn known(chunk: &ColumnChunkMetaData) -> Option<FarColumn> {
    let statistics = chunk.statistics()?;
    let (min, max, is_whole) = match statistics {
        Statistics::Int32(values) => (f64::from(*values.min_opt()?), f64::from(*values.max_opt()?), true),
        Statistics::Int64(values) => (*values.min_opt()? as f64, *values.max_opt()? as f64, true),
        Statistics::Float(values) => (f64::from(*values.min_opt()?), f64::from(*values.max_opt()?), false),
        Statistics::Double(values) => (*values.min_opt()?, *values.max_opt()?, false),
        _ => return None,
    };
    let nulls = statistics.null_count_opt().unwrap_or(0) as f64 / chunk.num_values().max(1) as f64;
    Some(FarColumn { min, max, is_whole, nulls })
}

/// A value as a number.
fn number(data_type: &DataType, value: &[u8]) -> Option<f64> {
    match data_type {
        DataType::Float32 => value.try_into().ok().map(|bytes| f64::from(f32::from_le_bytes(bytes))),
        DataType::Float64 => value.try_into().ok().map(f64::from_le_bytes),
        other if other.primitive_width() == Some(value.len()) && value.len() <= 16 => {
            let is_negative = !other.is_unsigned_integer() && value.last().is_some_and(|byte| byte & 0x80 != 0);
            let mut bytes = [if is_negative { 0xff } else { 0 }; 16];
            bytes[..value.len()].copy_from_slice(value);
            Some(i128::from_le_bytes(bytes) as f64)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_whatever_their_width() {
        assert_eq!(number(&DataType::Int32, &(-7i32).to_le_bytes()), Some(-7.0));
        assert_eq!(number(&DataType::UInt8, &[0xff]), Some(255.0));
        assert_eq!(number(&DataType::Decimal128(9, 2), &(-12_345i128).to_le_bytes()), Some(-12_345.0));
        assert_eq!(number(&DataType::Float64, &1.5f64.to_le_bytes()), Some(1.5));
        assert_eq!(number(&DataType::Int32, &[1, 2]), None);
        assert_eq!(number(&DataType::Utf8, b"a"), None);
    }
}
