//! Columns to rows.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use forebay_types::{Error, Result};

use super::values::{Values, validity, view};
use crate::cell::transpose_bits;
use crate::layout::RowLayout;
use crate::metadata::SEGMENT_BYTES;
use crate::schema::{Item, Kind};

/// Rows of one pass over the columns: their bytes stay in the first cache.
const TILE: usize = 128;

/// Where rows end in a cell's bytes.
pub(super) enum RowEnds {
    Stride(usize),
    Offsets(Vec<u32>),
}

struct Column {
    values: Values,
    validity: Option<Vec<u8>>,
}

/// The buffers of a cell of rows: offsets (empty where all rows have the same size) and rows. `spare` is the memory of such
/// rows of the same layout, or empty: memory that is new costs as much as writing the rows.
pub(super) fn encode_rows(
    layout: &RowLayout,
    rows: usize,
    arrays: &[(&ArrayRef, Kind)],
    spare: Vec<u8>,
) -> Result<(Vec<Buffer>, RowEnds)> {
    assert_eq!(arrays.len(), layout.places.len(), "each column has its place in a row");
    let columns = arrays.iter().map(|(array, kind)| Column {
        values: Values::of(array, *kind),
        // Arrow's null type has no validity of its own.
        validity: if *kind == Kind::Nothing { Some(vec![0; array.len().div_ceil(8)]) } else { validity(array) },
    });
    let columns = columns.collect::<Vec<_>>();
    let offsets = offsets(layout, rows, &columns)?;
    let start = |row: usize| if offsets.is_empty() { row * layout.fixed_bytes } else { offsets[row] as usize };
    let mut out = zeroed(spare, start(rows), layout.variable);
    let mut tails = vec![layout.fixed_bytes; if layout.variable { rows } else { 0 }];
    for first in (0..rows).step_by(TILE) {
        let tile = first..rows.min(first + TILE);
        write_bitmaps(&columns, tile.clone(), &start, &mut out);
        for (column, place) in columns.iter().zip(&layout.places) {
            let rows = tile.clone().filter(|&row| is_valid(column, row));
            match &column.values {
                Values::Nothing => {}
                Values::Bit(bits) => {
                    tile.clone()
                        .for_each(|row| out[start(row) + place.offset] = (is_valid(column, row) && bits.value(row)).into());
                }
                Values::Fixed { bytes, width } => match width {
                    4 => copy::<4>(bytes, column, tile.clone(), |row| start(row) + place.offset, &mut out),
                    8 => copy::<8>(bytes, column, tile.clone(), |row| start(row) + place.offset, &mut out),
                    16 => copy::<16>(bytes, column, tile.clone(), |row| start(row) + place.offset, &mut out),
                    &width => tile.clone().for_each(|row| {
                        let to = &mut out[start(row) + place.offset..][..width];
                        if is_valid(column, row) { to.copy_from_slice(&bytes[row * width..][..width]) } else { to.fill(0) }
                    }),
                },
                values => rows.for_each(|row| {
                    let (length, tail) = (variable_bytes(values, row), tails[row]);
                    let at = start(row);
                    out[at + place.offset..][..4].copy_from_slice(&(tail as u32).to_le_bytes());
                    out[at + place.offset + 4..][..4].copy_from_slice(&(length as u32).to_le_bytes());
                    write_variable(values, row, &mut out[at + tail..][..length]);
                    tails[row] += length;
                }),
            }
        }
        if let Some(size_at) = layout.size_at {
            for row in tile {
                let size = (start(row + 1) - start(row)) as u32;
                out[start(row) + size_at..][..4].copy_from_slice(&size.to_le_bytes());
            }
        }
    }
    let is_within = |(row, tail): (usize, &usize)| *tail <= start(row + 1) - start(row);
    debug_assert!(tails.iter().enumerate().all(is_within), "no value is behind its row's end");
    let ends = if layout.variable { RowEnds::Offsets(offsets.clone()) } else { RowEnds::Stride(layout.fixed_bytes) };
    Ok((vec![Buffer::from_vec(offsets), Buffer::from_vec(out)], ends))
}

/// So many bytes, zeros where nothing will be written. Rows of one size have their padding, and nothing else that is left
/// alone, at the same places each time, so what `spare` has there are zeros already.
fn zeroed(mut spare: Vec<u8>, bytes: usize, variable: bool) -> Vec<u8> {
    if spare.capacity() < bytes {
        return vec![0; bytes];
    }
    if variable {
        spare.clear();
    }
    spare.resize(bytes, 0);
    spare
}

