//! Where rows begin and end, of one size or many: checked once, so that the loops over them need not check again.

use std::ops::Range;

/// Where a run of rows begins and ends in bytes that hold all of them.
pub(crate) trait Starts: Copy {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// The bytes of row `row` of the run.
    fn range(&self, row: usize) -> Range<usize>;
    /// The row's number in its cell, for errors.
    fn number(&self, row: usize) -> usize;

    /// Whether all rows have the same size, so that the first row that is outside can be had without a look at each.
    const UNIFORM: bool = false;

    /// The first row that is not in so many bytes, or has fewer than `row_bytes_min`.
    fn outside(&self, bytes: usize, row_bytes_min: usize) -> Option<usize> {
        (0..self.rows()).find(|&row| {
            let range = self.range(row);
            range.end > bytes || range.start > range.end || range.end - range.start < row_bytes_min
        })
    }
}

/// Rows of one size, side by side.
#[derive(Clone, Copy)]
pub(crate) struct Strided {
    pub first: usize,
    pub rows: usize,
    pub stride: usize,
}

impl Starts for Strided {
    const UNIFORM: bool = true;

    #[inline]
    fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        row * self.stride..(row + 1) * self.stride
    }

    fn number(&self, row: usize) -> usize {
        self.first + row
    }

    fn outside(&self, bytes: usize, row_bytes_min: usize) -> Option<usize> {
        let whole = if self.stride < row_bytes_min { 0 } else { bytes / self.stride.max(1) };
        (whole < self.rows).then_some(whole)
    }
}

/// Rows of different sizes, side by side: `offsets` has one more than rows, counted from `base`.
#[derive(Clone, Copy)]
pub(crate) struct Offset<'a> {
    pub first: usize,
    pub base: usize,
    pub offsets: &'a [u32],
}

impl Starts for Offset<'_> {
    #[inline]
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize - self.base..self.offsets[row + 1] as usize - self.base
    }

    fn number(&self, row: usize) -> usize {
        self.first + row
    }
}

/// Some rows of a run, by their numbers in the cell.
#[derive(Clone, Copy)]
pub(crate) struct Picked<'a, S> {
    pub run: S,
    pub first: usize,
    pub rows: &'a [u32],
}

impl<S: Starts> Starts for Picked<'_, S> {
    #[inline]
    fn rows(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        self.run.range(self.rows[row] as usize - self.first)
    }

    fn number(&self, row: usize) -> usize {
        self.rows[row] as usize
    }

    fn outside(&self, bytes: usize, row_bytes_min: usize) -> Option<usize> {
        if S::UNIFORM {
            // The rows ascend.
            let last = self.rows.last()?;
            let whole = self.run.outside(bytes, row_bytes_min).unwrap_or(self.run.rows());
            return ((*last as usize - self.first) >= whole)
                .then(|| self.rows.partition_point(|&row| (row as usize) - self.first < whole));
        }
        (0..self.rows()).find(|&row| {
            let range = self.range(row);
            range.end > bytes || range.start > range.end || range.end - range.start < row_bytes_min
        })
    }
}

/// A run whose rows are known to lie in the bytes and to have at least so many.
pub(crate) struct Checked<'a, S> {
    bytes: &'a [u8],
    pub run: S,
    pub row_bytes_min: usize,
}

impl<'a, S: Starts> Checked<'a, S> {
    /// Checks every row; the number of the first that is not as it should be is the error.
    pub fn new(bytes: &'a [u8], run: S, row_bytes_min: usize) -> Result<Self, usize> {
        match run.outside(bytes.len(), row_bytes_min) {
            None => Ok(Self { bytes, run, row_bytes_min }),
            Some(row) => Err(run.number(row)),
        }
    }

    /// The bytes of a row.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.run.range(row)]
    }

    /// Where a row begins.
    #[inline]
    pub fn start(&self, row: usize) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.run.range(row).start)
    }

    /// A byte of a row.
    #[inline]
    pub fn byte(&self, row: usize, at: usize) -> u8 {
        self.bytes[self.run.range(row).start + at]
    }
}
