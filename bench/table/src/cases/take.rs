//! Bar of random access: ten thousand rows by their number, from the row store and from the column store.

use std::fs;

use forebay_table::Table;
use forebay_types::Result;

use super::agree;
use crate::clock::{Candidate, race};
use crate::consume::consume;
use crate::files::Files;
use crate::ipc::IpcFile;
use crate::peers::Peers;
use crate::report::Report;
use crate::store_sales::{BATCH_ROWS, Numbers};

/// 10,000 random rows with all of their columns.
pub fn take(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let case = "10,000 random rows";
    let (columns, rows, ipc) = (files.columns()?, files.rows()?, files.ipc()?);
    let count = Table::open(&columns)?.rows();
    let mut numbers = Numbers(7);
    // Vortex wants them ascending and each once.
    let mut wanted = (0..10_000).map(|_| numbers.below(count)).collect::<Vec<_>>();
    wanted.sort_unstable();
    wanted.dedup();
    let taken = |file| {
        let table = Table::open(file).expect("the file was written whole");
        let batch = forebay_table::take(&table, file, &table.schema().projection(), &wanted);
        consume(&batch.expect("the rows are there"))
    };
    let mut candidates = [
        Candidate::new("row store", || taken(&rows)),
        Candidate::new("column store", || taken(&columns)),
        Candidate::new("arrow ipc mapped", || {
            let file = IpcFile::open(&ipc, None).expect("the file was written whole");
            let batches = file.batches().collect::<Vec<_>>();
            let batches = batches.iter().collect::<Vec<_>>();
            let indices = wanted.iter().map(|&row| (row as usize / BATCH_ROWS, row as usize % BATCH_ROWS)).collect::<Vec<_>>();
            let batch = arrow_select::interleave::interleave_record_batch(&batches, &indices);
            consume(&batch.expect("the rows are there"))
        }),
    ];
    race(4 * report.rounds, &mut candidates);
    agree(&candidates);
    let path = files.dir.join("rows-to-take");
    fs::write(&path, wanted.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<_>>())?;
    files.ipc_path()?;
    let python = peers.run("take", &files.dir, &[path.display().to_string()])?;
    for (ours, bar) in candidates[..2].iter().zip([10.0, 5.0]) {
        let case = format!("{case}, {}", ours.name);
        report.secs(&case, "arrow ipc mapped, interleaved in Rust", ours.secs, candidates[2].secs, None);
        for peer in &python {
            report.secs(&case, &peer.peer, ours.secs, peer.secs, (peer.peer == "vortex").then_some(bar));
        }
    }
    Ok(())
}
