//! What a function is given, by what its result is computed from: bytes, lengths, numbers.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListViewArray, OffsetSizeTrait};
use datafusion::arrow::compute::{cast, max};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

/// Bytes of an offset, the longest that there is.
const OFFSET: u64 = 8;
const MILLISECONDS_A_DAY: i64 = 86_400_000;
const NANOSECONDS_AN_HOUR: i128 = 3_600_000_000_000;
/// The shortest month and day that there are.
const DAYS_A_MONTH: i128 = 28;
const HOURS_A_DAY: i128 = 23;

/// The values of an argument, each of which is there so many times.
pub(super) struct Argument {
    values: ArrayRef,
    times: u64,
}

impl Argument {
    pub(super) fn of(value: &ColumnarValue, rows: usize) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Array(values) => Self { values: Arc::clone(values), times: 1 },
            ColumnarValue::Scalar(value) => Self { values: value.to_array()?, times: rows as u64 },
        })
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> u64 {
        bytes_of(self.values.as_ref()).saturating_mul(self.times)
    }

    /// Bytes of all texts, without what stands beside each.
    pub(super) fn length(&self) -> u64 {
        let beside = OFFSET * self.values.len() as u64;
        bytes_of(self.values.as_ref()).saturating_sub(beside).saturating_mul(self.times)
    }

    /// Bytes of the largest value, or of all where that is not known.
    pub(super) fn largest(&self) -> u64 {
        largest_of(self.values.as_ref())
    }

    /// Bytes of the shortest text.
    pub(super) fn shortest(&self) -> u64 {
        let shortest = length_of(self.values.as_ref(), u64::MAX, u64::min);
        shortest.filter(|_| !self.values.is_empty()).unwrap_or(0)
    }

    /// The greatest of whole numbers; 0 where all are less.
    pub(super) fn number(&self) -> u64 {
        // A type that is no number is not taken for a small one.
        let Ok(numbers) = cast(&self.values, &DataType::Int64) else { return u64::MAX };
        max(numbers.as_primitive::<Int64Type>()).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    /// Elements of all lists.
    pub(super) fn elements(&self) -> u64 {
        elements_of(self.values.as_ref()).map_or(0, |elements| elements.len() as u64).saturating_mul(self.times)
    }

    /// The same of lists within lists.
    pub(super) fn leaves(&self) -> u64 {
        leaves_of(self.values.as_ref()).saturating_mul(self.times)
    }

    /// Bytes that a null takes which stands in a list of this type.
    pub(super) fn null_element(&self) -> u64 {
        match self.values.data_type() {
            DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => null_bytes(of.data_type()),
            _ => null_bytes(&DataType::Null),
        }
    }

    /// Whether it is one value for all rows.
    pub(super) fn is_constant(&self) -> bool {
        self.values.len() == 1
    }

    /// Whether it is dates, which are counted by days.
    pub(super) fn is_of_days(&self) -> bool {
        matches!(self.values.data_type(), DataType::Date32 | DataType::Date64)
    }

    /// The place in time, or the number, of a row: days of dates, nanoseconds of timestamps.
    pub(super) fn point(&self, row: usize) -> Option<i128> {
        let (values, row) = (self.values.as_ref(), self.at(row)?);
        Some(match values.data_type() {
            DataType::Int64 => i128::from(values.as_primitive::<Int64Type>().value(row)),
            DataType::Date32 => i128::from(values.as_primitive::<Date32Type>().value(row)),
            DataType::Date64 => i128::from(values.as_primitive::<Date64Type>().value(row) / MILLISECONDS_A_DAY),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => i128::from(values.as_primitive::<TimestampSecondType>().value(row)) * 1_000_000_000,
                TimeUnit::Millisecond => i128::from(values.as_primitive::<TimestampMillisecondType>().value(row)) * 1_000_000,
                TimeUnit::Microsecond => i128::from(values.as_primitive::<TimestampMicrosecondType>().value(row)) * 1000,
                TimeUnit::Nanosecond => i128::from(values.as_primitive::<TimestampNanosecondType>().value(row)),
            },
            _ => return None,
        })
    }

    /// The step between two such, at least; 0 where a step may go in both directions, none where it goes nowhere.
    pub(super) fn step(&self, row: usize, are_days: bool) -> Option<i128> {
        let DataType::Interval(IntervalUnit::MonthDayNano) = self.values.data_type() else {
            return self.point(row).filter(|step| *step != 0);
        };
        let step = self.values.as_primitive::<IntervalMonthDayNanoType>().value(self.at(row)?);
        let (months, days, nanoseconds) = IntervalMonthDayNanoType::to_parts(step);
        let signs = [i64::from(months), i64::from(days), nanoseconds].map(i64::signum);
        if signs.contains(&1) && signs.contains(&-1) {
            return Some(0);
        }
        let days = i128::from(months) * DAYS_A_MONTH + i128::from(days);
        let step = if are_days { days } else { days * HOURS_A_DAY * NANOSECONDS_AN_HOUR + i128::from(nanoseconds) };
        Some(step).filter(|step| *step != 0)
    }

    /// Where the value of a row is; none where it is null.
    fn at(&self, row: usize) -> Option<usize> {
        let row = if self.is_constant() { 0 } else { row };
        (row < self.values.len() && !self.values.is_null(row)).then_some(row)
    }
}

