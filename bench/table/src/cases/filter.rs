//! Bars of filters: where statistics leave row groups out, and where rows that pass lie anywhere.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, BooleanArray, Datum, Int32Array, Int64Array, RecordBatch};
use arrow_ord::cmp::{eq, gt_eq, lt_eq};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use forebay_table::{Selection, Table};
use forebay_types::Result;

use super::{agree, chunk};
use crate::clock::{Candidate, race};
use crate::consume::{consume, consume_rows};
use crate::files::Files;
use crate::ipc::IpcFile;
use crate::peers::Peers;
use crate::report::Report;
use crate::store_sales::BATCH_ROWS;

type Predicate<'a> = &'a dyn Fn(&RecordBatch) -> BooleanArray;

/// The filter's column of the row groups that may meet it, then what has passed of all columns. Counts the bytes asked for.
fn late(file: &Bytes, column: &str, bounds: (&dyn Datum, &dyn Datum), predicate: Predicate<'_>, touched: &AtomicU64) -> f64 {
    let table = Table::open(file).expect("the file was written whole");
    let schema = table.schema();
    let leaf = schema.leaf(column).expect("the column is there");
    let (first, all) = (schema.project_paths(&[column]).expect("the column is there"), schema.projection());
    let mut sum = 0.0;
    touched.store(0, Ordering::Relaxed);
    for row_group in table.row_groups_within(leaf, Some(bounds.0), Some(bounds.1)).expect("the bounds are of the column") {
        let bytes = |projection| {
            let ranges = table.plan(row_group, projection).expect("the row group is there").ranges();
            ranges.iter().map(|range| range.end - range.start).sum::<u64>()
        };
        let tested = chunk(&table, file, row_group, &first).batch().expect("the file was written whole");
        let selection = Selection::of(&predicate(&tested));
        if !selection.is_empty() {
            let passed = chunk(&table, file, row_group, &all).gather(&selection).expect("the file was written whole");
            sum += consume(&passed);
        }
        touched.fetch_add(bytes(if selection.is_empty() { &first } else { &all }), Ordering::Relaxed);
    }
    sum
}

/// Arrow IPC with the same care: the predicate on one column, then the filter on all.
fn ipc_filtered(file: &Bytes, predicate: Predicate<'_>, column: usize) -> f64 {
    let file = IpcFile::open(file, None).expect("the file was written whole");
    let passed = file.batches().map(|batch| {
        let mask = predicate(&batch.project(&[column]).expect("the column is there"));
        consume(&filter_record_batch(&batch, &mask).expect("the mask is as long as the batch"))
    });
    passed.sum()
}

/// The column of quantities.
const QUANTITY: usize = 9;

/// Arrays in memory: values of the column are looked at, and those of rows that have this quantity added up where they lie.
fn looked_at(batch: &RecordBatch, quantity: i32) -> f64 {
    let column = batch.column(QUANTITY).as_primitive::<Int32Type>();
    let values = column.values();
    let has = |row: &usize| values[*row] == quantity && column.is_valid(*row);
    consume_rows(batch, &(0..values.len()).filter(has).collect::<Vec<_>>())
}

/// A range of ticket numbers that one row group in about a hundred can have.
pub fn filter_cells(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let case = "filter that 1 % of cells can meet";
    let (columns, ipc) = (files.columns()?, files.ipc()?);
    let rows = Table::open(&columns)?.rows();
    // In the middle of a row group in the middle of the table, one row in a hundred and twenty.
    let first = rows / 2 / BATCH_ROWS as u64 * BATCH_ROWS as u64 + 2_000;
    let (least, most) = ((first / 12) as i64, ((first + (rows / 120).min(50_000)) / 12) as i64);
    let scalars = (Int64Array::new_scalar(least), Int64Array::new_scalar(most));
    let predicate = |batch: &RecordBatch| {
        let above = gt_eq(batch.column(0), &scalars.0).expect("both are int64");
        arrow_arith::boolean::and(&above, &lt_eq(batch.column(0), &scalars.1).expect("both are int64")).expect("both are as long")
    };
    let touched = AtomicU64::new(0);
    let mut candidates = [
        Candidate::new("table", || late(&columns, "ss_ticket_number", (&scalars.0, &scalars.1), &predicate, &touched)),
        Candidate::new("arrow ipc mapped", || ipc_filtered(&ipc, &predicate, 10)),
    ];
    race(4 * report.rounds, &mut candidates);
    agree(&candidates);
    let ours = candidates[0].secs;
    report.bytes(case, "the file's bytes", touched.load(Ordering::Relaxed), columns.len() as u64, Some(0.015));
    report.secs(case, "arrow ipc mapped", ours, candidates[1].secs, None);
    let arguments = ["ss_ticket_number".to_owned(), least.to_string(), most.to_string()];
    for peer in peers.run("filter", &files.dir, &arguments)? {
        let bar = (peer.peer == "vortex").then_some(1.0);
        report.secs(case, &peer.peer, ours, peer.secs, bar);
    }
    Ok(())
}

/// One quantity of a hundred, in rows anywhere.
pub fn filter_rows(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let case = "filter that 1 % of rows meet";
    let (columns, mixed, ipc) = (files.columns()?, files.mixed()?, files.ipc()?);
    let wanted = 42;
    let quantity = Int32Array::new_scalar(wanted);
    let predicate = |batch: &RecordBatch| eq(batch.column(0), &quantity).expect("both are int32");
    let touched = AtomicU64::new(0);
    let mut candidates = [
        Candidate::new("column store", || late(&columns, "ss_quantity", (&quantity, &quantity), &predicate, &touched)),
        Candidate::new("the filter's column and rows of the rest", || {
            late(&mixed, "ss_quantity", (&quantity, &quantity), &predicate, &touched)
        }),
        Candidate::new("arrow ipc mapped", || ipc_filtered(&ipc, &predicate, QUANTITY)),
        Candidate::new("arrays in memory", || files.batches.iter().map(|batch| looked_at(batch, wanted)).sum()),
    ];
    race(2 * report.rounds, &mut candidates);
    agree(&candidates);
    let python = peers.run("filter", &files.dir, &["ss_quantity".to_owned(), "42".to_owned(), "42".to_owned()])?;
    let (theirs, limit) = (candidates[2].secs, candidates[3].secs);
    for ours in &candidates[..2] {
        let case = format!("{case}, {}", ours.name);
        report.secs_within(&case, "arrow ipc mapped, filtered in Rust", [ours.secs, theirs, limit], Some(3.0));
        for peer in &python {
            let bar = if peer.peer == "vortex" { 1.0 } else { 3.0 };
            report.secs(&case, &peer.peer, ours.secs, peer.secs, Some(bar));
        }
    }
    Ok(())
}
