//! From a sorted text to what psi is written from: each row's next one, and each position's row.

use forebay_types::Result;

use super::sort::suffix_array;
use crate::model::alphabet::END;
use crate::psi::{Column, PsiBytes, PsiWriter};

/// The text in suffix order: where psi comes from.
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) counts: Vec<u32>,
    pub(crate) psi: PsiBytes,
    /// For each position with the symbol that records begin with, in order, the row within that symbol's column.
    pub(crate) starts: Vec<u32>,
    /// The row of each position's suffix; the last is that of the end. Empty where nobody wanted it.
    pub(crate) inverse: Vec<u32>,
}

/// How often each symbol is there, and where its rows are.
fn layout(text: &[u8], symbols: usize) -> Result<(Vec<u32>, Vec<Column>)> {
    let mut counts = vec![0u32; symbols];
    counts[END as usize] = 1;
    text.iter().for_each(|symbol| counts[*symbol as usize] += 1);
    let columns = Column::layout(&counts).ok_or_else(too_large)?;
    Ok((counts, columns))
}

fn too_large() -> forebay_types::Error {
    forebay_types::Error::invalid("the text of a shard is at most 1 GiB; cut it into several shards")
}

/// Sorts `text`, whose records begin with `first`. Takes four bytes a symbol twice beside the text: the suffix array and its inverse.
pub(crate) fn sort_rows(text: &[u8], symbols: usize, first: u8) -> Result<Rows> {
    let (counts, columns) = layout(text, symbols)?;
    let array = suffix_array(text)?;
    let mut inverse = vec![0u32; text.len() + 1];
    inverse[text.len()] = columns[END as usize].start;
    for_each_row(&columns, |row, index| inverse[array[index] as usize] = row);
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
    let start = columns.get(first as usize).map_or(0, |column| column.start);
    let is_start = |position: &usize| first != END && text[*position] == first;
    let starts = (0..text.len()).filter(is_start).map(|position| inverse[position] - start).collect();
    Ok(Rows { columns, counts, psi, starts, inverse })
}

/// The same without the rows of positions, in four bytes a symbol beside the text and the symbol before each suffix: those that are
/// before the suffixes in order are psi's columns, read the other way round.
pub(crate) fn sort_lean(text: Vec<u8>, symbols: usize, first: u8) -> Result<Rows> {
    let (counts, columns) = layout(&text, symbols)?;
    let mut array = suffix_array(&text)?;
    let starts = starts_of(&text, &columns, &array, first);
    let before = |position: &i32| if *position == 0 { END } else { text[*position as usize - 1] };
    let symbols_before: Vec<u8> = array.iter().map(before).collect();
    let last = text.last().copied();
    drop(text);
    // Where the next row of each symbol's column goes. The array has been read: its room is psi's.
    let mut next: Vec<usize> = Vec::with_capacity(columns.len());
    let mut from = 0;
    for (symbol, column) in columns.iter().enumerate() {
        next.push(from);
        from += if symbol == END as usize { 0 } else { column.count as usize };
    }
    let mut begin = columns[END as usize].start;
    if let Some(last) = last {
        // The end is below all other suffixes.
        array[next[last as usize]] = columns[END as usize].start as i32;
        next[last as usize] += 1;
    }
    for_each_row(&columns, |row, index| match symbols_before[index] {
        END => begin = row,
        symbol => {
            let place = &mut next[symbol as usize];
            array[*place] = row as i32;
            *place += 1;
        }
    });
    drop(symbols_before);
    debug_assert_eq!(next.last().copied().unwrap_or(0), array.len(), "each row has its place");
    let mut writer = PsiWriter::new(&columns);
    writer.push(END, begin);
    let mut from = 0;
    for (symbol, column) in columns.iter().enumerate().skip(1) {
        let to = from + column.count as usize;
        array[from..to].iter().for_each(|row| writer.push(symbol as u8, *row as u32));
        from = to;
    }
    drop(array);
    let psi = writer.finish().ok_or_else(too_large)?;
    Ok(Rows { columns, counts, psi, starts, inverse: Vec::new() })
}

/// Calls with each row but that of the end, and its place in the suffix array.
fn for_each_row(columns: &[Column], mut call: impl FnMut(u32, usize)) {
    let mut index = 0;
    for column in &columns[1..] {
        for row in column.start..column.end() {
            call(row, index);
            index += 1;
        }
    }
}

/// The rows of the records' starts within their column, by record.
fn starts_of(text: &[u8], columns: &[Column], array: &[i32], first: u8) -> Vec<u32> {
    let positions: Vec<u32> = (0..text.len() as u32).filter(|position| text[*position as usize] == first).collect();
    let from: usize = columns.iter().take(first as usize).skip(1).map(|column| column.count as usize).sum();
    debug_assert_eq!(positions.len(), columns[first as usize].count as usize, "a row for each");
    let mut starts = vec![0; positions.len()];
    for (row, position) in (0..).zip(&array[from..from + positions.len()]) {
        starts[positions.partition_point(|start| start < &(*position as u32))] = row;
    }
    starts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn less_memory_gives_the_same_rows(text in prop::collection::vec(1u8..6, 0..400)) {
            let (with, lean) = (sort_rows(&text, 6, 1).unwrap(), sort_lean(text, 6, 1).unwrap());
            prop_assert_eq!(with.counts, lean.counts);
            prop_assert_eq!(with.columns, lean.columns);
            prop_assert_eq!(with.starts, lean.starts);
            prop_assert_eq!(with.psi.directory, lean.psi.directory);
            prop_assert_eq!(with.psi.payload, lean.psi.payload);
            prop_assert!(lean.inverse.is_empty());
        }
    }
}