/// Bytes of values, whatever they share with others.
pub(crate) fn bytes_of(values: &dyn Array) -> u64 {
    bytes_within(values, 0, values.len())
}

/// The same of so many of them, from one on.
fn bytes_within(values: &dyn Array, from: usize, rows: usize) -> u64 {
    let many = rows as u64;
    let within = match values.data_type() {
        DataType::Utf8 => spanned(values.as_string::<i32>().value_offsets(), from, rows).1 as u64,
        DataType::LargeUtf8 => spanned(values.as_string::<i64>().value_offsets(), from, rows).1 as u64,
        DataType::Binary => spanned(values.as_binary::<i32>().value_offsets(), from, rows).1 as u64,
        DataType::LargeBinary => spanned(values.as_binary::<i64>().value_offsets(), from, rows).1 as u64,
        DataType::Utf8View => bytes_of_views(values.as_string_view().views(), from, rows),
        DataType::BinaryView => bytes_of_views(values.as_binary_view().views(), from, rows),
        DataType::Struct(_) => values.as_struct().columns().iter().map(|column| bytes_within(column.as_ref(), from, rows)).sum(),
        DataType::Dictionary(..) => largest_word(values, from, rows).saturating_mul(many),
        DataType::FixedSizeBinary(_) => null_bytes(values.data_type()).saturating_mul(many),
        kind if kind.is_primitive() => return kind.primitive_width().map_or(0, |width| width as u64) * many,
        DataType::Boolean | DataType::Null => 0,
        DataType::ListView(_) => bytes_of_list_views(values.as_list_view::<i32>(), from, rows),
        DataType::LargeListView(_) => bytes_of_list_views(values.as_list_view::<i64>(), from, rows),
        _ => match listed(values, from, rows) {
            Some((elements, from, count)) => bytes_within(elements, from, count),
            None => values.get_array_memory_size() as u64,
        },
    };
    within.saturating_add(OFFSET * many)
}

/// A view has its length in its lowest bits.
fn bytes_of_views(views: &[u128], from: usize, rows: usize) -> u64 {
    views[from..from + rows].iter().map(|view| u64::from(*view as u32)).sum()
}

/// Several of such lists may have the same elements.
fn bytes_of_list_views<O: OffsetSizeTrait>(lists: &GenericListViewArray<O>, from: usize, rows: usize) -> u64 {
    let elements: &dyn Array = lists.values().as_ref();
    let of_row = |row: usize| bytes_within(elements, lists.offsets()[row].as_usize(), lists.sizes()[row].as_usize());
    (from..from + rows).map(of_row).fold(0, u64::saturating_add)
}

/// Bytes of the largest word of a dictionary that so many rows have, from one on, with what stands beside it.
fn largest_word(values: &dyn Array, from: usize, rows: usize) -> u64 {
    let dictionary = values.as_any_dictionary();
    let words: &dyn Array = dictionary.values().as_ref();
    // All batches of a file may have one dictionary, with each word of the file.
    let keys = (words.len() > rows).then(|| cast(&dictionary.keys().slice(from, rows), &DataType::UInt64));
    let Some(Ok(keys)) = keys else { return largest_of(words).saturating_add(OFFSET) };
    let had = keys.as_primitive::<UInt64Type>().iter().flatten();
    had.map(|key| bytes_within(words, key as usize, 1)).max().unwrap_or(0)
}

fn largest_of(values: &dyn Array) -> u64 {
    length_of(values, 0, u64::max).unwrap_or_else(|| bytes_of(values))
}

/// Whether a value of this type is as wide as any other.
pub(crate) fn is_of_one_width(kind: &DataType) -> bool {
    kind.is_primitive() || matches!(kind, DataType::Boolean | DataType::Null)
}

/// Bytes of the widest value, or of all where these are few enough. No value is copied, and none but views of text are walked where offsets
/// tell: it is asked of each batch that a join reads.
pub(crate) fn widest(values: &dyn Array, enough: u64) -> u64 {
    let all = bytes_of(values);
    if all <= enough {
        return all;
    }
    let within = match values.data_type() {
        kind if is_of_one_width(kind) => return null_bytes(kind),
        DataType::Struct(_) => {
            let columns = values.as_struct().columns().iter();
            columns.map(|column| widest(column.as_ref(), 0)).fold(0, u64::saturating_add)
        }
        DataType::Dictionary(..) => largest_word(values, 0, values.len()),
        DataType::FixedSizeBinary(_) => null_bytes(values.data_type()),
        _ => length_of(values, 0, u64::max)
            .unwrap_or_else(|| (0..values.len()).map(|row| bytes_within(values, row, 1)).max().unwrap_or(0)),
    };
    within.saturating_add(OFFSET)
}

