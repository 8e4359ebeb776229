//! Whole numbers in as few bytes as the column's bounds take: a price of 16 bytes comes in three.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, make_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use forebay_types::{Error, Result, hex};

use super::from_hex;
use crate::read::Table;
use crate::schema::{schema_from_bytes, schema_to_bytes};

/// What is said of a field that is sent so: the number that all values are above, and the column's own type, the hexadecimal digits of a
/// schema of it.
const BASE: &str = "base";
const TYPE: &str = "type";

/// How a column of whole numbers (decimals, dates, times) is sent: what each is above the least one, in fewer bytes than its own.
#[derive(Clone, Debug)]
pub struct Narrow {
    data_type: DataType,
    own: usize,
    is_signed: bool,
    base: i128,
    width: usize,
}

impl Narrow {
    /// For the first column of a table, by its bounds; none where it takes no fewer bytes.
    pub(super) fn of(table: &Table) -> Result<Option<Self>> {
        let data_type = table.schema().leaves()[0].data_type().clone();
        let Some((own, is_signed)) = whole(&data_type) else { return Ok(None) };
        let known = table.statistics(0)?;
        let (least, most) = (numbers(&known.min, own, is_signed), numbers(&known.max, own, is_signed));
        let mut bounds: Option<(i128, i128)> = None;
        for at in 0..table.row_groups() {
            match (least[at], most[at]) {
                (Some(least), Some(most)) => {
                    bounds = Some(bounds.map_or((least, most), |(low, high)| (low.min(least), high.max(most))));
                }
                _ if known.nulls.value(at) == known.rows.value(at) => {}
                _ => return Ok(None),
            }
        }
        let (base, top) = bounds.unwrap_or_default();
        let Some(span) = top.checked_sub(base).and_then(|span| u128::try_from(span).ok()) else { return Ok(None) };
        let width = ((u128::BITS - span.leading_zeros()) as usize).div_ceil(8).max(1);
        assert!(width >= size_of::<u128>() || span >> (8 * width) == 0, "{width} bytes have room for {span}");
        Ok((width < own).then_some(Self { data_type, own, is_signed, base, width }))
    }

    /// How a field was sent; none where it came as it is.
    /// `Corrupt` when that can't be.
    pub fn of_field(field: &Field) -> Result<Option<Self>> {
        let (Some(base), Some(of)) = (field.metadata().get(BASE), field.metadata().get(TYPE)) else { return Ok(None) };
        let bad = || Error::corrupt(format!("column `{}` says of itself what can't be", field.name()));
        let DataType::FixedSizeBinary(width) = field.data_type() else { return Err(bad()) };
        let base = base.parse::<i128>().map_err(|_| bad())?;
        let schema = schema_from_bytes(&from_hex(of).ok_or_else(bad)?)?;
        let data_type = schema.fields().first().ok_or_else(bad)?.data_type().clone();
        let (own, is_signed) = whole(&data_type).ok_or_else(bad)?;
        let width = usize::try_from(*width).ok().filter(|width| (1..own).contains(width)).ok_or_else(bad)?;
        Ok(Some(Self { data_type, own, is_signed, base, width }))
    }

    /// The column's own type.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The field that it is sent as.
    pub(super) fn field(&self, name: &str, nullable: bool) -> Result<Field> {
        let of = schema_to_bytes(&Schema::new(vec![Field::new("v", self.data_type.clone(), nullable)]))?;
        let said = [(BASE.to_string(), self.base.to_string()), (TYPE.to_string(), hex(&of))];
        let sent = DataType::FixedSizeBinary(self.width as i32);
        Ok(Field::new(name, sent, nullable).with_metadata(HashMap::from(said)))
    }

    /// Values as they are sent.
    pub(super) fn narrow(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let data = array.to_data();
        let values = values(&data, self.own);
        let mut out = Vec::with_capacity(array.len() * self.width);
        for (row, value) in values.chunks_exact(self.own).enumerate() {
            // What stands where nothing is, is as it likes.
            let above = number(value, self.is_signed).wrapping_sub(self.base) as u128;
            if above >> (8 * self.width) != 0 && array.is_valid(row) {
                return Err(Error::corrupt("a value that is not within the bounds of its column"));
            }
            out.extend_from_slice(&above.to_le_bytes()[..self.width]);
        }
        assert_eq!(out.len(), array.len() * self.width, "each value is sent");
        let sent = FixedSizeBinaryArray::try_new(self.width as i32, Buffer::from_vec(out), array.nulls().cloned());
        sent.map(|sent| Arc::new(sent) as ArrayRef).map_err(|error| Error::corrupt(format!("narrow values: {error}")))
    }

    /// The values that were sent so, in the column's own type.
    /// `Corrupt` for an array that was not.
    pub fn widen(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if *array.data_type() != DataType::FixedSizeBinary(self.width as i32) {
            return Err(Error::corrupt(format!("narrow values came as {}", array.data_type())));
        }
        let data = array.to_data();
        let mut out = MutableBuffer::from_len_zeroed(array.len() * self.own);
        let sent = values(&data, self.width).chunks_exact(self.width);
        for (to, value) in out.chunks_exact_mut(self.own).zip(sent) {
            to.copy_from_slice(&number(value, false).wrapping_add(self.base).to_le_bytes()[..self.own]);
        }
        let wide = ArrayData::builder(self.data_type.clone()).len(array.len()).nulls(array.nulls().cloned());
        let wide = wide.add_buffer(out.into()).align_buffers(true).build();
        wide.map(make_array).map_err(|error| Error::corrupt(format!("narrow values: {error}")))
    }
}

