//! Outputs in files of executors, read with every check: here, or as `handed` out elsewhere.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ballista_core::error::BallistaError;
use ballista_core::execution_plans::sort_shuffle::{ShuffleIndex, get_index_path, is_sort_shuffle_output};
use ballista_core::serde::scheduler::PartitionLocation;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::{Buffer, MutableBuffer};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamDecoder;
use datafusion::error::{DataFusionError, Result};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tokio_util::task::AbortOnDropHandle;

use super::handed::{Holders, Pieces};
use super::losses;
use super::place::{MapNumber, is_job_name, rows_of};
use crate::ports::Ways;

/// Bytes of a file here that are read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Outputs that are read in their order, and asked for at a time.
const AHEAD: usize = 8;

/// Outputs in files of executors. Ballista's own readers believe what is in them, where a damaged one leads anywhere in memory; here
/// every message is checked as it is decoded, and that all rows came.
#[derive(Clone)]
pub(crate) struct Files {
    holders: Holders,
    /// This executor, and its folder of files; none in other processes, which may have results only.
    own: Option<(String, PathBuf)>,
}

type Batches = BoxStream<'static, std::result::Result<RecordBatch, String>>;

impl Files {
    /// Those of executors elsewhere. Their connections are kept as long as this is.
    pub(crate) fn new(ways: &Ways) -> Self {
        Self { holders: Holders::kept(ways), own: None }
    }

    /// The same in an executor, whose own files lie in this folder.
    pub(crate) fn of_executor(ways: &Ways, executor: &str, folder: PathBuf) -> Self {
        Self { holders: Holders::new(ways), own: Some((executor.to_string(), folder)) }
    }

    /// The rows of an output.
    pub(crate) fn rows(&self, location: PartitionLocation) -> BoxStream<'static, Result<RecordBatch>> {
        let files = self.clone();
        stream::once(async move { files.open(location).await }).try_flatten().boxed()
    }

    /// The rows of outputs, one behind the other. Those that come next are asked for while the one before them is read.
    pub(crate) fn rows_of_each(&self, locations: Vec<PartitionLocation>) -> BoxStream<'static, Result<RecordBatch>> {
        let files = self.clone();
        let opened = stream::iter(locations).map(move |location| {
            let files = files.clone();
            // Whether or not it is its turn.
            let opening = AbortOnDropHandle::new(forebay_runtime::spawn(async move { files.open(location).await }));
            async move { opening.await.map_err(|error| DataFusionError::External(Box::new(error)))? }
        });
        opened.buffered(AHEAD).try_flatten().boxed()
    }

    async fn open(&self, location: PartitionLocation) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let pieces = self.pieces(&location).await.map_err(|why| gone(&location, &why))?;
        // Of a file with the outputs for all reducers Ballista 55 sends the beginning of the next one too: its two cursors share one
        // place in the file. Nothing of it makes a row.
        let rows = decoded(pieces, location.is_sort_shuffle);
        Ok(rows.map_err(move |why| gone(&location, &why)).boxed())
    }

    /// An output as its file has it.
    async fn pieces(&self, location: &PartitionLocation) -> std::result::Result<Pieces, String> {
        match &self.own {
            Some((executor, folder)) if *executor == location.executor_meta.id => {
                here(&path(folder, location)?, location.partition_id.partition_id)
            }
            _ => self.holders.ask(location).await,
        }
    }
}

/// Where an output of this executor lies. Plans say what jobs are called, and may say anything.
fn path(folder: &Path, location: &PartitionLocation) -> std::result::Result<PathBuf, String> {
    let job = location.partition_id.job_id.as_str();
    if !is_job_name(job) {
        return Err(format!("{job:?} is no name of a job"));
    }
    location.path(&folder.display().to_string()).map_err(|error| error.to_string())
}

/// What of a file is an output: all of it, or behind what all outputs of the file begin with, the part of this reducer.
fn here(path: &Path, reducer: usize) -> std::result::Result<Pieces, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    let mut parts = vec![(0, u64::MAX)];
    if is_sort_shuffle_output(path) {
        let index = ShuffleIndex::read_from_file(&get_index_path(path)).map_err(|error| error.to_string())?;
        if reducer >= index.partition_count() {
            return Err(format!("{} has no reducer {reducer}", path.display()));
        }
        let (start, end) = index.get_partition_range(reducer);
        let bytes = |from: i64, to: i64| Some((u64::try_from(from).ok()?, u64::try_from(to.checked_sub(from)?).ok()?));
        let found = [bytes(0, index.header_end_offset()), bytes(start, end)].into_iter().collect::<Option<Vec<_>>>();
        parts = found.ok_or_else(|| format!("{} has an index that means nothing", path.display()))?;
    }
    let (path, mut parts) = (path.display().to_string(), parts.into_iter());
    let mut left = 0;
    let pieces = std::iter::from_fn(move || {
        let mut next = || -> std::io::Result<Option<Bytes>> {
            loop {
                if left == 0 {
                    let Some((start, bytes)) = parts.next() else { return Ok(None) };
                    file.seek(SeekFrom::Start(start))?;
                    left = bytes;
                }
                let mut piece = vec![0; left.min(PIECE_BYTES as u64) as usize];
                let read = file.read(&mut piece)?;
                piece.truncate(read);
                match read {
                    0 => left = 0,
                    read => {
                        left -= read as u64;
                        return Ok(Some(piece.into()));
                    }
                }
            }
        };
        next().map_err(|error| format!("{path}: {error}")).transpose()
    });
    Ok(stream::iter(pieces).boxed())
}

