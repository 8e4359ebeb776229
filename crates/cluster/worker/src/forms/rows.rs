//! Which columns of a row group readers of other hosts have rows selected of: a segment of one page beside these columns, whose popularity
//! is that of such questions. It gets replicas as other segments do, and who is to hold one makes the columns that it names.

use std::collections::BTreeSet;
use std::time::Duration;

use forebay_block_store::SegmentSpec;
use forebay_types::{Cell, CellSource, ObjectVersion, OperationId, Owner, PAGE_BYTES, PageRun, Result, SegmentId};

use super::Forms;

/// Columns that a page has room for behind their number.
const COLUMNS_MAX: usize = PAGE_BYTES as usize / size_of::<u32>() - 1;
/// What asks for columns that are ordered: no reader's operation.
const ORDERED: OperationId = OperationId(0);

impl Forms {
    /// An operation has asked for rows of columns of a row group that are all here and have so many bytes.
    pub(super) fn asked_for_rows(
        &self,
        operation: OperationId,
        source: &CellSource,
        (row_group, columns): (u32, &[u32]),
        (bytes, took): (u64, Duration),
    ) {
        let (Some((id, _)), Some(index)) = (source.rows(row_group), Cell::rows(row_group).index()) else { return };
        if let Err(error) = self.keep_rows(source.named(), id, columns) {
            tracing::debug!(key = %source.version().key, row_group, %error, "which columns are asked for together is not kept");
            return;
        }
        self.signals.popularity.learn(id, source.named(), index);
        self.signals.popularity.read(operation, id, 1, bytes, took);
    }

    /// The columns that a segment of this kind names here; none where it is not here.
    fn columns_of(&self, id: SegmentId) -> BTreeSet<u32> {
        let page = self.origin.store.pin_whole(id).map(|(pinned, _)| pinned.into_bytes());
        page.and_then(|page| columns_in(&page)).unwrap_or_default()
    }

    /// Whether a segment is a column that is named here with others, and goes when these are not named any more: by itself it may have its
    /// place elsewhere, where none of its rows are asked for.
    pub(crate) fn is_named(&self, version: &ObjectVersion, index: u32) -> bool {
        let Some(cell) = Cell::of_index(index).filter(|cell| !cell.is_rows()) else { return false };
        let rows = Cell::rows(cell.row_group).index().map(|rows| SegmentId::of(version, rows));
        rows.is_some_and(|rows| self.columns_of(rows).contains(&cell.column))
    }

    /// Keeps these columns beside those that are named, unless they are.
    fn keep_rows(&self, version: &ObjectVersion, id: SegmentId, columns: &[u32]) -> Result<()> {
        // One that replaces the page at a time.
        let _alone = self.rows.lock();
        let known = self.columns_of(id);
        if known.len() == COLUMNS_MAX || columns.iter().all(|column| known.contains(column)) {
            return Ok(());
        }
        let all: BTreeSet<u32> = known.iter().chain(columns).copied().collect();
        self.origin.store.free(id);
        let spec = SegmentSpec { id, bytes: PAGE_BYTES as u32, owner: Owner::Form, keep: false };
        let mut fill = self.origin.store.begin_fill(spec, PageRun::new(0, 1))?;
        fill.write(0, &page_of(&all))?;
        fill.finish()?;
        self.wishes.made_of(version, &[id]);
        Ok(())
    }

    /// Makes the columns that a page names which another worker has sent, as the coordinator wants them here, and then keeps that page; ready when
    /// it is there, or can't be.
    pub(crate) async fn order_rows(&self, version: ObjectVersion, row_group: u32, id: SegmentId, page: &[u8]) {
        let Some(columns) = columns_in(page) else { return };
        let place = |column: &u32| {
            let cell = Cell { row_group, column: *column };
            Some((cell, SegmentId::of(&version, cell.index().filter(|_| !cell.is_rows())?)))
        };
        let Some(cells) = columns.iter().map(place).collect::<Option<Vec<_>>>() else { return };
        // Of text they are made in one reading of the lines.
        if version.form().is_some() {
            cells.iter().for_each(|(cell, _)| self.wishes.asked(ORDERED, &version, *cell));
        }
        for (cell, id) in cells {
            self.order(version.clone(), cell, id).await;
            if self.origin.store.pin_whole(id).is_none() {
                let column = cell.column;
                tracing::debug!(key = %version.key, row_group, column, "a column can't be made here: its row group is selected of elsewhere");
                return;
            }
        }
        let columns: Vec<u32> = columns.into_iter().collect();
        if let Err(error) = self.keep_rows(&version, id, &columns) {
            tracing::debug!(key = %version.key, row_group, %error, "a row group's columns are here, and not what names them");
        }
    }
}

/// The number of columns, and each of them; what has no room is asked of who is asked for it.
fn page_of(columns: &BTreeSet<u32>) -> Vec<u8> {
    let count = columns.len().min(COLUMNS_MAX);
    let numbers = std::iter::once(count as u32).chain(columns.iter().copied().take(count));
    let mut page: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    page.resize(PAGE_BYTES as usize, 0);
    page
}

/// What a page names; none where it can't be one.
fn columns_in(page: &[u8]) -> Option<BTreeSet<u32>> {
    let mut numbers = page.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let count = usize::try_from(numbers.next()?).ok().filter(|count| (1..=COLUMNS_MAX).contains(count))?;
    let columns: BTreeSet<u32> = numbers.take(count).collect();
    (columns.len() == count).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_columns_and_nothing_else_is_one() {
        for columns in [BTreeSet::from([0]), BTreeSet::from([3, 16_000, 7]), (0..COLUMNS_MAX as u32).collect()] {
            let page = page_of(&columns);
            assert_eq!((page.len() as u64, columns_in(&page)), (PAGE_BYTES, Some(columns)));
        }
        let many: BTreeSet<u32> = (0..5000).collect();
        assert_eq!(columns_in(&page_of(&many)).map(|columns| columns.len()), Some(COLUMNS_MAX));
        let twice = [2u32, 5, 5].map(u32::to_le_bytes).concat();
        let short = [3u32, 5, 6].map(u32::to_le_bytes).concat();
        let wrong: [&[u8]; 6] = [&[], &[0; 4096], &[0xff; 4096], &[1, 0, 0], &twice, &short];
        for wrong in wrong {
            assert_eq!(columns_in(wrong), None, "{wrong:?}");
        }
    }
}
