//! A table of the shape of TPC-DS store_sales: 10 columns of int32, one of int64, 12 of prices, 4.5 % nulls in 21 of them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema};
use forebay_types::split_mix;

/// Rows of a batch, and of the row groups of every format.
pub const BATCH_ROWS: usize = 1 << 16;

const KEYS: [(&str, i32); 10] = [
    ("ss_sold_date_sk", 0),
    ("ss_sold_time_sk", 86_400),
    ("ss_item_sk", 204_000),
    ("ss_customer_sk", 2_000_000),
    ("ss_cdemo_sk", 1_920_800),
    ("ss_hdemo_sk", 7_200),
    ("ss_addr_sk", 1_000_000),
    ("ss_store_sk", 402),
    ("ss_promo_sk", 1_000),
    ("ss_quantity", 100),
];
const PRICES: [&str; 12] = [
    "ss_wholesale_cost",
    "ss_list_price",
    "ss_sales_price",
    "ss_ext_discount_amt",
    "ss_ext_sales_price",
    "ss_ext_wholesale_cost",
    "ss_ext_list_price",
    "ss_ext_tax",
    "ss_coupon_amt",
    "ss_net_paid",
    "ss_net_paid_inc_tax",
    "ss_net_profit",
];

/// Splitmix64.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// The table, in batches: sold dates and tickets ascend, everything else is anywhere.
pub fn batches(rows: usize) -> Vec<RecordBatch> {
    let mut fields = KEYS.map(|(name, _)| Field::new(name, DataType::Int32, true)).to_vec();
    fields[2] = Field::new("ss_item_sk", DataType::Int32, false);
    fields.push(Field::new("ss_ticket_number", DataType::Int64, false));
    fields.extend(PRICES.map(|name| Field::new(name, DataType::Float64, true)));
    let schema = Arc::new(Schema::new(fields));
    let mut numbers = Numbers(20180711);
    let starts = (0..rows).step_by(BATCH_ROWS);
    starts.map(|first| batch(&schema, &mut numbers, first, BATCH_ROWS.min(rows - first), rows)).collect()
}

fn batch(schema: &Arc<Schema>, numbers: &mut Numbers, first: usize, rows: usize, all: usize) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (column, (_, limit)) in KEYS.iter().enumerate() {
        let nulls = (column != 2).then(|| nulls(numbers, rows));
        let values = (0..rows).map(|row| match column {
            _ if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => 0,
            0 => 2_450_816 + ((first + row) * 1_823 / all) as i32,
            _ => 1 + numbers.below(*limit as u64) as i32,
        });
        let values = values.collect::<Vec<_>>();
        columns.push(Arc::new(Int32Array::new(values.into(), nulls)));
    }
    columns.push(Arc::new(Int64Array::from_iter_values((0..rows).map(|row| ((first + row) / 12) as i64))));
    for (column, _) in PRICES.iter().enumerate() {
        let nulls = nulls(numbers, rows);
        let limit = [10_000, 20_000, 20_000, 1_000_000][column.min(3)];
        let price = |numbers: &mut Numbers| numbers.below(limit) as f64 / 100.0 - if column == 11 { 5_000.0 } else { 0.0 };
        let values = (0..rows).map(|row| if nulls.is_null(row) { 0.0 } else { price(numbers) }).collect::<Vec<_>>();
        columns.push(Arc::new(Float64Array::new(values.into(), Some(nulls))));
    }
    RecordBatch::try_new(schema.clone(), columns).expect("the columns are those of the schema")
}

fn nulls(numbers: &mut Numbers, rows: usize) -> NullBuffer {
    NullBuffer::from_iter((0..rows).map(|_| numbers.below(1_000) >= 45))
}

/// Bytes of the values and their validity.
pub fn value_bytes(batches: &[RecordBatch]) -> u64 {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default() as u64;
    batches.iter().flat_map(RecordBatch::columns).map(bytes).sum()
}
