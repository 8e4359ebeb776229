//! What checksums cost a scan, and what they cost bytes that pass between stages.

use std::ops::Range;

use bytes::Bytes;
use forebay_table::{Chunk, Plan, Source, Table, Verified};
use forebay_types::Result;

use super::agree;
use crate::clock::{Candidate, race};
use crate::consume::consume;
use crate::files::Files;
use crate::peers::Peers;
use crate::report::Report;

/// What checksums cost a full scan of the column store: the first scan of a version compares all of them, the ones after it, which
/// are warm, look at what has verified.
pub fn verify(files: &Files, _: &Peers, report: &Report) -> Result<()> {
    let columns = files.columns()?;
    let table = Table::open(&columns)?;
    let verified = Verified::none_of(&table);
    let bytes_of = |plan: &Plan| plan.ranges().into_iter().map(|range| columns.bytes(range)).collect::<Result<Vec<Bytes>>>();
    let mut candidates = [
        Candidate::new("warm", || sum(&table, |plan| plan.open_once(bytes_of(plan)?, &verified))),
        Candidate::new("no checksum compared", || sum(&table, |plan| plan.open_trusted(bytes_of(plan)?))),
        Candidate::new("first", || sum(&table, |plan| plan.open(bytes_of(plan)?))),
    ];
    race(4 * report.rounds, &mut candidates);
    agree(&candidates);
    let [warm, trusted, first] = candidates.map(|candidate| candidate.secs);
    report.secs("full scan, verified before", "no checksum compared", warm, trusted, Some(0.95));
    report.secs("full scan, verified in it", "no checksum compared", first, trusted, None);
    // Bytes between stages have no cell that verified before: they pass once, and each is looked at.
    let ranges = ranges(&table)?.into_iter().map(|range| columns.bytes(range)).collect::<Result<Vec<Bytes>>>()?;
    let mut beside = [
        Candidate::new("checksum", || ranges.iter().fold(0, |sum, bytes| forebay_types::crc32c_append(sum, bytes)).into()),
        Candidate::new("scan", || sum(&table, |plan| plan.open_once(bytes_of(plan)?, &verified))),
    ];
    race(4 * report.rounds, &mut beside);
    let [checksum, scan] = beside.map(|candidate| candidate.secs);
    report.secs("CRC-32C of what a full scan reads", "full scan, verified before", checksum, scan, Some(1.0 / 0.05));
    Ok(())
}

/// All that a full scan reads.
fn ranges(table: &Table) -> Result<Vec<Range<u64>>> {
    let projection = table.schema().projection();
    let of = |row_group| table.plan(row_group, &projection).map(|plan| plan.ranges());
    Ok((0..table.row_groups()).map(of).collect::<Result<Vec<_>>>()?.concat())
}

fn sum(table: &Table, open: impl Fn(&Plan) -> Result<Chunk>) -> f64 {
    let projection = table.schema().projection();
    let of = |row_group| {
        let chunk = table.plan(row_group, &projection).and_then(|plan| open(&plan)).expect("the file was written whole");
        let batches = chunk.batches(chunk.rows()).expect("the file was written whole");
        batches.map(|batch| consume(&batch.expect("the file was written whole"))).sum::<f64>()
    };
    (0..table.row_groups()).map(of).sum()
}
