//! Bytes that were changed or cut off: the reader says what is wrong, and never panics or gives wrong rows.

use arrow_array::RecordBatch;
use bytes::Bytes;
use forebay_table::{Blooms, Footer, Grouping, Layout, Options, Selection, Table, Verified, take};
use forebay_types::{ErrorKind, Result};

use crate::nested::nested;
use crate::round_trip::{write, write_with};
use crate::samples::{Numbers, batch};

pub fn files() -> [Bytes; 5] {
    let (plain, nested) = (batch(11, 90), nested(11, 90));
    let blooms = Blooms::Of(vec!["i64".to_string(), "utf8".to_string()]);
    let options = Options { row_group_rows: 40, blooms, ..Options::default() };
    let with_blooms = write_with(std::slice::from_ref(&plain), options);
    let [columns, aligned, packed, nested] = [
        (&plain, Grouping::columns()),
        (&plain, Grouping::rows()),
        (&plain, Grouping::rows().layout(Layout::Packed)),
        (&nested, Grouping::columns()),
    ]
    .map(|(batch, grouping)| write(std::slice::from_ref(batch), grouping, 40));
    [columns, aligned, packed, nested, with_blooms]
}

/// Everything that a reader can do with a file, without comparing checksums where that can be left out.
pub fn read_all(file: &Bytes) -> Result<Vec<RecordBatch>> {
    let length = file.len() as u64;
    let footer = Footer::parse(length, &file.slice(Footer::range(length)?.start as usize..))?;
    let metadata = footer.metadata();
    let table = Table::parse_verified(&footer, &file[metadata.start as usize..metadata.end as usize])?;
    let projection = table.schema().projection();
    let mut out = Vec::new();
    for row_group in 0..table.row_groups() {
        let chunk = table.plan(row_group, &projection)?.read_trusted(file)?;
        out.extend(chunk.batches(17)?.collect::<Result<Vec<_>>>()?);
        out.push(chunk.gather(&Selection::of_rows((0..table.row_group_rows(row_group) as u32).step_by(3).collect())?)?);
        if let Some(cell) = chunk.row_cell("utf8") {
            let column = cell.column("utf8")?;
            (0..cell.rows()).try_for_each(|row| cell.row(row).text(column).map(|_| ()))?;
        }
    }
    for leaf in 0..table.schema().leaves().len() {
        table.statistics(leaf)?;
        for bloom in (0..table.row_groups()).filter_map(|row_group| table.bloom(row_group, leaf)) {
            let range = bloom.range();
            bloom.open(file.slice(range.start as usize..range.end as usize))?.may_have(u64::MAX);
        }
    }
    out.push(take(&table, file, &projection, &[5, 1, 80])?);
    Ok(out)
}

/// A reader either reads or says what is wrong: it neither panics nor blames the caller.
fn check(file: &Bytes) {
    if let Err(error) = read_all(file) {
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{error:?}");
    }
}

