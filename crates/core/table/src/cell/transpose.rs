//! Fixed-width values of rows into columns: 4x4 values of 8 bytes, or 8x8 of 4, at a time in AVX2's registers, one by one
//! where the processor lacks it or too few neighbours are wanted.
//!
//! Non-temporal stores are no help: two dozen output streams are more than a processor's write-combining buffers.

#![allow(unsafe_code, reason = "unaligned vector loads, and writes into memory that is not initialised yet")]

use std::ops::Range;

use arrow_buffer::{Buffer, MutableBuffer};

use super::starts::{Checked, Starts};

/// Rows of one pass over the columns: their bytes stay in the first cache.
const TILE: usize = 64;
/// Bytes of a vector.
const VECTOR: usize = 32;

/// A wanted column: its number, and where its values stand in a row.
pub(super) struct FixedColumn {
    pub column: usize,
    pub offset: usize,
    pub width: usize,
}

/// What is done for each tile.
enum Task {
    /// One column.
    Scalar { offset: usize, width: usize, out: usize },
    /// Up to four columns of 8 bytes, or eight of 4, in the vector at `offset`; `outs` has a column for each wanted lane.
    Vector { offset: usize, width: usize, outs: Vec<(usize, usize)> },
}

/// The values of the wanted columns, with the columns' numbers. Before each tile of rows, which begins at a multiple of 8,
/// `before` may look at them too: their bytes are about to be used.
pub(super) fn transpose<S: Starts>(
    rows: &Checked<'_, S>,
    mut columns: Vec<FixedColumn>,
    mut before: impl FnMut(Range<usize>),
) -> Vec<(usize, Buffer)> {
    columns.sort_by_key(|column| column.offset);
    assert!(columns.iter().all(|column| column.offset + column.width <= rows.row_bytes_min), "a value outside of its row");
    let count = rows.run.rows();
    let mut buffers = columns.iter().map(|column| MutableBuffer::with_capacity(count * column.width)).collect::<Vec<_>>();
    let outs = buffers.iter_mut().map(MutableBuffer::as_mut_ptr).collect::<Vec<_>>();
    let tasks = tasks(&columns, rows.row_bytes_min, vectors());
    for first in (0..count).step_by(TILE) {
        let tile = first..count.min(first + TILE);
        let mut next = tile.end..count.min(tile.end + TILE);
        let share = next.len().div_ceil(tasks.len() + 1);
        prefetch(rows, next.by_ref().take(share));
        before(tile.clone());
        for task in &tasks {
            prefetch(rows, next.by_ref().take(share));
            // SAFETY: `Checked` has checked that every row lies in its bytes and has `row_bytes_min` of them, and every
            // column ends before that; `outs[i]` has room for `count` values of column `i`'s width and `tile` is within
            // `count`. Vector tasks are made only where AVX2 is there, and their vector lies within `row_bytes_min`.
            unsafe { run(task, rows, tile.clone(), &outs) };
        }
    }
    for (buffer, column) in buffers.iter_mut().zip(&columns) {
        // SAFETY: each column is in exactly one task, and the tiles cover all rows, so all values have been written.
        unsafe { buffer.set_len(count * column.width) };
    }
    columns.into_iter().zip(buffers).map(|(column, buffer)| (column.column, buffer.into())).collect()
}

