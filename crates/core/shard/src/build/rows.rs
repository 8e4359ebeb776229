//! From a sorted text to what psi is written from: each row's next one, and each position's row.

use forebay_types::Result;

use super::sort::suffix_array;
use crate::model::alphabet::END;
use crate::psi::{Column, PsiBytes, PsiWriter};

/// The text in suffix order: where psi comes from, and the row of each position.
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) counts: Vec<u32>,
    pub(crate) psi: PsiBytes,
    /// The row of each position's suffix; the last is that of the end.
    pub(crate) inverse: Vec<u32>,
}

/// Sorts `text`. Takes four bytes a symbol twice beside the text: the suffix array and its inverse.
pub(crate) fn sort_rows(text: &[u8], symbols: usize) -> Result<Rows> {
    let mut counts = vec![0u32; symbols];
    counts[END as usize] = 1;
    text.iter().for_each(|symbol| counts[*symbol as usize] += 1);
    let too_large = || forebay_types::Error::invalid("the text of a shard is at most 1 GiB; cut it into several shards");
    let columns = Column::layout(&counts).ok_or_else(too_large)?;
    let array = suffix_array(text)?;
    let mut inverse = vec![0u32; text.len() + 1];
    inverse[text.len()] = columns[END as usize].start;
    let mut from = 0;
    for column in &columns[1..] {
        let to = from + column.count as usize;
        for (row, position) in (column.start..).zip(&array[from..to]) {
            inverse[*position as usize] = row;
        }
        from = to;
    }
    assert_eq!(from, array.len(), "each suffix of the text has a row");
    let mut writer = PsiWriter::new(&columns);
    writer.push(END, inverse[0]);
    let mut from = 0;
    for (symbol, column) in columns.iter().enumerate().skip(1) {
        let to = from + column.count as usize;
        for position in &array[from..to] {
            writer.push(symbol as u8, inverse[*position as usize + 1]);
        }
        from = to;
    }
    drop(array);
    let psi = writer.finish().ok_or_else(too_large)?;
    Ok(Rows { columns, counts, psi, inverse })
}
