//! The rows of a wide table as Parquet, the same in each run: what is in a place follows from the column and the row alone.

use std::fmt::Display;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use forebay_types::{Error, Result, ResultExt};

use super::columns::{Kind, columns};

/// Changes with everything that changes the files.
const LAYOUT: u32 = 1;
const FILE_ROWS: u64 = 250_000;
/// Rows of a row group, as engines write them, and of what is made at a time.
const ROW_GROUP_ROWS: usize = 122_880;
const BATCH_ROWS: u64 = 8_192;
/// The first of May 2031, in milliseconds, and the days from it on that have rows.
const BEGIN_MS: i64 = 1_935_360_000_000;
const DAYS: i64 = 31;
const DAY_MS: i64 = 24 * 3_600 * 1_000;
const SYLLABLES: [&str; 24] = [
    "lo", "ra", "mi", "te", "so", "ka", "nu", "be", "di", "fa", "go", "hi", "ju", "le", "ma", "no", "pe", "ri", "sa", "tu", "va",
    "wo", "xe", "zi",
];
const SITES: u64 = 3_000;

/// A folder with the folder of the table in it, made by all cores unless it is there from an earlier run.
pub(super) fn prepare(folder: &Path, rows: u64) -> Result<PathBuf> {
    let folder = folder.join(format!("visits-{rows}"));
    let marker = folder.join("complete");
    if fs::read_to_string(&marker).is_ok_and(|layout| layout == LAYOUT.to_string()) {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).context(|| folder.display())?;
    }
    let table = folder.join("visits");
    fs::create_dir_all(&table).context(|| table.display())?;
    let columns = columns();
    let texts: Vec<Vec<String>> = columns.iter().enumerate().map(|(at, (_, kind))| texts_of(at as u64, *kind)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let file = |number: u64| {
        let path = table.join(format!("visits-{number}.parquet"));
        let range = number * FILE_ROWS..rows.min((number + 1) * FILE_ROWS);
        write(&path, &columns, &texts, range, rows).context(|| path.display())
    };
    let (file, files) = (&file, rows.div_ceil(FILE_ROWS));
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..cores).map(|core| scope.spawn(move || (0..files).skip(core).step_by(cores).try_for_each(file))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::internal("making the data panicked"))?)
    })?;
    fs::write(&marker, LAYOUT.to_string()).context(|| marker.display())?;
    Ok(folder)
}

fn write(path: &Path, columns: &[(String, Kind)], texts: &[Vec<String>], rows: Range<u64>, all: u64) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let schema = batch(columns, texts, 0..0, all).map_err(failed)?.schema();
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, Some(properties)).map_err(failed)?;
    for begin in rows.clone().step_by(BATCH_ROWS as usize) {
        let batch = batch(columns, texts, begin..rows.end.min(begin + BATCH_ROWS), all).map_err(failed)?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map(drop).map_err(failed)
}

fn failed(error: impl Display) -> Error {
    Error::internal(format!("can't write Parquet: {error}"))
}

fn batch(columns: &[(String, Kind)], texts: &[Vec<String>], rows: Range<u64>, all: u64) -> Result<RecordBatch, ArrowError> {
    let arrays = columns.iter().zip(texts).enumerate();
    RecordBatch::try_from_iter(
        arrays.map(|(at, ((name, kind), texts))| (name.as_str(), array(at as u64, *kind, texts, rows.clone(), all))),
    )
}

fn array(column: u64, kind: Kind, texts: &[String], rows: Range<u64>, all: u64) -> ArrayRef {
    let drawn = |row: u64| chance(column, row);
    let ms = |row: u64| BEGIN_MS + (u128::from(row) * (DAYS * DAY_MS) as u128 / u128::from(all)) as i64;
    match kind {
        Kind::Number => Arc::new(Int64Array::from_iter_values(rows.map(|row| drawn(row) as i64))),
        Kind::At => Arc::new(TimestampMillisecondArray::from_iter_values(rows.map(ms))),
        Kind::Day => Arc::new(Date32Array::from_iter_values(rows.map(|row| (ms(row) / DAY_MS) as i32))),
        Kind::Who(of) => {
            Arc::new(Int64Array::from_iter_values(rows.map(|row| mix(skewed(of.into(), drawn(row)) ^ (column << 48)) as i64)))
        }
        Kind::Code(of) => Arc::new(Int32Array::from_iter_values(rows.map(|row| skewed(u64::from(of) + 1, drawn(row)) as i32))),
        Kind::Flag(of) => Arc::new(Int16Array::from_iter_values(rows.map(|row| i16::from(drawn(row).is_multiple_of(of.into()))))),
        Kind::Text { of, .. } | Kind::Address { of, .. } => {
            let text = |row: u64| {
                let drawn = drawn(row);
                let which = skewed(texts.len() as u64, mix(drawn)) as usize;
                if drawn.is_multiple_of(of.into()) { texts[which].as_str() } else { "" }
            };
            Arc::new(StringArray::from_iter_values(rows.map(text)))
        }
    }
}

