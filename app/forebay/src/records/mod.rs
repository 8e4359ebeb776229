//! Records from files: Parquet, CSV and JSON. `forebay shard` makes shards of them, and workers' processes follow objects with them.

mod arrow;
mod bounded;
mod csv;
mod footer;
mod json;
mod parquet;
mod partitions;

use std::fmt::Display;
use std::path::Path;

use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns};
use forebay_shards::{ReadRecords, Records};
use forebay_types::{Error, Result};

pub(crate) use partitions::of_paths;

/// Bytes of the values in a piece of records, about: one record alone may have more.
const PIECE_BYTES: usize = 8 << 20;

/// A file of records, opened.
pub(crate) struct Input {
    /// Its columns, those that are kept.
    pub(crate) columns: Columns,
    /// About how many bytes the file has, for progress.
    pub(crate) bytes: u64,
    /// Its records in pieces, with about how many bytes of the file each piece took.
    pub(crate) records: Box<dyn Iterator<Item = Result<Piece>>>,
}

/// Some records.
pub(crate) struct Piece {
    pub(crate) records: Vec<(Key, Vec<Value>)>,
    pub(crate) bytes: u64,
}

/// Which columns of a file.
pub(crate) struct Wanted<'a> {
    pub(crate) key: &'a str,
    pub(crate) columns: Option<&'a [String]>,
    /// Columns that the folders of files give where the files lack them.
    pub(crate) in_paths: &'a [Column],
    /// Those of the dataset that it is read for, where there are some: times are read in their unit.
    pub(crate) like: Option<&'a Columns>,
}

impl Wanted<'_> {
    /// What a column of the dataset is.
    fn kind_there(&self, name: &str) -> Option<ColumnKind> {
        self.like?.all().iter().find(|column| column.name == name).map(|column| column.kind)
    }

    /// Places of the columns that are kept, among all of the file.
    fn places(&self, names: &[&str]) -> Result<Vec<usize>> {
        let place = |wanted: &str| {
            names
                .iter()
                .position(|name| *name == wanted)
                .ok_or_else(|| Error::invalid(format!("there is no column {wanted}; the columns are {}", names.join(", "))))
        };
        let key = place(self.key)?;
        let mut places = match self.columns {
            None => (0..names.len()).collect(),
            Some(columns) => {
                let is_in_path = |name: &str| !names.contains(&name) && self.in_paths.iter().any(|column| column.name == name);
                columns.iter().filter(|column| !is_in_path(column)).map(|column| place(column)).collect::<Result<Vec<_>>>()?
            }
        };
        if !places.contains(&key) {
            places.push(key);
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }
}

/// About how many bytes a record takes.
pub(crate) fn bytes_of((key, values): &(Key, Vec<Value>)) -> usize {
    let bytes = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => size_of::<Value>(),
    };
    key.len() + values.iter().map(bytes).sum::<usize>()
}

/// What datasets that follow objects read them with: by the names' endings, Parquet, CSV and JSON.
pub struct Formats;

impl ReadRecords for Formats {
    fn check_name(&self, name: &str) -> Result<()> {
        if ENDINGS.contains(&ending(Path::new(name)).as_str()) { Ok(()) } else { Err(no_format()) }
    }

    fn read(&self, file: &Path, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        self.read_object(file, "", columns, each)
    }

    fn read_object(&self, file: &Path, path: &str, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        let names: Vec<String> = columns.all().iter().map(|column| column.name.clone()).collect();
        let in_paths = partitions::of_dataset(columns, path);
        let wanted = Wanted { key: &columns.key().name, columns: Some(&names), in_paths: &in_paths, like: Some(columns) };
        let input = open_at(file, &file.display(), path, &wanted)?;
        if input.columns != *columns {
            return Err(Error::invalid("its columns have other types, or another order, than those of the dataset"));
        }
        for piece in input.records {
            each(piece?.records)?;
        }
        Ok(())
    }
}

/// Opens a file by its name's ending.
pub(crate) fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Input> {
    open_as(path, &path.display(), wanted)
}

/// The same of a file that errors name otherwise: an object that was brought here, whose path that name is.
pub(crate) fn open_as(path: &Path, name: &dyn Display, wanted: &Wanted<'_>) -> Result<Input> {
    open_at(path, name, &name.to_string(), wanted)
}

/// The same, with the path that says more of its records.
fn open_at(path: &Path, name: &dyn Display, object: &str, wanted: &Wanted<'_>) -> Result<Input> {
    let opened = match ending(path).as_str() {
        "parquet" | "parq" => parquet::open(path, wanted),
        "csv" => csv::open(path, b',', wanted),
        "tsv" => csv::open(path, b'\t', wanted),
        "json" | "jsonl" | "ndjson" => json::open(path, wanted),
        _ => Err(no_format()),
    };
    opened.and_then(|input| partitions::added(input, wanted, object)).map_err(|error| error.context(name))
}

/// What the names end with that say a format.
const ENDINGS: [&str; 7] = ["parquet", "parq", "csv", "tsv", "json", "jsonl", "ndjson"];

fn ending(path: &Path) -> String {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase()
}

fn no_format() -> Error {
    Error::invalid("its name says no format: .parquet, .csv, .tsv, .json, .jsonl or .ndjson; --text takes flat text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whether_its_object_is_read() {
        for ending in ENDINGS {
            let name = format!("in/a.{}", ending.to_uppercase());
            Formats.check_name(&name).unwrap();
            let wanted = Wanted { key: "id", columns: None, in_paths: &[], like: None };
            let error = open(Path::new(&format!("/nowhere/{name}")), &wanted).err().unwrap();
            assert!(!error.message().contains("no format"), "{error}");
        }
        for name in ["in/notes.txt", "in/csv", "in/.parquet", "in.csv/a", ""] {
            assert!(Formats.check_name(name).is_err(), "{name}");
        }
    }
}
