//! Footers of Parquet files, looked at as they come and before the engine has them: some fifty bytes of one can end the process.

use std::collections::HashMap;
use std::ops::Range;

use forebay_table::{PARQUET_TAIL_BYTES, PageFault, check_parquet_footer, parquet_footer_bytes};
use object_store::path::Path;
use parking_lot::Mutex;

/// Where the footers of files are of which the ends were read without them: the engine reads them next, and nothing beside.
#[derive(Debug, Default)]
pub(super) struct Footers(Mutex<HashMap<Path, Range<u64>>>);

impl Footers {
    /// Looks at bytes of a file of `size` bytes, where that is known. What is no end of a Parquet file is none of its matters.
    pub(super) fn look(&self, path: &Path, range: &Range<u64>, size: Option<u64>, bytes: &[u8]) -> Result<(), PageFault> {
        if self.0.lock().get(path) == Some(range) {
            return check_parquet_footer(bytes);
        }
        if size.is_some_and(|size| size != range.end) {
            return Ok(());
        }
        let Some((before, tail)) = bytes.split_last_chunk() else { return Ok(()) };
        let Some(length) = parquet_footer_bytes(tail) else { return Ok(()) };
        if let Some(start) = before.len().checked_sub(length as usize) {
            return check_parquet_footer(&before[start..]);
        }
        let end = range.end.saturating_sub(PARQUET_TAIL_BYTES as u64);
        if let Some(start) = end.checked_sub(length.into()) {
            self.0.lock().insert(path.clone(), start..end);
        }
        Ok(())
    }
}

/// Whether a range may be the footer of a file of `size` bytes, or its end: no values are there.
pub(super) fn may_end(range: &Range<u64>, size: u64) -> bool {
    range.end.saturating_add(PARQUET_TAIL_BYTES as u64) >= size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_is_looked_at_with_the_end_of_its_file_and_by_itself() {
        // A version, a schema without a field, no rows, and no row group; and one that says that it has 2^31 - 1.
        let head: [u8; 10] = [0x15, 2, 0x19, 0x1c, 0x48, 0, 0, 0x16, 0, 0x19];
        let honest = [&head[..], &[0x0c, 0]].concat();
        let lies = [&head[..], &[0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0]].concat();
        for (footer, is_fine) in [(honest, true), (lies, false)] {
            let file = [b"PAR1", &footer[..], &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat();
            let (path, size) = (Path::from("a"), file.len() as u64);
            let footers = Footers::default();
            let look = |range: Range<u64>, size: Option<u64>| {
                footers.look(&path, &range, size, &file[range.start as usize..range.end as usize]).is_ok()
            };
            for size in [None, Some(size)] {
                let end = file.len() as u64;
                assert_eq!(look(0..end, size), is_fine, "all of the file");
                assert!(look(0..end - 8, size), "which is not known to have a footer");
            }
            assert!(look(size - 8..size, Some(size)) && look(4..size - 9, Some(size)), "nothing of it has come");
            assert_eq!(look(4..size - 8, Some(size)), is_fine, "it has come by itself");
            assert!(look(size - 3..size, Some(size)) && look(0..size, Some(size + 1)));
        }
    }
}