/// Bytes of a value of whole numbers of more than one, and whether they may be below 0.
fn whole(data_type: &DataType) -> Option<(usize, bool)> {
    use DataType as T;
    let is_signed = match data_type {
        T::UInt16 | T::UInt32 | T::UInt64 => false,
        T::Int16 | T::Int32 | T::Int64 | T::Date32 | T::Date64 | T::Time32(_) | T::Time64(_) => true,
        T::Timestamp(..) | T::Duration(_) | T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) => true,
        _ => return None,
    };
    Some((data_type.primitive_width()?, is_signed))
}

/// The bytes of the values of an array of fixed width.
fn values(data: &ArrayData, width: usize) -> &[u8] {
    &data.buffers()[0].as_slice()[data.offset() * width..][..data.len() * width]
}

fn numbers(array: &ArrayRef, width: usize, is_signed: bool) -> Vec<Option<i128>> {
    let data = array.to_data();
    let numbers = values(&data, width).chunks_exact(width).enumerate();
    numbers.map(|(row, value)| array.is_valid(row).then(|| number(value, is_signed))).collect()
}

/// A little-endian number of at most 16 bytes.
fn number(value: &[u8], is_signed: bool) -> i128 {
    let is_negative = is_signed && value.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut bytes = [if is_negative { 0xff } else { 0 }; 16];
    bytes[..value.len()].copy_from_slice(value);
    i128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Decimal128Type;
    use arrow_array::{Decimal128Array, Int64Array, RecordBatch, UInt64Array};

    use crate::write::{Options, Writer};

    fn table(array: ArrayRef) -> Table {
        let batch = RecordBatch::try_from_iter_with_nullable([("v", array, true)]).unwrap();
        let options = Options { row_group_rows: 3, ..Options::default() };
        let mut writer = Writer::new(Vec::new(), batch.schema(), options).unwrap();
        writer.push(&batch).unwrap();
        Table::open(&bytes::Bytes::from(writer.finish().unwrap().0)).unwrap()
    }

    /// The bytes that a value is sent in; 0 where it is sent as it is.
    fn sent(array: ArrayRef) -> usize {
        let Some(narrow) = Narrow::of(&table(Arc::clone(&array))).unwrap() else { return 0 };
        let field = narrow.field("0", true).unwrap();
        let came = Narrow::of_field(&field).unwrap().unwrap();
        let narrowed = narrow.narrow(&array).unwrap();
        assert_eq!(narrowed.data_type(), field.data_type());
        assert_eq!(&came.widen(&narrowed).unwrap(), &array);
        assert_eq!(came.widen(&narrowed.slice(1, 2)).unwrap().as_ref(), array.slice(1, 2).as_ref());
        narrow.width
    }

    #[test]
    fn numbers_come_back_from_the_bytes_that_their_bounds_take() {
        let ints = |values: [i64; 4]| sent(Arc::new(Int64Array::from(values.to_vec())));
        assert_eq!(ints([-5, 250, 3, 7]), 1);
        assert_eq!(ints([1 << 40, (1 << 40) + 256, 1 << 40, 1 << 40]), 2);
        assert_eq!(ints([i64::MIN, i64::MAX, 0, 0]), 0);
        assert_eq!(ints([7; 4]), 1);
        assert_eq!(sent(Arc::new(UInt64Array::from(vec![u64::MAX, u64::MAX - 9, u64::MAX, u64::MAX]))), 1);
        assert_eq!(sent(Arc::new(Int64Array::from(vec![None, None, None, Some(9)]))), 1);
        assert_eq!(sent(Arc::new(Int64Array::new_null(4))), 1);
        let prices = Decimal128Array::from(vec![Some(-99_999), None, Some(i128::from(u16::MAX)), Some(0)]);
        assert_eq!(sent(Arc::new(prices.with_precision_and_scale(15, 2).unwrap())), 3);
        let far = Decimal128Array::from(vec![i128::MIN, i128::MAX, 0, 0]);
        assert_eq!(sent(Arc::new(far)), 0);
    }

    #[test]
    fn what_a_field_can_not_say_is_damaged() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let narrow = Narrow::of(&table(Arc::clone(&array))).unwrap().unwrap();
        let good = narrow.field("0", true).unwrap();
        let with = |key: &str, value: &str| {
            let mut said = good.metadata().clone();
            said.insert(key.to_string(), value.to_string());
            Narrow::of_field(&good.clone().with_metadata(said))
        };
        for (key, value) in [(BASE, "x"), (BASE, ""), (TYPE, "0"), (TYPE, "zz"), (TYPE, "é"), (TYPE, "")] {
            assert!(with(key, value).is_err(), "{key} {value}");
        }
        assert!(Narrow::of_field(&good.clone().with_data_type(DataType::FixedSizeBinary(8))).is_err());
        assert!(Narrow::of_field(&good.clone().with_data_type(DataType::Utf8)).is_err());
        assert!(narrow.widen(&array).is_err());
        let outside: ArrayRef = Arc::new(Int64Array::from(vec![1, 1000]));
        assert!(narrow.narrow(&outside).is_err());
        let wide = Narrow::of_field(&good).unwrap().unwrap().widen(&narrow.narrow(&array).unwrap()).unwrap();
        assert_eq!(wide.len(), 3);
        assert!(wide.as_primitive_opt::<Decimal128Type>().is_none());
    }
}
