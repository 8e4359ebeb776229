//! Bars of full scans, of the column store beside every other format and of the row store beside memcpy.

use std::hint::black_box;

use forebay_table::Table;
use forebay_types::Result;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{ROWS, agree, buffers, chunk, scan};
use crate::clock::{Candidate, race};
use crate::consume::consume;
use crate::files::Files;
use crate::ipc::IpcFile;
use crate::peers::Peers;
use crate::report::Report;
use crate::store_sales::value_bytes;

/// Full scan of the column store, beside the arrays in memory, Arrow IPC and every other format.
pub fn scan_columns(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let case = "full scan, column store";
    let (columns, ipc) = (files.columns()?, files.ipc()?);
    let parquet = [files.parquet("none")?, files.parquet("snappy")?, files.parquet("zstd")?];
    let read_parquet = |file: &bytes::Bytes| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).expect("the file was written whole");
        let reader = reader.with_batch_size(8_192).build().expect("the file was written whole");
        reader.map(|batch| consume(&batch.expect("the file was written whole"))).sum::<f64>()
    };
    let mut candidates = vec![
        Candidate::new("table", || scan(&columns, None)),
        Candidate::new("arrays in memory", || files.batches.iter().map(consume).sum()),
        Candidate::new("arrow ipc mapped", || {
            let file = IpcFile::open(&ipc, None).expect("the file was written whole");
            file.batches().map(|batch| consume(&batch)).sum()
        }),
    ];
    race(4 * report.rounds, &mut candidates);
    let mut slow = vec![
        Candidate::new("parquet none", || read_parquet(&parquet[0])),
        Candidate::new("parquet snappy", || read_parquet(&parquet[1])),
        Candidate::new("parquet zstd", || read_parquet(&parquet[2])),
    ];
    race(report.rounds.min(2), &mut slow);
    candidates.append(&mut slow);
    // Parquet's reader leaves anything where a value is null, which the quick consumer adds up too.
    agree(&candidates[..3]);
    let bytes = value_bytes(&files.batches);
    let ours = candidates[0].secs;
    report.speed(case, "table", bytes, ours);
    for (candidate, bar) in candidates[1..].iter().zip([0.9, 0.98, 5.0, 5.0, 5.0]) {
        report.secs(case, candidate.name, ours, candidate.secs, Some(bar));
    }
    files.ipc_path()?;
    for peer in peers.run("scan", &files.dir, &[])? {
        let bar = match peer.peer.as_str() {
            "orc" | "orc snappy" | "orc zlib" => 5.0,
            "lance" => 3.0,
            _ => 2.0,
        };
        report.secs(case, &peer.peer, ours, peer.secs, Some(bar));
    }
    Ok(())
}

/// Full scan of the row store into Arrow, beside copying as many bytes.
pub fn scan_rows(files: &Files, _: &Peers, report: &Report) -> Result<()> {
    let case = "full scan, row store into Arrow";
    let rows = files.rows()?;
    let table = Table::open(&rows)?;
    let projection = table.schema().projection();
    let buffers = buffers(&files.batches);
    let mut copied = vec![0u8; buffers.iter().map(|buffer| buffer.len()).sum()];
    let bytes = copied.len() as u64;
    let mut candidates = vec![
        Candidate::new("table", || {
            for row_group in 0..table.row_groups() {
                let chunk = chunk(&table, &rows, row_group, &projection);
                for batch in chunk.batches(ROWS).expect("the file was written whole") {
                    black_box(batch.expect("the file was written whole"));
                }
            }
            0.0
        }),
        Candidate::new("memcpy of the columns", || {
            let mut at = 0;
            for buffer in &buffers {
                copied[at..at + buffer.len()].copy_from_slice(buffer);
                at += buffer.len();
            }
            black_box(&copied);
            0.0
        }),
    ];
    race(2 * report.rounds, &mut candidates);
    let (ours, memcpy) = (candidates[0].secs, candidates[1].secs);
    let mut consumed = [
        Candidate::new("and summed", || scan(&rows, None)),
        Candidate::new("memory", || files.batches.iter().map(consume).sum()),
    ];
    race(report.rounds, &mut consumed);
    agree(&consumed);
    report.speed(case, "table", bytes, ours);
    report.speed(case, "table, and every value summed", bytes, consumed[0].secs);
    report.speed(case, "memcpy", bytes, memcpy);
    report.secs(case, "memcpy of the columns", ours, memcpy, Some(0.7));
    Ok(())
}