#[test]
fn a_changed_byte_is_corrupt_or_reads_but_never_panics() {
    let mut numbers = Numbers(77);
    for file in files() {
        read_all(&file).unwrap();
        for _ in 0..300 {
            let mut bytes = file.to_vec();
            for _ in 0..=numbers.below(4) {
                let at = numbers.below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, numbers.next() as u8][numbers.below(6)];
            }
            check(&bytes.into());
        }
        // The metadata is a small part of the file, and the most dangerous.
        let start = Footer::parse(file.len() as u64, &file).unwrap().metadata().start as usize;
        for _ in 0..600 {
            let mut bytes = file.to_vec();
            let at = start + numbers.below(bytes.len() - start);
            bytes[at] ^= 1 << numbers.below(8);
            check(&bytes.into());
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_corrupt() {
    for file in files() {
        for length in (0..file.len()).step_by(97).chain(file.len() - 40..file.len()) {
            assert_eq!(read_all(&file.slice(..length)).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}

#[test]
fn checksums_find_every_changed_byte_of_cells_and_metadata() {
    for file in files() {
        let table = Table::open(&file).unwrap();
        let plan = table.plan(1, &table.schema().projection()).unwrap();
        for (index, range) in plan.ranges().iter().enumerate() {
            let slice = |range: &std::ops::Range<u64>| file.slice(range.start as usize..range.end as usize);
            let mut bytes = plan.ranges().iter().map(slice).collect::<Vec<_>>();
            plan.open(bytes.clone()).unwrap();
            let mut changed = bytes[index].to_vec();
            changed[(range.end - range.start) as usize / 2] ^= 4;
            bytes[index] = changed.into();
            let error = plan.open(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.message().contains("row group 1, cell of column"), "{error}");
        }
        let mut bytes = file.to_vec();
        let at = Footer::parse(file.len() as u64, &file).unwrap().metadata().start as usize + 50;
        bytes[at] ^= 1;
        assert_eq!(Table::open(&Bytes::from(bytes)).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn a_flipped_byte_never_changes_a_row_of_a_verified_read() {
    for file in files() {
        let table = Table::open(&file).unwrap();
        let right = verified(&file).unwrap();
        let read = |group: usize| table.plan(group, &table.schema().projection()).unwrap().ranges();
        let cells = (0..table.row_groups()).flat_map(read).collect::<Vec<_>>();
        let metadata = Footer::parse(file.len() as u64, &file).unwrap().metadata();
        for at in (0..file.len()).step_by(5) {
            let mut bytes = file.to_vec();
            bytes[at] ^= 0x10;
            let found = verified(&bytes.into());
            match cells.iter().any(|range| range.contains(&(at as u64))) || metadata.contains(&(at as u64)) {
                true => assert_eq!(found.unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}"),
                false => assert!(found.is_err() || found.unwrap() == right, "byte {at}"),
            }
        }
    }
}

fn verified(file: &Bytes) -> Result<Vec<RecordBatch>> {
    let table = Table::open(file)?;
    let projection = table.schema().projection();
    (0..table.row_groups()).map(|group| table.plan(group, &projection)?.read(file)?.batch()).collect()
}

#[test]
fn a_cell_that_has_verified_is_not_verified_once_more_and_others_are() {
    let file = &files()[0];
    let table = Table::open(file).unwrap();
    let schema = table.schema();
    let ranges = |range: &std::ops::Range<u64>| file.slice(range.start as usize..range.end as usize);
    let plan = |column: &str| table.plan(1, &schema.project_paths(&[column]).unwrap()).unwrap();
    let bytes = |column: &str| plan(column).ranges().iter().map(ranges).collect::<Vec<_>>();
    let damaged = |column: &str| {
        let mut bytes = bytes(column);
        let mut last = bytes.last().unwrap().to_vec();
        last[0] ^= 1;
        *bytes.last_mut().unwrap() = last.into();
        bytes
    };
    let verified = Verified::none_of(&table);
    let once = |column: &str, bytes| plan(column).open_once(bytes, &verified).map(|_| ());
    // What did not verify is not taken for verified.
    assert_eq!(once("i64", damaged("i64")).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(once("i64", damaged("i64")).unwrap_err().kind(), ErrorKind::Corrupt);
    once("i64", bytes("i64")).unwrap();
    once("i64", damaged("i64")).unwrap();
    assert_eq!(once("f64", damaged("f64")).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(Verified::none_of(&table).bytes() % 8, 0);
}

#[test]
fn a_later_version_is_refused_as_such() {
    let mut bytes = files()[0].to_vec();
    let at = bytes.len() - 12;
    bytes[at] = 4;
    let error = Table::open(&Bytes::from(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("version 4"), "{error}");
}

#[test]
fn a_table_says_the_version_that_its_columns_need() {
    let versions = files().map(|file| (file[8], file[file.len() - 12]));
    assert_eq!(versions, [(1, 1), (1, 1), (1, 1), (2, 2), (3, 3)]);
    for (which, said) in [(3, 1), (4, 1), (4, 2)] {
        let mut older = files()[which].to_vec();
        let at = older.len() - 12;
        older[at] = said;
        let error = Table::open(&Bytes::from(older)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
