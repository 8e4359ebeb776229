//! The bars, by what is measured.

mod filter;
mod huge;
mod projection;
mod scan;
mod take;
mod verify;
mod write;

pub use filter::{filter_cells, filter_rows};
pub use huge::scan_huge;
pub use projection::projection;
pub use scan::{scan_columns, scan_rows};
pub use take::take;
pub use verify::verify;
pub use write::{size, write};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use bytes::Bytes;
use forebay_table::{Chunk, Projection, Table};

use crate::clock::Candidate;
use crate::consume::consume;

/// Rows of the batches that are made of rows: they stay in a cache between making and use.
const ROWS: usize = 2_048;

/// A row group; the benchmark's files are whole and in memory. No checksums are compared: the peers have none, or leave them out.
fn chunk(table: &Table, file: &Bytes, row_group: usize, projection: &Projection) -> Chunk {
    table.plan(row_group, projection).and_then(|plan| plan.read_trusted(file)).expect("the file was written whole")
}

/// Opens the table and adds up everything in the projection.
fn scan(file: &Bytes, columns: Option<&[&str]>) -> f64 {
    let table = Table::open(file).expect("the file was written whole");
    let projection = match columns {
        Some(paths) => table.schema().project_paths(paths).expect("the columns are there"),
        None => table.schema().projection(),
    };
    let row_groups = 0..table.row_groups();
    let sum = |row_group| {
        let chunk = chunk(&table, file, row_group, &projection);
        let rows = if chunk.row_cell(projection.schema().field(0).name()).is_some() { ROWS } else { chunk.rows() };
        let batches = chunk.batches(rows).expect("the file was written whole");
        batches.map(|batch| consume(&batch.expect("the file was written whole"))).sum::<f64>()
    };
    row_groups.map(sum).sum()
}

/// The columns' bytes, as arrays have them.
fn buffers(batches: &[RecordBatch]) -> Vec<Buffer> {
    let buffers = batches.iter().flat_map(RecordBatch::columns).flat_map(|column| {
        let data = column.to_data();
        data.buffers().iter().chain(data.nulls().map(|nulls| nulls.buffer())).cloned().collect::<Vec<_>>()
    });
    buffers.collect()
}

/// All have to come to the same sum, but for the order of additions.
fn agree(candidates: &[Candidate<'_>]) {
    let first = candidates[0].sum;
    for candidate in candidates {
        assert!((candidate.sum - first).abs() <= first.abs() * 1e-9, "{}: {} instead of {first}", candidate.name, candidate.sum);
    }
}