/// Asks for the bytes of rows that come next: a tile is read in many short strides, which the processor does not foresee.
/// A few rows at a time, since only about a dozen lines can be on their way at once.
fn prefetch<S: Starts>(rows: &Checked<'_, S>, next: impl Iterator<Item = usize>) {
    #[cfg(target_arch = "x86_64")]
    for row in next {
        for at in (0..rows.row_bytes_min).step_by(64) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing and may be given any address; this one is within the row.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(rows.start(row).wrapping_add(at).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (rows, next);
}

fn vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Puts columns that stand in one vector together, where at least two are wanted.
fn tasks(columns: &[FixedColumn], row_bytes_min: usize, vectors: bool) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut next = 0;
    while let Some(first) = columns.get(next) {
        let width = first.width;
        // The vector begins at the column, or earlier where the row would end within it.
        let offset = first.offset.min(row_bytes_min.saturating_sub(VECTOR));
        let lanes = columns[next..]
            .iter()
            .take_while(|column| {
                column.width == width && (column.offset - offset) % width == 0 && column.offset + width <= offset + VECTOR
            })
            .count();
        if vectors && matches!(width, 4 | 8) && lanes >= 2 && row_bytes_min >= VECTOR {
            let outs = (next..next + lanes).map(|out| ((columns[out].offset - offset) / width, out)).collect();
            tasks.push(Task::Vector { offset, width, outs });
            next += lanes;
        } else {
            tasks.push(Task::Scalar { offset: first.offset, width, out: next });
            next += 1;
        }
    }
    tasks
}

/// # Safety
/// As at the call in [`transpose`].
unsafe fn run<S: Starts>(task: &Task, rows: &Checked<'_, S>, tile: Range<usize>, outs: &[*mut u8]) {
    // SAFETY: the caller's promises are those of each of these.
    unsafe {
        match task {
            Task::Scalar { offset, width, out } => one(rows, tile, *offset, *width, outs[*out]),
            #[cfg(target_arch = "x86_64")]
            Task::Vector { offset, width: 8, outs: lanes } => {
                let mut to = [std::ptr::null_mut(); 4];
                lanes.iter().for_each(|&(lane, out)| to[lane] = outs[out]);
                let done = avx2::quads(rows, tile.clone(), *offset, &to);
                for &(lane, out) in lanes {
                    one(rows, done..tile.end, offset + 8 * lane, 8, outs[out]);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Task::Vector { offset, outs: lanes, .. } => {
                let mut to = [std::ptr::null_mut(); 8];
                lanes.iter().for_each(|&(lane, out)| to[lane] = outs[out]);
                let done = avx2::octets(rows, tile.clone(), *offset, &to);
                for &(lane, out) in lanes {
                    one(rows, done..tile.end, offset + 4 * lane, 4, outs[out]);
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            Task::Vector { .. } => unreachable!("no vectors on this processor"),
        }
    }
}

/// # Safety
/// A value of `width` bytes is at `offset` of each row of `tile`, and `out` has room for the values up to the tile's end.
unsafe fn one<S: Starts>(rows: &Checked<'_, S>, tile: Range<usize>, offset: usize, width: usize, out: *mut u8) {
    // SAFETY: the same promises.
    unsafe {
        match width {
            1 => fixed::<S, 1>(rows, tile, offset, out),
            2 => fixed::<S, 2>(rows, tile, offset, out),
            4 => fixed::<S, 4>(rows, tile, offset, out),
            8 => fixed::<S, 8>(rows, tile, offset, out),
            16 => fixed::<S, 16>(rows, tile, offset, out),
            32 => fixed::<S, 32>(rows, tile, offset, out),
            _ => {
                for row in tile {
                    std::ptr::copy_nonoverlapping(rows.start(row).add(offset), out.add(row * width), width);
                }
            }
        }
    }
}

/// # Safety
/// As [`one`], for `W` bytes.
unsafe fn fixed<S: Starts, const W: usize>(rows: &Checked<'_, S>, tile: Range<usize>, offset: usize, out: *mut u8) {
    for row in tile {
        // SAFETY: both ends are in bounds by the caller's promise, and `out` is memory of its own.
        unsafe { std::ptr::copy_nonoverlapping(rows.start(row).add(offset), out.add(row * W), W) };
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::super::starts::{Checked, Starts};

    /// Transposes four rows at a time; returns the first row that is left over.
    ///
    /// # Safety
    /// AVX2 is there; 32 bytes are at `offset` of each row; each `outs` that is not null has room up to the tile's end.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn quads<S: Starts>(
        rows: &Checked<'_, S>,
        tile: Range<usize>,
        offset: usize,
        outs: &[*mut u8; 4],
    ) -> usize {
        let mut row = tile.start;
        while row + 4 <= tile.end {
            // SAFETY: rows `row..row + 4` are within the tile.
            let load = |at: usize| unsafe { _mm256_loadu_si256(rows.start(row + at).add(offset).cast()) };
            let (r0, r1, r2, r3) = (load(0), load(1), load(2), load(3));
            let (even_low, odd_low) = (_mm256_unpacklo_epi64(r0, r1), _mm256_unpackhi_epi64(r0, r1));
            let (even_high, odd_high) = (_mm256_unpacklo_epi64(r2, r3), _mm256_unpackhi_epi64(r2, r3));
            let columns = [
                _mm256_permute2x128_si256::<0x20>(even_low, even_high),
                _mm256_permute2x128_si256::<0x20>(odd_low, odd_high),
                _mm256_permute2x128_si256::<0x31>(even_low, even_high),
                _mm256_permute2x128_si256::<0x31>(odd_low, odd_high),
            ];
            for lane in 0..4 {
                if !outs[lane].is_null() {
                    // SAFETY: four values of 8 bytes from `row` on end within the tile.
                    unsafe { _mm256_storeu_si256(outs[lane].add(row * 8).cast(), columns[lane]) };
                }
            }
            row += 4;
        }
        row
    }

    /// Transposes eight rows at a time; returns the first row that is left over.
    ///
    /// # Safety
    /// As [`quads`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn octets<S: Starts>(
        rows: &Checked<'_, S>,
        tile: Range<usize>,
        offset: usize,
        outs: &[*mut u8; 8],
    ) -> usize {
        let mut row = tile.start;
        while row + 8 <= tile.end {
            // SAFETY: rows `row..row + 8` are within the tile.
            let load = |at: usize| unsafe { _mm256_loadu_si256(rows.start(row + at).add(offset).cast()) };
            // Pairs of rows, then fours, then eights.
            let pair = |a, b| (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (a0, a1) = pair(load(0), load(1));
            let (b0, b1) = pair(load(2), load(3));
            let (c0, c1) = pair(load(4), load(5));
            let (d0, d1) = pair(load(6), load(7));
            let four = |a, b| (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
            let (low0, low1) = four(a0, b0);
            let (low2, low3) = four(a1, b1);
            let (high0, high1) = four(c0, d0);
            let (high2, high3) = four(c1, d1);
            let columns = [
                _mm256_permute2x128_si256::<0x20>(low0, high0),
                _mm256_permute2x128_si256::<0x20>(low1, high1),
                _mm256_permute2x128_si256::<0x20>(low2, high2),
                _mm256_permute2x128_si256::<0x20>(low3, high3),
                _mm256_permute2x128_si256::<0x31>(low0, high0),
                _mm256_permute2x128_si256::<0x31>(low1, high1),
                _mm256_permute2x128_si256::<0x31>(low2, high2),
                _mm256_permute2x128_si256::<0x31>(low3, high3),
            ];
            for lane in 0..8 {
                if !outs[lane].is_null() {
                    // SAFETY: eight values of 4 bytes from `row` on end within the tile.
                    unsafe { _mm256_storeu_si256(outs[lane].add(row * 4).cast(), columns[lane]) };
                }
            }
            row += 8;
        }
        row
    }
}