/// Values of `W` bytes to their rows, zeros where there is none: without a branch that nulls here and there would mislead.
/// A plain loop: what iterators would call for each value is not inlined across codegen units.
fn copy<const W: usize>(bytes: &Buffer, column: &Column, tile: Range<usize>, to: impl Fn(usize) -> usize, out: &mut [u8]) {
    let (values, _) = bytes.as_slice().as_chunks::<W>();
    let Some(bits) = &column.validity else {
        for row in tile {
            out[to(row)..][..W].copy_from_slice(&values[row]);
        }
        return;
    };
    for row in tile {
        let keep = 0u8.wrapping_sub(bits[row / 8] >> (row % 8) & 1);
        let mut value = values[row];
        for byte in &mut value {
            *byte &= keep;
        }
        out[to(row)..][..W].copy_from_slice(&value);
    }
}

#[inline]
fn is_valid(column: &Column, row: usize) -> bool {
    if let Some(bits) = &column.validity { bits[row / 8] >> (row % 8) & 1 == 1 } else { true }
}

/// Where rows of different sizes begin, and where the last one ends; nothing for rows of one size.
fn offsets(layout: &RowLayout, rows: usize, columns: &[Column]) -> Result<Vec<u32>> {
    let too_large = |row: usize, bytes: usize| {
        Error::invalid(format!(
            "row {row} of a row group takes its cell to {bytes} bytes; put long columns in groups of their own"
        ))
    };
    if !layout.variable {
        return match rows * layout.fixed_bytes {
            bytes if layout.fixed_bytes as u64 > SEGMENT_BYTES || bytes > u32::MAX as usize => Err(too_large(0, bytes)),
            _ => Ok(Vec::new()),
        };
    }
    let mut out = Vec::with_capacity(rows + 1);
    out.push(0);
    let mut end = 0;
    for row in 0..rows {
        let variable = columns.iter().filter(|column| is_valid(column, row)).map(|column| variable_bytes(&column.values, row));
        let bytes = (layout.fixed_bytes + variable.sum::<usize>()).next_multiple_of(layout.align);
        end += bytes;
        if bytes as u64 > SEGMENT_BYTES || end > u32::MAX as usize {
            return Err(too_large(row, end));
        }
        out.push(end as u32);
    }
    Ok(out)
}

/// Sets the rows' bitmaps eight columns and eight rows at a time.
fn write_bitmaps(columns: &[Column], tile: Range<usize>, start: &impl Fn(usize) -> usize, out: &mut [u8]) {
    for (byte, columns) in columns.chunks(8).enumerate() {
        for first in tile.clone().step_by(8) {
            let mut square = [0; 8];
            for (bits, column) in square.iter_mut().zip(columns) {
                *bits = column.validity.as_ref().map_or(0xff, |validity| validity[first / 8]);
            }
            let square = transpose_bits(u64::from_le_bytes(square)).to_le_bytes();
            for (row, bits) in (first..tile.end).zip(square) {
                out[start(row) + byte] = bits;
            }
        }
    }
}

/// Bytes of a value in the variable area.
fn variable_bytes(values: &Values, row: usize) -> usize {
    match values {
        Values::Bytes { starts, .. } => starts.range(row).len(),
        Values::View(array) => view(array, row).len(),
        Values::List { starts, item, .. } => {
            let count = starts.range(row).len();
            count * item.row_width() + if item.nullable { count.div_ceil(8) } else { 0 }
        }
        _ => 0,
    }
}

fn write_variable(values: &Values, row: usize, out: &mut [u8]) {
    match values {
        Values::Bytes { starts, data } => out.copy_from_slice(&data[starts.range(row)]),
        Values::View(array) => out.copy_from_slice(view(array, row)),
        Values::List { starts, items, nulls, item } => {
            let range = starts.range(row);
            let (bitmap, out) = out.split_at_mut(if item.nullable { range.len().div_ceil(8) } else { 0 });
            let is_valid = |index: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index));
            if item.nullable {
                range
                    .clone()
                    .enumerate()
                    .filter(|(_, index)| is_valid(*index))
                    .for_each(|(at, _)| bitmap[at / 8] |= 1 << (at % 8));
            }
            write_items(items, range, *item, out);
        }
        _ => {}
    }
}

fn write_items(items: &Values, range: Range<usize>, item: Item, out: &mut [u8]) {
    match items {
        Values::Bit(bits) => range.zip(out).for_each(|(index, out)| *out = bits.value(index).into()),
        Values::Fixed { bytes, .. } => out.copy_from_slice(&bytes[range.start * item.width..range.end * item.width]),
        _ => unreachable!("lists are of fixed-width values"),
    }
}
