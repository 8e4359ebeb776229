//! Decoded columns as segments: their names, of a Parquet file's and of a text file's in the form that a query takes it for; what is asked
//! of their rows; and how long a list may be that comes from outside.

mod at_most;
mod condition;
mod text;

use std::fmt;

pub use at_most::at_most;
pub use condition::{Comparison, ROW_TESTS_MAX, RowTest};
pub use text::{CellSource, CsvLines, TEXT_CHUNK_BYTES, TextForm, TextLines, text_chunk};

/// One column of one row group of a Parquet file, or of one chunk of a text file, in the table form: a segment that is made
/// from the object's bytes and is on no shared storage. Its id is [`crate::SegmentId::of`] the object's version, of text
/// [in a form](crate::ObjectVersion::in_form), and [`Cell::index`], so that it belongs to that version and no other, and is placed,
/// routed, counted and evicted as any segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// The row group's number in the file; the chunk's of text.
    pub row_group: u32,
    /// The column's number among the leaves of the file's schema; of text among its columns.
    pub column: u32,
}

/// Set in the index of a cell. No object has so many segments: they would be 128 PiB.
const CELL: u32 = 1 << 31;
/// How cells are laid out, 0 to 3. Another layout takes another number, so that two versions of the program never read
/// each other's.
const LAYOUT: u32 = 0;
const LAYOUT_SHIFT: u32 = 29;
const ROW_GROUP_BITS: u32 = 15;
const COLUMN_BITS: u32 = 14;
/// No column of a file that has cells: what [`Cell::rows`] has in its place.
const COLUMN_MAX: u32 = (1 << COLUMN_BITS) - 1;

impl Cell {
    /// The index of the cell's segment; none for a file with more than 32,768 row groups or 16,384 columns.
    pub fn index(self) -> Option<u32> {
        let fits = self.row_group < 1 << ROW_GROUP_BITS && self.column < 1 << COLUMN_BITS;
        fits.then_some(CELL | LAYOUT << LAYOUT_SHIFT | self.row_group << COLUMN_BITS | self.column)
    }

    /// What stands for the columns of a row group or chunk that are asked for together by who reads none in place: one worker has to hold
    /// them all. Its segment says which they are, and is no column.
    pub fn rows(row_group: u32) -> Self {
        Self { row_group, column: COLUMN_MAX }
    }

    /// Whether it is that.
    pub fn is_rows(self) -> bool {
        self.column == COLUMN_MAX
    }

    /// The cell of a segment's index; none for a segment of the object's own bytes.
    pub fn of_index(index: u32) -> Option<Self> {
        let is_cell = index & CELL != 0 && index >> LAYOUT_SHIFT & 3 == LAYOUT;
        let row_group = index >> COLUMN_BITS & ((1 << ROW_GROUP_BITS) - 1);
        is_cell.then_some(Self { row_group, column: index & ((1 << COLUMN_BITS) - 1) })
    }
}

/// As people are shown it.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_rows() {
            true => write!(f, "rows {}", self.row_group),
            false => write!(f, "rows {} column {}", self.row_group, self.column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cell;

    #[test]
    fn cells_have_indices_of_their_own() {
        for cell in
            [Cell { row_group: 0, column: 0 }, Cell { row_group: 32_767, column: 16_383 }, Cell { row_group: 5, column: 7 }]
        {
            assert_eq!(Cell::of_index(cell.index().unwrap()), Some(cell));
        }
        assert_eq!(Cell::of_index(Cell::rows(5).index().unwrap()).filter(|cell| cell.is_rows()), Some(Cell::rows(5)));
        let shown = [Cell { row_group: 5, column: 7 }, Cell::rows(5)].map(|cell| cell.to_string());
        assert_eq!(shown, ["rows 5 column 7", "rows 5"]);
        assert_eq!((Cell { row_group: 32_768, column: 0 }).index(), None);
        assert_eq!((Cell { row_group: 0, column: 16_384 }).index(), None);
        assert_eq!(Cell::of_index(7), None, "a segment of the object's own");
    }
}