/// All texts that a column may have.
fn texts_of(column: u64, kind: Kind) -> Vec<String> {
    let (texts, is_address) = match kind {
        Kind::Text { texts, .. } => (texts, false),
        Kind::Address { texts, .. } => (texts, true),
        _ => return Vec::new(),
    };
    (0..u64::from(texts)).map(|number| text(chance(!column, number), is_address)).collect()
}

/// Some words: nine of ten texts have ten at most, and one of a hundred has more than forty.
fn text(mut drawn: u64, is_address: bool) -> String {
    let mut next = || {
        drawn = mix(drawn);
        drawn
    };
    let words = (2.0 / (1.0 - part(next())).powf(0.7)).min(80.0) as usize;
    let word = |drawn: u64| {
        let syllables = (0..2 + drawn % 3).map(|at| SYLLABLES[(mix(drawn + at) % SYLLABLES.len() as u64) as usize]);
        syllables.collect::<String>()
    };
    let mut text = String::new();
    if is_address {
        let site = mix(skewed(SITES, next()));
        let www = if site.is_multiple_of(3) { "www." } else { "" };
        text = format!("https://{www}{}{}.example/", word(site), site % 1_000);
    }
    let between = if is_address { "/" } else { " " };
    let words: Vec<String> = (0..words).map(|_| word(next())).collect();
    text + &words.join(between)
}

/// 0 to before `of`: the lower the number, the more often.
fn skewed(of: u64, drawn: u64) -> u64 {
    ((of as f64).powf(part(drawn)) as u64).clamp(1, of) - 1
}

/// From 0 to before 1.
fn part(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

fn chance(column: u64, row: u64) -> u64 {
    mix(mix(column) ^ row)
}

/// Of any two numbers others, whose bits look as if by chance (the last step of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::arrow::datatypes::{Int16Type, Int32Type};

    use super::*;

    const ROWS: u64 = 10_000;

    fn made(kind: Kind) -> ArrayRef {
        array(7, kind, &texts_of(7, kind), 0..ROWS, ROWS)
    }

    #[test]
    fn what_is_in_a_row_is_the_same_in_whatever_batch_it_is_made() {
        let kind = Kind::Address { texts: 1_000, of: 2 };
        let (all, texts) = (made(kind), texts_of(7, kind));
        let part = array(7, kind, &texts, 5_000..5_100, ROWS);
        assert_eq!(&all.slice(5_000, 100), &part);
        assert!(texts.iter().all(|text| text.starts_with("https://") && text.contains(".example/")));
    }

    #[test]
    fn few_make_most_of_the_rows_and_texts_are_missing_as_often_as_is_said() {
        let codes = made(Kind::Code(1_000));
        let codes = codes.as_primitive::<Int32Type>().values();
        assert!(codes.iter().all(|code| (0..=1_000).contains(code)));
        let small = codes.iter().filter(|code| **code < 31).count();
        assert!((4_500..5_500).contains(&small), "{small} of {ROWS} rows have one of the first 31 of 1,001 codes");
        let flags = made(Kind::Flag(4));
        let flagged = flags.as_primitive::<Int16Type>().values().iter().filter(|flag| **flag == 1).count();
        assert!((2_300..2_700).contains(&flagged), "{flagged}");
        let texts = made(Kind::Text { texts: 500, of: 10 });
        let texts: Vec<&str> = texts.as_string::<i32>().iter().flatten().filter(|text| !text.is_empty()).collect();
        assert!((850..1_150).contains(&texts.len()), "{}", texts.len());
        let words: Vec<usize> = texts.iter().map(|text| text.split(' ').count()).collect();
        assert!(words.iter().filter(|words| **words <= 10).count() > words.len() / 2 && words.iter().any(|words| *words > 10));
    }

    #[test]
    fn rows_are_in_the_order_of_their_times_and_each_has_a_number_of_its_own() {
        let (visits, days) = (made(Kind::Number), made(Kind::Day));
        let visits: HashSet<i64> = visits.as_any().downcast_ref::<Int64Array>().unwrap().values().iter().copied().collect();
        assert_eq!(visits.len() as u64, ROWS);
        let days = days.as_any().downcast_ref::<Date32Array>().unwrap().values();
        assert!(days.is_sorted());
        assert_eq!(i64::from(days[days.len() - 1] - days[0]), DAYS - 1);
    }
}