/// The batches of pieces of one or more streams of Arrow messages, one behind the other, and with `has_more` a part of one that does
/// not count.
fn decoded(pieces: Pieces, has_more: bool) -> Batches {
    let state = (pieces, StreamDecoder::new(), Buffer::default());
    let next = move |(mut pieces, mut decoder, mut left): (Pieces, StreamDecoder, Buffer)| async move {
        loop {
            // It panics at types that nobody has.
            let next = catch_unwind(AssertUnwindSafe(|| decoder.decode(&mut left)));
            match next.map_err(|_| "the decoder gave up".to_string())? {
                Ok(Some(batch)) => return Ok(Some((batch, (pieces, decoder, left)))),
                Ok(None) if left.is_empty() => {}
                Ok(None) => continue,
                // One stream has ended, and another one follows.
                Err(ArrowError::IpcError(said)) if said == "Unexpected EOS" => {
                    decoder = StreamDecoder::new();
                    continue;
                }
                Err(error) => return Err(error.to_string()),
            }
            match pieces.next().await {
                Some(piece) => left = joined(&left, piece?),
                None if has_more => return Ok(None),
                None => return decoder.finish().map(|()| None).map_err(|error| error.to_string()),
            }
        }
    };
    stream::try_unfold(state, next).boxed()
}

fn joined(left: &Buffer, piece: Bytes) -> Buffer {
    if left.is_empty() {
        return Buffer::from(piece);
    }
    let mut both = MutableBuffer::new(left.len() + piece.len());
    both.extend_from_slice(left.as_slice());
    both.extend_from_slice(&piece);
    both.into()
}

/// Ballista's error for an output that is gone.
fn gone(location: &PartitionLocation, why: &str) -> DataFusionError {
    let part = &location.partition_id;
    let executor = location.executor_meta.id.clone();
    BallistaError::FetchFailed(executor, part.stage_id, part.partition_id, why.to_string()).into_datafusion()
}

/// What is told of outputs.
pub(crate) struct Told {
    /// None where one of them does not say.
    rows: Option<u64>,
    stage: usize,
    reducer: usize,
    /// Who has those that are in files.
    executors: String,
}

impl Told {
    pub(crate) fn of(locations: &[PartitionLocation]) -> Self {
        let part = locations.first().map(|location| &location.partition_id);
        let (stage, reducer) = part.map_or((0, 0), |part| (part.stage_id, part.partition_id));
        let in_files = locations.iter().filter(|location| MapNumber::of_output(location.file_id).is_none());
        let executors = losses::together(in_files.map(|location| location.executor_meta.id.as_str()));
        Self { rows: locations.iter().map(rows_of).sum(), stage, reducer, executors }
    }
}

