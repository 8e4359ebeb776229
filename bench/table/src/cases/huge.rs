//! Bar of a full scan where the table's file lies in huge pages, and with it the arrays that are added up beside it.

use arrow_array::RecordBatch;
use bytes::Bytes;
use forebay_table::Table;
use forebay_types::{Result, ResultExt};
use memmap2::{Advice, MmapMut};

use super::{agree, chunk, scan};
use crate::clock::{Candidate, race};
use crate::consume::consume;
use crate::files::Files;
use crate::peers::Peers;
use crate::report::Report;

/// Full scan of the column store, beside arrays that point into the same memory and were opened before.
pub fn scan_huge(files: &Files, _: &Peers, report: &Report) -> Result<()> {
    let columns = in_huge_pages(&files.columns()?)?;
    let table = Table::open(&columns)?;
    let projection = table.schema().projection();
    let row_groups = (0..table.row_groups()).map(|row_group| chunk(&table, &columns, row_group, &projection).batch());
    let arrays = row_groups.collect::<Result<Vec<RecordBatch>>>()?;
    let mut candidates = [
        Candidate::new("table", || scan(&columns, None)),
        Candidate::new("arrays in memory", || arrays.iter().map(consume).sum()),
    ];
    race(4 * report.rounds, &mut candidates);
    agree(&candidates);
    let [ours, theirs] = candidates.map(|candidate| candidate.secs);
    report.secs("full scan, column store, huge pages", "arrays in the same memory", ours, theirs, Some(0.9));
    Ok(())
}

/// A copy in memory that the system is asked to map by huge pages.
fn in_huge_pages(bytes: &[u8]) -> Result<Bytes> {
    let mut memory = MmapMut::map_anon(bytes.len()).context(|| "memory for the table")?;
    memory.advise(Advice::HugePage).context(|| "huge pages: /sys/kernel/mm/transparent_hugepage/enabled has to allow madvise")?;
    memory.copy_from_slice(bytes);
    Ok(Bytes::from_owner(memory))
}
