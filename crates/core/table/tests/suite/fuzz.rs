//! Tables whose metadata means harm, with checksums that are right: each is read or refused, in little time and memory.

use bytes::Bytes;
use forebay_fuzz::{run, shape};
use forebay_table::{Footer, pack, unpack};
use forebay_types::ErrorKind;

use crate::corrupt::{files, read_all};

/// A file of these cells and this metadata. docs/specs/table.md has the layout of its last bytes; its version stands in its first ones too.
fn file(cells: &[u8], metadata: &[u8]) -> Bytes {
    let mut file = [cells, metadata].concat();
    file.extend_from_slice(&(cells.len() as u64).to_le_bytes());
    file.extend_from_slice(&(metadata.len() as u64).to_le_bytes());
    file.extend_from_slice(&forebay_types::crc32c(metadata).to_le_bytes());
    file.extend_from_slice(&cells[8..12]);
    file.extend_from_slice(b"FBYTABLE");
    file.into()
}

#[test]
fn fuzz_a_table_s_metadata() {
    let parts = files().map(|file| {
        let metadata = Footer::parse(file.len() as u64, &file).unwrap().metadata();
        (file.slice(..metadata.start as usize), file.slice(metadata.start as usize..metadata.end as usize))
    });
    for (whole, (cells, metadata)) in files().iter().zip(&parts) {
        assert_eq!(&file(cells, metadata), whole, "this test writes footers as tables have them");
    }
    // The first byte says whose cells stand before it.
    let seeds = parts.iter().enumerate().map(|(which, (_, metadata))| [&[which as u8], &metadata[..]].concat());
    run(
        "tables' metadata",
        seeds.collect(),
        |_| (),
        |input| {
            let Some((&which, metadata)) = input.split_first() else { return String::new() };
            match read_all(&file(&parts[usize::from(which) % parts.len()].0, metadata)) {
                Ok(batches) => format!(
                    "{} batches of {} columns",
                    batches.len().min(16),
                    batches.first().map_or(0, |batch| batch.num_columns())
                ),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error:?}");
                    shape(error.message())
                }
            }
        },
    );
}

#[test]
fn fuzz_rows_that_come_compressed() {
    // What it becomes stands before it; whoever asks has held that to what an answer may have.
    let seeds = files().iter().map(|file| [&(file.len() as u32).to_le_bytes(), &pack(file)[..]].concat()).collect();
    run(
        "rows that come compressed",
        seeds,
        |_| (),
        |input| {
            let Some((len, packed)) = input.split_first_chunk() else { return String::new() };
            let len = u32::from_le_bytes(*len).min(4 << 20) as usize;
            match unpack(packed, len).and_then(|table| read_all(&table)) {
                Ok(batches) => format!("{} batches", batches.len().min(16)),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error:?}");
                    shape(error.message())
                }
            }
        },
    );
}
