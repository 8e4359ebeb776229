//! Which rows of columns meet a condition.

use arrow_array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow_buffer::BooleanBuffer;
use arrow_ord::cmp;
use arrow_schema::ArrowError;
use forebay_types::{Comparison, Error, Result, RowTest};

use crate::cell::Builder;
use crate::read::Selection;
use crate::schema::{Kind, Leaf};

/// The rows of `rows` that meet a condition that has been checked; `column` gives one by its place.
pub(super) fn passing<'a>(
    tests: &[RowTest],
    rows: usize,
    column: impl Fn(u32) -> Result<(&'a Leaf, ArrayRef)>,
) -> Result<Selection> {
    let mut truths: Vec<BooleanBuffer> = Vec::new();
    for test in tests {
        let truth = match test {
            RowTest::Compare { column: of, by, value } => {
                let (leaf, array) = column(*of)?;
                compared(leaf, &array, *by, value)?
            }
            RowTest::OneOf { column: of, values, negated } => {
                let (leaf, array) = column(*of)?;
                let mut any = BooleanBuffer::new_unset(rows);
                for value in values {
                    any = &any | &compared(leaf, &array, Comparison::Equal, value)?;
                }
                if *negated { &!&any & &is_null(&array, rows, true) } else { any }
            }
            RowTest::Null { column: of, negated } => is_null(&column(*of)?.1, rows, *negated),
            RowTest::And | RowTest::Or => {
                let (Some(one), Some(other)) = (truths.pop(), truths.pop()) else {
                    return Err(Error::invalid("a condition joins two where there are not two"));
                };
                if *test == RowTest::And { &one & &other } else { &one | &other }
            }
        };
        debug_assert_eq!(truth.len(), rows, "a truth a row");
        truths.push(truth);
    }
    match truths.pop() {
        Some(truth) if truths.is_empty() => Ok(Selection::of(&BooleanArray::new(truth, None))),
        _ => Err(Error::invalid("a condition that does not end with one truth")),
    }
}

/// Where an array is null, or with `negated` where it is not.
fn is_null(array: &ArrayRef, rows: usize, negated: bool) -> BooleanBuffer {
    match (array.logical_nulls(), negated) {
        (Some(nulls), true) => nulls.inner().clone(),
        (Some(nulls), false) => !nulls.inner(),
        (None, true) => BooleanBuffer::new_set(rows),
        (None, false) => BooleanBuffer::new_unset(rows),
    }
}

/// Where an array compares so with a value; nowhere that it is null.
fn compared(leaf: &Leaf, array: &ArrayRef, by: Comparison, value: &[u8]) -> Result<BooleanBuffer> {
    let value = scalar(leaf, value)?;
    let mask = match by {
        Comparison::Equal => cmp::eq(array, &value),
        Comparison::Different => cmp::neq(array, &value),
        Comparison::Less => cmp::lt(array, &value),
        Comparison::AtMost => cmp::lt_eq(array, &value),
        Comparison::Greater => cmp::gt(array, &value),
        Comparison::AtLeast => cmp::gt_eq(array, &value),
    };
    let bad = |error: ArrowError| Error::invalid(format!("a column of {} can't be compared so: {error}", leaf.data_type()));
    let (values, nulls) = mask.map_err(bad)?.into_parts();
    Ok(if let Some(nulls) = nulls { &values & nulls.inner() } else { values })
}

/// A value of a column's type from its bytes.
fn scalar(leaf: &Leaf, value: &[u8]) -> Result<Scalar<ArrayRef>> {
    let fits = match leaf.kind() {
        Kind::Fixed(width) => value.len() == width,
        Kind::Bit => value.len() == 1,
        Kind::Bytes { .. } | Kind::View => true,
        Kind::Nothing | Kind::List { .. } | Kind::Nested { .. } => false,
    };
    let bad = || Error::invalid(format!("{} bytes are no value of a column of {}", value.len(), leaf.data_type()));
    if !fits {
        return Err(bad());
    }
    let mut one = Builder::new(leaf, 1);
    one.push(Some(value))?;
    one.finish().map(Scalar::new).map_err(|_| bad())
}
