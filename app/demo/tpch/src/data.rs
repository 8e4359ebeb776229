//! The tables as Parquet files, made by all cores once for each scale and found again by later runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use forebay_types::{Error, Result, ResultExt};
use tpchgen::generators as made;
use tpchgen_arrow as columns;

/// Rows of a row group: columns of it are some hundred kilobytes each, as engines write them.
const ROW_GROUP_ROWS: usize = 122_880;
/// Changes with everything that changes the files.
const LAYOUT: u32 = 1;

/// The data on this machine.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The folder that holds a folder a table.
    pub folder: PathBuf,
    /// Scale factor.
    pub scale: f64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Told how many thousand rows more are made, of how many thousand in all.
pub type Progress = dyn Fn(u64, u64) + Send + Sync;

/// Makes the tables as Parquet in a folder below `folder`, unless they are there from an earlier run.
pub async fn prepare(folder: &Path, scale: f64, progress: impl Fn(u64, u64) + Send + Sync + 'static) -> Result<Tables> {
    let folder = folder.join(format!("tpch-sf{scale}"));
    let made = tokio::task::spawn_blocking({
        let folder = folder.clone();
        move || make(&folder, scale, &progress)
    });
    made.await.map_err(|error| Error::internal(format!("making the data ended early: {error}")))??;
    let bytes = bytes_below(&folder).context(|| folder.display())?;
    Ok(Tables { folder, scale, bytes })
}

fn make(folder: &Path, scale: f64, progress: &Progress) -> Result<()> {
    let marker = folder.join("complete");
    if fs::read_to_string(&marker).is_ok_and(|layout| layout == LAYOUT.to_string()) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).context(|| folder.display())?;
    }
    let parts = parts(scale);
    for (table, ..) in &parts {
        let table = folder.join(table);
        fs::create_dir_all(&table).context(|| table.display())?;
    }
    let total = parts.iter().map(|part| part.3).sum();
    write_all(folder, scale, parts, &|rows| progress(rows, total))?;
    fs::write(&marker, LAYOUT.to_string()).context(|| marker.display())
}

type Part = (&'static str, i32, i32, u64);

/// (table, part, parts, rows in thousands): the largest first, so that all cores end at about the same time.
fn parts(scale: f64) -> Vec<Part> {
    let count = |each: f64| (scale * each).ceil().max(1.0) as i32;
    let tables = [
        ("lineitem", count(4.0), 6000.0 * scale),
        ("orders", count(2.0), 1500.0 * scale),
        ("partsupp", count(2.0), 800.0 * scale),
        ("part", count(1.0), 200.0 * scale),
        ("customer", count(1.0), 150.0 * scale),
        ("supplier", 1, 10.0 * scale),
        ("nation", 1, 0.0),
        ("region", 1, 0.0),
    ];
    let parts = tables
        .into_iter()
        .flat_map(|(table, parts, rows)| (1..=parts).map(move |part| (table, part, parts, (rows / f64::from(parts)) as u64 + 1)));
    parts.collect()
}

/// Every core takes the next part until none is left.
fn write_all(folder: &Path, scale: f64, parts: Vec<Part>, done: &(dyn Fn(u64) + Sync)) -> Result<()> {
    let (send, receive) = mpsc::channel();
    for part in parts {
        // The receiver lives in this function.
        let _ = send.send(part);
    }
    drop(send);
    let queue = parking_lot::Mutex::new(receive);
    thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = queue.lock().try_recv();
                let Ok((table, part, parts, rows)) = next else { return Ok(()) };
                let file = folder.join(table).join(format!("{table}-{part}.parquet"));
                write(&file, batches(table, scale, part, parts)).context(|| file.display())?;
                done(rows);
            }
        };
        let threads: Vec<_> = (0..thread::available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::internal("making the data panicked"))?)
    })
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

fn batches(table: &str, scale: f64, part: i32, parts: i32) -> Batches {
    match table {
        "lineitem" => Box::new(columns::LineItemArrow::new(made::LineItemGenerator::new(scale, part, parts))),
        "orders" => Box::new(columns::OrderArrow::new(made::OrderGenerator::new(scale, part, parts))),
        "partsupp" => Box::new(columns::PartSuppArrow::new(made::PartSuppGenerator::new(scale, part, parts))),
        "part" => Box::new(columns::PartArrow::new(made::PartGenerator::new(scale, part, parts))),
        "customer" => Box::new(columns::CustomerArrow::new(made::CustomerGenerator::new(scale, part, parts))),
        "supplier" => Box::new(columns::SupplierArrow::new(made::SupplierGenerator::new(scale, part, parts))),
        "nation" => Box::new(columns::NationArrow::new(made::NationGenerator::new(scale, part, parts))),
        _ => Box::new(columns::RegionArrow::new(made::RegionGenerator::new(scale, part, parts))),
    }
}

fn write(file: &Path, batches: Batches) -> Result<()> {
    let failed = |error: String| Error::internal(format!("can't write Parquet: {error}"));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let mut file = Some((File::create(file)?, properties));
    let mut writer = None;
    for batch in batches {
        let batch = batch.map_err(|error| failed(error.to_string()))?;
        if let Some((file, properties)) = file.take() {
            let opened = ArrowWriter::try_new(file, batch.schema(), Some(properties));
            writer = Some(opened.map_err(|error| failed(error.to_string()))?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch).map_err(|error| failed(error.to_string()))?;
        }
    }
    match writer {
        Some(writer) => writer.close().map(|_| ()).map_err(|error| failed(error.to_string())),
        None => Err(failed("a table without rows".to_string())),
    }
}

fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { bytes_below(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
