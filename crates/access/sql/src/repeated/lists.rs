//! Lists whose elements become rows. The engine makes all rows of one list at once, however long it is, and of lists within lists all of a batch:
//! a long list is cut into several rows, with what stands beside it in each.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::physical_plan::unnest::ListUnnest;

use super::bound::{Bound, Parts};
use crate::functions::elements_within;

/// The same rows for `unnest`, which makes no more of a part at once than a batch, or than there is memory for.
pub(super) fn parts(batch: RecordBatch, lists: &[ListUnnest], bound: Bound) -> Result<Parts> {
    let columns: Arc<[usize]> = lists.iter().map(|list| list.index_in_input_schema).collect();
    let deepest = lists.iter().map(|list| list.depth).max().unwrap_or(0);
    // A list that is unnested less deeply than others is repeated for their elements first.
    let is_repeated = |column: &usize| match columns.contains(column) {
        true => lists.iter().any(|list| list.index_in_input_schema == *column && list.depth < deepest),
        false => true,
    };
    let beside: Vec<usize> = (0..batch.num_columns()).filter(is_repeated).collect();
    let width = bound.width(&batch, &beside);
    bound.check(width)?;
    let is_cut = |column: &usize| matches!(batch.column(*column).data_type(), DataType::List(_) | DataType::LargeList(_));
    if deepest == 1 && columns.iter().all(is_cut) {
        return Ok(cut(batch, columns, bound.rows));
    }
    let mut parts = Vec::new();
    halve(batch, &columns, width, bound, &mut parts)?;
    Ok(Box::new(parts.into_iter().map(Ok)))
}

/// Rows, in as many parts as it takes for each to fit.
fn halve(batch: RecordBatch, lists: &[usize], width: u64, bound: Bound, parts: &mut Vec<RecordBatch>) -> Result<()> {
    let elements = lists.iter().map(|list| elements_within(batch.column(*list).as_ref())).fold(0, u64::saturating_add);
    let (rows, made) = (batch.num_rows(), elements.saturating_add(batch.num_rows() as u64));
    if rows > 1 && !bound.fits(width, made) {
        let half = rows / 2;
        halve(batch.slice(0, half), lists, width, bound, parts)?;
        return halve(batch.slice(half, rows - half), lists, width, bound, parts);
    }
    bound.check_made(width, made)?;
    parts.push(batch);
    Ok(())
}

/// Rows whose lists are no longer than a batch as they are, each longer one as several rows.
fn cut(batch: RecordBatch, lists: Arc<[usize]>, at_once: usize) -> Parts {
    assert!(at_once > 0, "a batch has rows");
    // From which row on, how many of them, and the length of a list that is cut.
    let (mut spans, mut from) = (Vec::new(), 0);
    for row in 0..batch.num_rows() {
        let longest = lists.iter().map(|list| length(batch.column(*list), row)).max().unwrap_or(0);
        if longest > at_once {
            spans.extend([(from, row - from, 0), (row, 1, longest)]);
            from = row + 1;
        }
    }
    spans.push((from, batch.num_rows() - from, 0));
    let parts = spans.into_iter().filter(|(_, count, _)| *count > 0).flat_map(move |(row, count, length)| {
        let (batch, lists) = (batch.clone(), Arc::clone(&lists));
        (0..length.max(1)).step_by(at_once).map(move |element| match length {
            0 => Ok(batch.slice(row, count)),
            _ => part(&batch, &lists, row, element, at_once),
        })
    });
    Box::new(parts)
}

/// Elements of a row's list.
fn length(lists: &ArrayRef, row: usize) -> usize {
    match lists.data_type() {
        _ if lists.is_null(row) => 0,
        DataType::List(_) => lists.as_list::<i32>().value_length(row) as usize,
        _ => lists.as_list::<i64>().value_length(row) as usize,
    }
}

/// A row with some elements of its lists, from one on.
fn part(batch: &RecordBatch, lists: &[usize], row: usize, element: usize, at_once: usize) -> Result<RecordBatch> {
    let columns = batch.columns().iter().enumerate().map(|(column, values)| match values.data_type() {
        DataType::List(of) if lists.contains(&column) => elements(values.as_list::<i32>(), of, row, element, at_once),
        DataType::LargeList(of) if lists.contains(&column) => elements(values.as_list::<i64>(), of, row, element, at_once),
        _ => values.slice(row, 1),
    });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

/// Some elements of a list as one; none where it is null or has no more, which is the same beside one that has.
fn elements<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    of: &FieldRef,
    row: usize,
    element: usize,
    at_once: usize,
) -> ArrayRef {
    let offsets = lists.value_offsets();
    let (start, end) = (offsets[row].as_usize(), offsets[row + 1].as_usize());
    let end = if lists.is_null(row) { start } else { end };
    let from = start.saturating_add(element).min(end);
    let count = at_once.min(end - from);
    let some = lists.values().slice(from, count);
    Arc::new(GenericListArray::<O>::new(Arc::clone(of), OffsetBuffer::from_lengths([count]), some, None))
}
