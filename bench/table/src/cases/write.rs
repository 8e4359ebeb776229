//! Bars of writing, row and column store beside Parquet and a copy of the columns' bytes, and of size: what each format adds to
//! the values' own bytes.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;

use forebay_table::Grouping;
use forebay_types::Result;

use super::buffers;
use crate::clock::{Candidate, race};
use crate::files::{Files, write_parquet, write_table};
use crate::peers::Peers;
use crate::report::Report;
use crate::store_sales::value_bytes;

/// Writing the table: into memory, and into a file in the page cache, where the kernel's copy costs all formats the same.
pub fn write(files: &Files, _: &Peers, report: &Report) -> Result<()> {
    let memory = RefCell::new(Vec::with_capacity(value_bytes(&files.batches) as usize * 11 / 10));
    let emptied = || {
        let mut memory = memory.borrow_mut();
        memory.clear();
        memory
    };
    let table = |grouping| {
        write_table(&mut *emptied(), &files.batches, grouping).expect("memory can be written to");
        0.0
    };
    let parquet = |codec| {
        write_parquet(&mut *emptied(), &files.batches, codec).expect("memory can be written to");
        0.0
    };
    let buffers = buffers(&files.batches);
    let path = files.dir.join("written");
    let create = || File::create(&path).expect("the folder can be written to");
    let mut into_memory = [
        Candidate::new("column store", || table(Grouping::columns())),
        Candidate::new("row store", || table(Grouping::rows())),
        Candidate::new("parquet uncompressed", || parquet("none")),
        Candidate::new("parquet uncompressed, plain", || parquet("plain")),
        Candidate::new("memcpy of the columns", || {
            let mut memory = emptied();
            buffers.iter().for_each(|buffer| memory.extend_from_slice(buffer));
            0.0
        }),
    ];
    race(report.rounds.min(3), &mut into_memory);
    let mut into_file = [
        Candidate::new("column store", || {
            write_table(create(), &files.batches, Grouping::columns()).expect("the folder can be written to");
            0.0
        }),
        Candidate::new("row store", || {
            write_table(create(), &files.batches, Grouping::rows()).expect("the folder can be written to");
            0.0
        }),
        Candidate::new("parquet uncompressed", || {
            write_parquet(create(), &files.batches, "none").expect("the folder can be written to");
            0.0
        }),
        Candidate::new("write of the columns", || {
            let mut file = create();
            buffers.iter().for_each(|buffer| file.write_all(buffer).expect("the folder can be written to"));
            0.0
        }),
    ];
    race(1, &mut into_file);
    std::fs::remove_file(&path)?;
    let bytes = value_bytes(&files.batches);
    for (case, candidates) in [("write into memory", &into_memory[..]), ("write into a file", &into_file[..])] {
        let (limit, candidates) = candidates.split_last().expect("the limit is the last one");
        for ours in &candidates[..2] {
            report.speed(case, ours.name, bytes, ours.secs);
            for theirs in &candidates[2..] {
                let secs = [ours.secs, theirs.secs, limit.secs];
                report.secs_within(&format!("{case}, {}", ours.name), theirs.name, secs, Some(3.0));
            }
        }
    }
    Ok(())
}

/// Bytes of the files beside the values' bytes, and the others' beside ours.
pub fn size(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let values = value_bytes(&files.batches);
    let columns = files.columns()?.len() as u64;
    report.bytes("size, column store", "the values' bytes", columns, values, Some(1.02));
    report.bytes("size, row store", "the values' bytes", files.rows()?.len() as u64, values, Some(1.08));
    report.bytes("size, column store", "arrow ipc", columns, files.ipc()?.len() as u64, None);
    for codec in ["none", "snappy", "zstd"] {
        report.bytes("size, column store", &format!("parquet {codec}"), columns, files.parquet(codec)?.len() as u64, None);
    }
    for peer in peers.run("size", &files.dir, &[])? {
        report.bytes("size, column store", &peer.peer, columns, peer.bytes, None);
    }
    Ok(())
}
