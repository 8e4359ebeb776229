//! The consumer that every format's batches go through, as cheap as memory allows, so that formats are what is compared.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

/// Adds up every value and every null of a batch, at the speed of memory. What stands where a value is null is added
/// too: it is zero in this table, whichever way it is read.
pub fn consume(batch: &RecordBatch) -> f64 {
    batch.columns().iter().map(|column| consume_column(column) + column.null_count() as f64).sum()
}

fn consume_column(column: &dyn Array) -> f64 {
    match column.data_type() {
        DataType::Float64 => sum_floats(column.as_primitive::<Float64Type>().values()),
        DataType::Int32 => column.as_primitive::<Int32Type>().values().iter().map(|&value| i64::from(value)).sum::<i64>() as f64,
        DataType::Int64 => column.as_primitive::<Int64Type>().values().iter().sum::<i64>() as f64,
        other => unreachable!("the table has no {other}"),
    }
}

/// The same of a few rows, each value where it lies.
pub fn consume_rows(batch: &RecordBatch, rows: &[usize]) -> f64 {
    let of = |column: &ArrayRef| {
        let nulls = rows.iter().filter(|&&row| column.is_null(row)).count() as f64;
        let values = match column.data_type() {
            DataType::Float64 => sum_at(column.as_primitive::<Float64Type>().values(), rows, |value| value),
            DataType::Int32 => sum_at(column.as_primitive::<Int32Type>().values(), rows, f64::from),
            _ => sum_at(column.as_primitive::<Int64Type>().values(), rows, |value| value as f64),
        };
        values + nulls
    };
    batch.columns().iter().map(of).sum()
}

fn sum_at<T: Copy>(values: &[T], rows: &[usize], number: impl Fn(T) -> f64) -> f64 {
    rows.iter().map(|&row| number(values[row])).sum()
}

/// In 16 lanes: added one after the other they would wait for each other.
#[allow(clippy::needless_range_loop, reason = "a zip would not be inlined across codegen units")]
fn sum_floats(values: &[f64]) -> f64 {
    let (blocks, rest) = values.as_chunks::<16>();
    let mut lanes = [0.0; 16];
    for block in blocks {
        for lane in 0..16 {
            lanes[lane] += block[lane];
        }
    }
    lanes.iter().chain(rest).sum()
}
