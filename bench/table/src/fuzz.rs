//! Reads damaged table files in every way until the time is up: an error is right, a panic is not.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use bytes::Bytes;
use forebay_table::{Footer, Grouping, Layout, Options, Selection, Table, Writer, take};
use forebay_types::{ErrorKind, Result};

use crate::store_sales::Numbers;

#[path = "../../../crates/core/table/tests/suite/samples.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "the batches of the format's tests")]
mod samples;

/// Damages files of every layout and reads them in every way until the time is up.
pub fn run(seconds: u64, seed: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut numbers = Numbers(seed);
    let (mut read, mut refused) = (0u64, 0u64);
    while Instant::now() < end {
        let file = sample(&mut numbers)?;
        for _ in 0..200 {
            match read_all(&damaged(&file, &mut numbers), &mut numbers) {
                Ok(()) => read += 1,
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error:?}");
                    refused += 1;
                }
            }
        }
    }
    crate::report::Report::new(0, 0).fuzzed(seed, seconds, read, refused);
    Ok(())
}

fn sample(numbers: &mut Numbers) -> Result<Bytes> {
    let rows = 1 + numbers.below(200) as usize;
    let batch = samples::batch(numbers.next(), rows);
    let grouping = match numbers.below(4) {
        0 => Grouping::columns(),
        1 => Grouping::rows(),
        2 => Grouping::rows().layout(Layout::Packed),
        _ => Grouping::columns().group(["i64", "f64", "utf8", "nested"]).group(["*"]),
    };
    let options = Options { grouping, row_group_rows: 1 + numbers.below(100) as usize, ..Options::default() };
    let mut writer = Writer::new(Vec::new(), batch.schema(), options)?;
    writer.push(&batch)?;
    Ok(writer.finish()?.0.into())
}

/// A few changed bytes, mostly where they do most harm: in the metadata and the offsets.
fn damaged(file: &Bytes, numbers: &mut Numbers) -> Bytes {
    let mut bytes = file.to_vec();
    let metadata = Footer::parse(bytes.len() as u64, &bytes).map_or(0, |footer| footer.metadata().start as usize);
    for _ in 0..=numbers.below(3) {
        let from = if numbers.below(2) == 0 { metadata } else { 0 };
        let at = from + numbers.below((bytes.len() - from) as u64) as usize;
        match numbers.below(5) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = numbers.next() as u8,
            2 => bytes[at] = [0, 0x7f, 0x80, 0xff][numbers.below(4) as usize],
            3 => {
                let word = numbers.next().to_le_bytes();
                bytes[at..].iter_mut().zip(&word[..4]).for_each(|(byte, new)| *byte = *new);
            }
            _ => {
                let other = numbers.below(bytes.len() as u64) as usize;
                bytes.swap(at, other);
            }
        }
    }
    if numbers.below(20) == 0 {
        bytes.truncate(numbers.below(bytes.len() as u64) as usize);
    }
    bytes.into()
}

fn read_all(file: &Bytes, numbers: &mut Numbers) -> Result<()> {
    let length = file.len() as u64;
    let footer = Footer::parse(length, &file.slice(Footer::range(length)?.start as usize..))?;
    let metadata = footer.metadata();
    let table = Table::parse_verified(&footer, &file[metadata.start as usize..metadata.end as usize])?;
    let projection = table.schema().projection();
    for leaf in 0..table.schema().leaves().len() {
        table.statistics(leaf)?;
    }
    let asked = (0..5).map(|_| numbers.below(table.rows().max(1))).collect::<Vec<_>>();
    // Each way on its own: what one refuses another may still read.
    let mut worst = take(&table, file, &projection, &asked).map(|_| ());
    for row_group in 0..table.row_groups() {
        let rows = table.row_group_rows(row_group) as u32;
        let chunk = match table.plan(row_group, &projection)?.read_trusted(file) {
            Ok(chunk) => chunk,
            Err(error) => {
                worst = Err(error);
                continue;
            }
        };
        let batches = chunk.batches(1 + numbers.below(64) as usize).and_then(Iterator::collect::<Result<Vec<RecordBatch>>>);
        let picked = (0..rows).filter(|_| numbers.below(3) == 0).collect();
        let gathered = chunk.gather(&Selection::of_rows(picked)?);
        for leaf in table.schema().leaves() {
            if let Some(cell) = chunk.row_cell(leaf.path()) {
                let column = cell.column(leaf.path())?;
                worst = worst.and((0..cell.rows()).try_for_each(|row| cell.row(row).value_bytes(column).map(|_| ())));
            }
        }
        worst = worst.and(batches.map(|_| ())).and(gathered.map(|_| ()));
    }
    worst
}
