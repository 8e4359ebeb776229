//! Formats and compressions by the ending of a name: which can be read, by which reader, and what statements call them.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::avro::AvroFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use forebay_types::{Error, Result};

use crate::albis::TableFormat;
use crate::location::shown;

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Format {
    pub(crate) kind: Kind,
    pub(crate) compression: Compression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Parquet,
    Csv,
    Tsv,
    /// `.json`: an array, or an object a line.
    Json,
    /// `.ndjson` and `.jsonl`: an object a line.
    NdJson,
    Avro,
    Arrow,
    /// Forebay's table files.
    Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compression {
    None,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

/// What can be read, for messages.
const READABLE: &str =
    ".parquet, .csv, .tsv, .json, .ndjson, .avro, .arrow, .albis, and .csv, .tsv, .json, .ndjson with .gz, .bz2, .xz or .zst";

impl Format {
    /// The format that a file's name tells, if it tells one.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let (stem, last) = name.rsplit_once('.')?;
        let compression = match last {
            "gz" => Compression::Gzip,
            "bz2" => Compression::Bzip2,
            "xz" => Compression::Xz,
            "zst" | "zstd" => Compression::Zstd,
            _ => Compression::None,
        };
        let extension = if compression == Compression::None { last } else { stem.rsplit_once('.')?.1 };
        let kind = match extension {
            "parquet" | "parq" => Kind::Parquet,
            "csv" => Kind::Csv,
            "tsv" | "tab" => Kind::Tsv,
            "json" => Kind::Json,
            "ndjson" | "jsonl" => Kind::NdJson,
            "avro" => Kind::Avro,
            "arrow" | "arrows" | "feather" | "ipc" => Kind::Arrow,
            "albis" => Kind::Table,
            _ => return None,
        };
        let plain = matches!(kind, Kind::Parquet | Kind::Avro | Kind::Arrow | Kind::Table);
        (compression == Compression::None || !plain).then_some(Self { kind, compression })
    }

    /// The one format of some files. `Invalid`, naming files, when they have several or an unknown one.
    pub(crate) fn of_files<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut found: Option<(Self, &str)> = None;
        for name in names {
            let format = Self::of_name(name).ok_or_else(|| {
                Error::invalid(format!(
                    "'{text}': can't tell the format of {}: readable are {READABLE}; leave other files out with a pattern \
                     such as '*.parquet', or name the format with CREATE EXTERNAL TABLE ... STORED AS",
                    shown(name)
                ))
            })?;
            match found {
                Some((first, _)) if first == format => {}
                Some((_, first)) => {
                    return Err(Error::invalid(format!(
                        "'{text}' holds files of several formats, {} and {}: choose one with a pattern such as '*.parquet'",
                        shown(first),
                        shown(name)
                    )));
                }
                None => found = Some((format, name)),
            }
        }
        found.map(|(format, _)| format).ok_or_else(|| Error::not_found(format!("no files at '{text}'")))
    }

    /// The engine's reader, with the session's options. `array` tells a JSON array from an object a line.
    pub(crate) fn reader(self, state: &dyn Session, array: bool) -> Arc<dyn FileFormat> {
        let options = state.table_options();
        let compression = self.compression.of_engine();
        match self.kind {
            Kind::Parquet => Arc::new(ParquetFormat::default().with_options(options.parquet.clone())),
            Kind::Csv => Arc::new(CsvFormat::default().with_options(options.csv.clone()).with_file_compression_type(compression)),
            Kind::Tsv => Arc::new(
                CsvFormat::default()
                    .with_options(options.csv.clone())
                    .with_delimiter(b'\t')
                    .with_file_compression_type(compression),
            ),
            Kind::Json | Kind::NdJson => Arc::new(
                JsonFormat::default()
                    .with_options(options.json.clone())
                    .with_newline_delimited(!array)
                    .with_file_compression_type(compression),
            ),
            Kind::Avro => Arc::new(AvroFormat),
            Kind::Arrow => Arc::new(ArrowFormat),
            Kind::Table => Arc::new(TableFormat::default()),
        }
    }

    /// Whether it is Forebay's own table format.
    pub(crate) fn is_table(self) -> bool {
        self.kind == Kind::Table
    }

    /// What `COPY TO` and `STORED AS` call it.
    pub(crate) fn name(self) -> &'static str {
        match self.kind {
            Kind::Parquet => "PARQUET",
            Kind::Csv | Kind::Tsv => "CSV",
            Kind::Json | Kind::NdJson => "JSON",
            Kind::Avro => "AVRO",
            Kind::Arrow => "ARROW",
            Kind::Table => "ALBIS",
        }
    }

    /// The options that `COPY TO` and `STORED AS` need beside the name.
    pub(crate) fn options(self) -> HashMap<String, String> {
        let mut options = HashMap::new();
        if self.kind == Kind::Tsv {
            options.insert("format.delimiter".to_string(), "\t".to_string());
        }
        let compression = match self.compression {
            Compression::None => return options,
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        };
        options.insert("format.compression".to_string(), compression.to_string());
        options
    }
}

impl Compression {
    fn of_engine(self) -> FileCompressionType {
        let name = match self {
            Self::None => return FileCompressionType::UNCOMPRESSED,
            Self::Gzip => "GZIP",
            Self::Bzip2 => "BZIP2",
            Self::Xz => "XZ",
            Self::Zstd => "ZSTD",
        };
        FileCompressionType::from_str(name).unwrap_or(FileCompressionType::UNCOMPRESSED)
    }
}

#[cfg(test)]
mod tests {
    use super::{Compression, Format, Kind};

    #[test]
    fn formats_by_name() {
        let of = |name: &str| Format::of_name(name).map(|format| (format.kind, format.compression));
        assert_eq!(of("a/b.parquet"), Some((Kind::Parquet, Compression::None)));
        assert_eq!(of("a.b/x.CSV.gz"), Some((Kind::Csv, Compression::Gzip)));
        assert_eq!(of("x.tsv.zst"), Some((Kind::Tsv, Compression::Zstd)));
        assert_eq!((of("x"), of("a.csv/x"), of("x.parquet.gz"), of("x.gz")), (None, None, None, None));
    }

    #[test]
    fn mixed_and_unknown_formats_are_named() {
        let mixed = Format::of_files("/lake/x/", ["a.csv", "b.parquet"].into_iter()).unwrap_err();
        assert!(mixed.message().contains("/a.csv and /b.parquet"), "{mixed}");
        let unknown = Format::of_files("/lake/x/", ["a.doc"].into_iter()).unwrap_err();
        assert!(unknown.message().contains("a.doc") && unknown.message().contains("STORED AS"), "{unknown}");
    }
}