/// Elements of all lists, and of those within them.
pub(crate) fn elements_within(values: &dyn Array) -> u64 {
    // Several of such lists may have the same elements.
    fn viewed<O: OffsetSizeTrait>(lists: &GenericListViewArray<O>) -> u64 {
        let elements = lists.sizes().iter().map(|size| size.as_usize() as u64).fold(0, u64::saturating_add);
        elements.saturating_mul(elements_within(lists.values().as_ref()).saturating_add(1))
    }
    match values.data_type() {
        DataType::ListView(_) => viewed(values.as_list_view::<i32>()),
        DataType::LargeListView(_) => viewed(values.as_list_view::<i64>()),
        _ => elements_of(values).map_or(0, |elements| elements_within(elements.as_ref()).saturating_add(elements.len() as u64)),
    }
}

/// What is chosen of the lengths of texts and bytes, and of `first`; none of what is neither.
fn length_of(values: &dyn Array, first: u64, choose: impl Fn(u64, u64) -> u64) -> Option<u64> {
    fn between<O: OffsetSizeTrait>(offsets: &[O], first: u64, choose: impl Fn(u64, u64) -> u64) -> u64 {
        offsets.windows(2).map(|two| (two[1].as_usize() - two[0].as_usize()) as u64).fold(first, choose)
    }
    Some(match values.data_type() {
        DataType::Utf8 => between(values.as_string::<i32>().value_offsets(), first, choose),
        DataType::LargeUtf8 => between(values.as_string::<i64>().value_offsets(), first, choose),
        DataType::Binary => between(values.as_binary::<i32>().value_offsets(), first, choose),
        DataType::LargeBinary => between(values.as_binary::<i64>().value_offsets(), first, choose),
        DataType::Utf8View => values.as_string_view().lengths().map(u64::from).fold(first, choose),
        DataType::BinaryView => values.as_binary_view().lengths().map(u64::from).fold(first, choose),
        _ => return None,
    })
}

/// What stands in lists; none of what is no list.
fn elements_of(values: &dyn Array) -> Option<ArrayRef> {
    listed(values, 0, values.len()).map(|(elements, from, count)| elements.slice(from, count))
}

/// What so many lists, from one on, have their elements in: where these begin, and how many they are.
fn listed(lists: &dyn Array, from: usize, rows: usize) -> Option<(&dyn Array, usize, usize)> {
    let (elements, (from, count)): (&dyn Array, (usize, usize)) = match lists.data_type() {
        DataType::List(_) => {
            let lists = lists.as_list::<i32>();
            (lists.values().as_ref(), spanned(lists.value_offsets(), from, rows))
        }
        DataType::LargeList(_) => {
            let lists = lists.as_list::<i64>();
            (lists.values().as_ref(), spanned(lists.value_offsets(), from, rows))
        }
        DataType::Map(..) => {
            let lists = lists.as_map();
            (lists.entries() as &dyn Array, spanned(lists.value_offsets(), from, rows))
        }
        DataType::FixedSizeList(_, length) => {
            let length = usize::try_from(*length).unwrap_or(0);
            (lists.as_fixed_size_list().values().as_ref(), (from * length, rows * length))
        }
        _ => return None,
    };
    Some((elements, from, count))
}

/// Where so many of what offsets tell, from one on, begin, and how far they go.
fn spanned<O: OffsetSizeTrait>(offsets: &[O], from: usize, rows: usize) -> (usize, usize) {
    let offsets = &offsets[from..=from + rows];
    debug_assert!(offsets.is_sorted(), "offsets go forward");
    let start = offsets[0].as_usize();
    (start, offsets[rows].as_usize() - start)
}

fn leaves_of(values: &dyn Array) -> u64 {
    elements_of(values).map_or(values.len() as u64, |elements| leaves_of(elements.as_ref()))
}

/// Bytes that a null takes.
fn null_bytes(kind: &DataType) -> u64 {
    match kind {
        DataType::FixedSizeBinary(bytes) => u64::try_from(*bytes).unwrap_or(0),
        DataType::FixedSizeList(of, count) => null_bytes(of.data_type()).saturating_mul(u64::try_from(*count).unwrap_or(0)),
        DataType::Struct(fields) => fields.iter().map(|field| null_bytes(field.data_type())).fold(1, u64::saturating_add),
        DataType::Boolean => 1,
        kind => kind.primitive_width().map_or(16, |width| width as u64),
    }
}