/// These rows, and Ballista's error for an output that is gone when they end before all came that were told of: what is cut off between
/// two messages looks whole.
pub(crate) fn all(
    rows: impl futures::Stream<Item = Result<RecordBatch>> + Send + 'static,
    told: Told,
) -> BoxStream<'static, Result<RecordBatch>> {
    stream::try_unfold((rows.boxed(), told, 0), |(mut rows, told, mut came)| async move {
        if let Some(batch) = rows.try_next().await? {
            came += batch.num_rows() as u64;
            return Ok(Some((batch, (rows, told, came))));
        }
        match told.rows {
            Some(all) if all != came => {
                let why = format!("{came} rows of {all} came");
                Err(BallistaError::FetchFailed(told.executors, told.stage, told.reducer, why).into_datafusion())
            }
            _ => Ok(None),
        }
    })
    .boxed()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use ballista_core::JobId;
    use ballista_core::serde::scheduler::{
        ExecutorMetadata, ExecutorOperatingSystemSpecification, ExecutorSpecification, PartitionId, PartitionStats,
    };
    use datafusion::arrow::array::{Array, Int64Array, RecordBatchOptions, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::arrow::ipc::writer::{StreamEncoder, StreamWriter};

    use super::super::spare::Spare;
    use super::*;

    fn batch(from: i64) -> RecordBatch {
        let words: StringArray = (from..from + 3).map(|n| Some(format!("word {n}"))).collect();
        let numbers: Int64Array = (from..from + 3).map(Some).collect();
        let fields = vec![Field::new("n", DataType::Int64, true), Field::new("word", DataType::Utf8, true)];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(numbers), Arc::new(words)]).unwrap()
    }

    fn written(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    async fn read(bytes: Vec<u8>, piece: usize) -> std::result::Result<Vec<RecordBatch>, String> {
        let pieces: Vec<_> = bytes.chunks(piece).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        decoded(stream::iter(pieces).boxed(), false).try_collect().await
    }

    #[tokio::test]
    async fn streams_behind_each_other_are_read_in_whatever_pieces_they_come() {
        let both = [written(&[batch(0), batch(3)]), written(&[batch(6)])].concat();
        for piece in [1, 7, 100, both.len()] {
            assert_eq!(read(both.clone(), piece).await.unwrap(), [batch(0), batch(3), batch(6)], "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn rows_without_columns_that_found_no_room_in_nodes_are_all_read() {
        let folder = tempfile::tempdir().unwrap();
        let (schema, options) = (Arc::new(Schema::empty()), RecordBatchOptions::new().with_row_count(Some(5)));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
        let (job, number) = (JobId::from("j".to_string()), MapNumber::of_task(1));
        let mut spare = Spare::create(folder.path(), (&job, 3), 7, number, None).unwrap();
        let messages = StreamEncoder::try_new(&schema).unwrap().encode(&rows).unwrap();
        let parts: Vec<Bytes> = messages.iter().map(|message| Bytes::copy_from_slice(message)).collect();
        spare.add(&parts).unwrap();
        spare.end().unwrap();
        let path = folder.path().join(format!("j/3/7/data-{}.arrow", number.in_file()));
        let read: Vec<RecordBatch> = decoded(here(&path, 7).unwrap(), false).try_collect().await.unwrap();
        assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    }

    #[tokio::test]
    async fn a_damaged_file_is_an_error_and_never_rows_that_lead_anywhere() {
        let whole = written(&[batch(0), batch(3)]);
        assert!(read(whole[..whole.len() / 2].to_vec(), 100).await.is_err(), "cut in a message");
        let mut refused = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            // What decodes can be looked at.
            match read(damaged, 100).await {
                Ok(batches) => {
                    for batch in batches.iter().filter(|batch| batch.num_columns() == 2) {
                        batch.column(1).as_any().downcast_ref::<StringArray>().map(|words| words.iter().flatten().count());
                    }
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > whole.len() / 4, "{refused} of {}", whole.len());
    }

    /// What a task has left of a partition for another stage.
    pub(crate) fn output(stage_id: usize, partition_id: usize, partition_stats: PartitionStats) -> PartitionLocation {
        PartitionLocation {
            map_partition_id: 0,
            partition_id: PartitionId { job_id: JobId::from("j".to_string()), stage_id, partition_id },
            executor_meta: ExecutorMetadata {
                id: "e".to_string(),
                host: "127.0.0.1".to_string(),
                port: 1,
                grpc_port: 1,
                specification: ExecutorSpecification::default(),
                os_info: ExecutorOperatingSystemSpecification::default(),
            },
            partition_stats,
            file_id: Some(1),
            is_sort_shuffle: false,
        }
    }

    fn location(rows: Option<u64>) -> PartitionLocation {
        output(3, 7, PartitionStats::new(rows, None, None))
    }

    #[test]
    fn no_name_of_a_job_leads_out_of_the_folder() {
        let folder = Path::new("/folder");
        let of = |job: &str| {
            let mut location = location(None);
            location.partition_id.job_id = JobId::from(job.to_string());
            path(folder, &location)
        };
        assert_eq!(of("aB3-_").unwrap(), folder.join("aB3-_/3/7/data-1.arrow"));
        for job in ["", ".", "..", "../other", "a/../../other", "/etc", "a\0", "a\\b", "é"] {
            assert!(of(job).is_err(), "{job:?}");
        }
    }

    #[tokio::test]
    async fn what_ends_before_all_rows_came_is_lost() {
        let come = |told: &[Option<u64>]| {
            let told = Told::of(&told.iter().map(|rows| location(*rows)).collect::<Vec<_>>());
            all(stream::iter([Ok(batch(0)), Ok(batch(3))]), told).try_collect::<Vec<_>>()
        };
        for told in [&[Some(6)][..], &[Some(2), Some(4)], &[Some(2), None], &[None]] {
            assert_eq!(come(told).await.unwrap().len(), 2, "{told:?}");
        }
        for told in [&[Some(7)][..], &[Some(6), Some(1)], &[Some(5)], &[Some(0)]] {
            let error = come(told).await.unwrap_err().to_string();
            assert!(error.contains("6 rows of") && crate::broken_off::is_gone(&error), "{error}");
        }
    }
}
