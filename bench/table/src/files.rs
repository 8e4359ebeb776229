//! Writes the table in each format and layout when a case first asks for it, and keeps it for the others.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use bytes::Bytes;
use forebay_table::{Grouping, Options, Writer};
use forebay_types::{Error, Result, ResultExt};
use memmap2::MmapOptions;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::store_sales::{BATCH_ROWS, batches};

/// Columns that the case of a shared group reads.
pub const SHARED: [&str; 3] = ["ss_item_sk", "ss_quantity", "ss_net_paid"];

/// The same table in every format, written when it is asked for.
pub struct Files {
    pub dir: PathBuf,
    pub batches: Vec<RecordBatch>,
    _temporary: Option<TempDir>,
}

impl Files {
    pub fn new(dir: Option<PathBuf>, rows: usize) -> Result<Self> {
        let (dir, temporary) = match dir {
            Some(dir) => (dir.join(format!("store_sales-{rows}")), None),
            None => {
                let temporary = tempfile::tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        fs::create_dir_all(&dir).context(|| dir.display())?;
        Ok(Self { dir, batches: batches(rows), _temporary: temporary })
    }

    fn file(&self, name: &str, write: impl FnOnce(File) -> Result<()>) -> Result<PathBuf> {
        let path = self.dir.join(name);
        if !path.exists() {
            let new = self.dir.join(format!("{name}.new"));
            write(File::create(&new)?).context(|| new.display())?;
            fs::rename(&new, &path)?;
        }
        Ok(path)
    }

    fn table(&self, name: &str, grouping: Grouping) -> Result<PathBuf> {
        self.file(name, |file| write_table(file, &self.batches, grouping))
    }

    /// The column store.
    pub fn columns(&self) -> Result<Bytes> {
        map(&self.table("columns.albis", Grouping::columns())?)
    }

    /// The row store.
    pub fn rows(&self) -> Result<Bytes> {
        map(&self.table("rows.albis", Grouping::rows())?)
    }

    /// Three columns that share a group, the rest on their own.
    pub fn shared(&self) -> Result<Bytes> {
        map(&self.table("shared.albis", Grouping::columns().group(SHARED))?)
    }

    /// The predicate's column on its own, all others as rows.
    pub fn mixed(&self) -> Result<Bytes> {
        map(&self.table("mixed.albis", Grouping::columns().group(["ss_quantity"]).group(["*"]))?)
    }

    pub fn ipc_path(&self) -> Result<PathBuf> {
        self.file("store_sales.arrow", |file| write_ipc(file, &self.batches))
    }

    pub fn ipc(&self) -> Result<Bytes> {
        map(&self.ipc_path()?)
    }

    pub fn parquet(&self, codec: &str) -> Result<Bytes> {
        map(&self.file(&format!("{codec}.parquet"), |file| write_parquet(file, &self.batches, codec))?)
    }
}

pub fn write_table(sink: impl Write, batches: &[RecordBatch], grouping: Grouping) -> Result<()> {
    let mut writer = Writer::new(sink, batches[0].schema(), Options { grouping, ..Options::default() })?;
    batches.iter().try_for_each(|batch| writer.push(batch))?;
    writer.finish().map(|_| ())
}

fn write_ipc(file: File, batches: &[RecordBatch]) -> Result<()> {
    let odd = |error: arrow_schema::ArrowError| Error::internal(error.to_string());
    let mut writer = FileWriter::try_new(file, &batches[0].schema()).map_err(odd)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(odd)?;
    writer.finish().map_err(odd)
}

pub fn write_parquet(sink: impl Write + Send, batches: &[RecordBatch], codec: &str) -> Result<()> {
    let odd = |error: parquet::errors::ParquetError| Error::internal(error.to_string());
    let compression = match codec {
        "none" | "plain" => Compression::UNCOMPRESSED,
        "snappy" => Compression::SNAPPY,
        _ => Compression::ZSTD(ZstdLevel::default()),
    };
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(codec != "plain")
        .set_max_row_group_row_count(Some(16 * BATCH_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(sink, batches[0].schema(), Some(properties)).map_err(odd)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(odd)?;
    writer.close().map(|_| ()).map_err(odd)
}

/// Maps a file with all of its pages present.
#[allow(unsafe_code, reason = "a mapping is only as good as the file is left alone")]
fn map(path: &Path) -> Result<Bytes> {
    let file = File::open(path).context(|| path.display())?;
    // SAFETY: the benchmark wrote the file itself and nothing changes it while the benchmark runs.
    let map = unsafe { MmapOptions::new().populate().map(&file) }.context(|| path.display())?;
    Ok(Bytes::from_owner(map))
}
