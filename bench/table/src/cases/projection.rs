//! Bar of reading three of 23 columns: bytes asked for, and time beside formats of columns.

use bytes::Bytes;
use forebay_table::Table;
use forebay_types::Result;

use super::{agree, scan};
use crate::clock::{Candidate, race};
use crate::consume::consume;
use crate::files::{Files, SHARED};
use crate::ipc::IpcFile;
use crate::peers::Peers;
use crate::report::Report;
use crate::store_sales::value_bytes;

/// Three of 23 columns, each on its own and in one group.
pub fn projection(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let case = "3 of 23 columns";
    let (columns, shared, ipc) = (files.columns()?, files.shared()?, files.ipc()?);
    let schema = files.batches[0].schema();
    let indices = SHARED.iter().map(|name| schema.index_of(name).expect("the column is there")).collect::<Vec<_>>();
    let mut candidates = [
        Candidate::new("table", || scan(&columns, Some(&SHARED))),
        Candidate::new("arrow ipc mapped", || {
            let file = IpcFile::open(&ipc, Some(indices.clone())).expect("the file was written whole");
            file.batches().map(|batch| consume(&batch)).sum()
        }),
        Candidate::new("one group of the three", || scan(&shared, Some(&SHARED))),
    ];
    race(4 * report.rounds, &mut candidates);
    agree(&candidates);
    let projected = files.batches.iter().map(|batch| batch.project(&indices).expect("the columns are there")).collect::<Vec<_>>();
    let values = value_bytes(&projected);
    report.bytes(case, "the columns' bytes", touched(&columns)?, values, Some(1.05));
    // A row has 16 of values, and of the bitmap with its padding.
    let group = Table::open(&shared)?.rows() * 24;
    report.bytes("3 columns that share a group", "the group's bytes", touched(&shared)?, group, Some(1.05));
    let (ours, grouped) = (candidates[0].secs, candidates[2].secs);
    report.speed(case, "table", values, ours);
    report.secs(case, "arrow ipc mapped", ours, candidates[1].secs, None);
    for peer in peers.run("projection", &files.dir, &SHARED.map(str::to_owned))? {
        let bar = (peer.peer == "vortex").then_some(1.0);
        report.secs(case, &peer.peer, ours, peer.secs, bar);
        report.secs("3 columns that share a group", &peer.peer, grouped, peer.secs, bar);
    }
    Ok(())
}

/// Bytes of the ranges that the plans ask for.
fn touched(file: &Bytes) -> Result<u64> {
    let table = Table::open(file)?;
    let projection = table.schema().project_paths(&SHARED)?;
    let mut bytes = 0;
    for row_group in 0..table.row_groups() {
        bytes += table.plan(row_group, &projection)?.ranges().iter().map(|range| range.end - range.start).sum::<u64>();
    }
    Ok(bytes)
}
