//! The table format beside others, on a table shaped like TPC-DS store_sales: one subcommand a bar, a JSON line a figure.
//!
//! Seconds are those of the processor, the best of several rounds in which the candidates take turns, one thread. Pages
//! are in memory and mapped before the clock starts. Python's peers run in the same run, see `peers/setup`; the
//! seconds of their consumer are taken off theirs, and ours are left in.

mod cases;
mod clock;
mod consume;
mod files;
mod ipc;
mod peers;
mod report;
mod store_sales;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use forebay_types::Result;

use crate::files::Files;
use crate::peers::Peers;
use crate::report::Report;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    case: Case,
    /// Rows of the table; 6,000,000 are 0.9 GB.
    #[arg(long, default_value_t = 6_000_000, global = true)]
    rows: usize,
    /// Rounds, of which the best counts.
    #[arg(long, default_value_t = 5, global = true)]
    rounds: usize,
    /// Folder for the files, about 5 GB; a temporary one unless given. Files that are there are used again.
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
    /// Python with the peers' packages, as `bench/table/peers/setup` makes it; `none` leaves those peers out.
    #[arg(long, global = true)]
    python: Option<PathBuf>,
}

type Run = fn(&Files, &Peers, &Report) -> Result<()>;

#[derive(Clone, Copy, PartialEq, Eq, Subcommand)]
enum Case {
    /// All of the below.
    All,
    /// Full scan of the column store.
    ScanColumns,
    /// Full scan of the column store with and without its checksums.
    Verify,
    /// Full scan of the row store into Arrow.
    ScanRows,
    /// 3 of 23 columns; 3 columns that share a group.
    Projection,
    /// A filter that 1 % of cells can meet.
    FilterCells,
    /// A filter that 1 % of rows anywhere meet.
    FilterRows,
    /// 10,000 random rows.
    Take,
    /// Bytes beside the values' bytes.
    Size,
    /// Writing.
    Write,
    /// Full scan of the column store in huge pages.
    ScanHuge,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let files = Files::new(arguments.dir, arguments.rows)?;
    let peers = Peers::new(arguments.python, arguments.rounds)?;
    let report = Report::new(arguments.rows, arguments.rounds);
    let runs: [(Case, Run); 10] = [
        (Case::ScanColumns, cases::scan_columns),
        (Case::Verify, cases::verify),
        (Case::ScanRows, cases::scan_rows),
        (Case::Projection, cases::projection),
        (Case::FilterCells, cases::filter_cells),
        (Case::FilterRows, cases::filter_rows),
        (Case::Take, cases::take),
        (Case::Size, cases::size),
        (Case::Write, cases::write),
        (Case::ScanHuge, cases::scan_huge),
    ];
    runs.iter()
        .filter(|(case, _)| arguments.case == Case::All || arguments.case == *case)
        .try_for_each(|(_, run)| run(&files, &peers, &report))
}
