//! Reads outputs back from temporary nodes as rows, and tells one that is gone or short as lost, so that it is made again.

use std::sync::Arc;

use ballista_core::error::BallistaError;
use ballista_core::serde::scheduler::PartitionLocation;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::ipc::reader::StreamDecoder;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::{Count, Time};
use forebay_client::NodeError;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

use super::Shared;
use super::losses;
use super::place::{MapNumber, StagePlace, rows_of};
use super::spare::END;

/// Bytes of an output, or why they can't be read, with the index of its location.
type Piece = std::result::Result<(usize, Bytes), (usize, NodeError)>;

/// What reading counts.
#[derive(Clone)]
pub(super) struct Counts {
    pub(super) time: Time,
    pub(super) bytes: Count,
}

/// The rows of outputs in nodes, those of one output in their order. What can't be read, or has other rows than its task told,
/// is told as what its task must run again for. `is_all` where no rest of these outputs lies elsewhere.
pub(super) fn rows(
    shared: &Arc<Shared>,
    locations: Vec<PartitionLocation>,
    counts: Counts,
    schema: &Schema,
    is_all: bool,
) -> BoxStream<'static, Result<RecordBatch>> {
    let locations: Arc<[PartitionLocation]> = locations.into();
    let (pieces, shared) = (pieces(shared, &locations), Arc::clone(shared));
    let bodiless = schema.fields().iter().all(|field| field.data_type().is_null());
    let rows = vec![0; locations.len()];
    let read = Read { shared, pieces, locations, rows, is_all, current: None, left: Buffer::default(), counts, bodiless };
    stream::try_unfold(read, |mut read| async move {
        let time = read.counts.time.clone();
        let timer = time.timer();
        let next = read.next().await;
        timer.done();
        Ok(next?.map(|batch| (batch, read)))
    })
    .boxed()
}

struct Read {
    shared: Arc<Shared>,
    pieces: BoxStream<'static, Piece>,
    locations: Arc<[PartitionLocation]>,
    /// Read of each location so far.
    rows: Vec<u64>,
    is_all: bool,
    current: Option<(usize, StreamDecoder)>,
    left: Buffer,
    counts: Counts,
    /// Rows are counted only: their messages have no bytes after their heads.
    bodiless: bool,
}

impl Read {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next_of_any().await?;
        match &next {
            Some((index, batch)) => self.rows[*index] += batch.num_rows() as u64,
            None => self.all_came().await?,
        }
        Ok(next.map(|(_, batch)| batch))
    }

    /// Each output had the rows that its task told of: a file or a stream that ends between two messages looks whole.
    async fn all_came(&mut self) -> Result<()> {
        let told = self.locations.iter().map(rows_of);
        let differs = |(index, told): (usize, Option<u64>)| {
            let (read, told) = (self.rows[index], told?);
            let differs = read > told || (self.is_all && read < told);
            differs.then(|| (index, format!("{read} rows of {told} came")))
        };
        match told.enumerate().find_map(differs) {
            Some((index, why)) => Err(lost(&self.shared, &self.locations, index, &why).await),
            None => Ok(()),
        }
    }

    /// With the index of the location that it is of.
    async fn next_of_any(&mut self) -> Result<Option<(usize, RecordBatch)>> {
        loop {
            if let Some((index, decoder)) = &mut self.current
                && !self.left.is_empty()
            {
                let index = *index;
                match decoder.decode(&mut self.left) {
                    Ok(None) => {}
                    Ok(Some(batch)) => return Ok(Some((index, batch))),
                    Err(error) => return Err(lost(&self.shared, &self.locations, index, &error.to_string()).await),
                }
            }
            match self.pieces.next().await {
                None => return self.end().await,
                Some(Err((index, error))) => return Err(lost(&self.shared, &self.locations, index, &error.to_string()).await),
                Some(Ok((index, bytes))) => {
                    let last = match self.current.as_ref().is_none_or(|(current, _)| *current != index) {
                        true => {
                            let last = self.end().await?;
                            self.current = Some((index, StreamDecoder::new()));
                            last
                        }
                        false => None,
                    };
                    self.counts.bytes.add(bytes.len());
                    self.left = Buffer::from(bytes);
                    if last.is_some() {
                        return Ok(last);
                    }
                }
            }
        }
    }

    /// The current output is read, up to the batch that may be left of it: the decoder looks at a message when there is something
    /// after its head, which a last one without columns does not have. What is in nodes has no end of its own.
    async fn end(&mut self) -> Result<Option<(usize, RecordBatch)>> {
        let Some((index, mut decoder)) = self.current.take() else { return Ok(None) };
        let mut end = Buffer::from(&END);
        let mut last = Ok(None);
        while self.bodiless && !end.is_empty() && matches!(last, Ok(None)) {
            last = decoder.decode(&mut end);
        }
        let ended = match last {
            // The end itself is still to be read.
            Ok(Some(batch)) => Ok(Some(batch)),
            Ok(None) => decoder.finish().map(|()| None),
            Err(error) => Err(error),
        };
        match ended {
            Ok(last) => Ok(last.map(|batch| (index, batch))),
            Err(error) => Err(lost(&self.shared, &self.locations, index, &error.to_string()).await),
        }
    }
}

/// Ballista's error for an output that is gone: it runs the tasks again that wrote it. When the container is gone that it was
/// in, so are the outputs of others.
async fn lost(shared: &Shared, locations: &[PartitionLocation], index: usize, why: &str) -> DataFusionError {
    let location = &locations[index];
    let (gone, part) = (container(location), &location.partition_id);
    let mut executors = vec![location.executor_meta.id.as_str()];
    if !matches!(shared.nodes.stat(&gone).await, Ok(Some(_))) {
        let others = locations.iter().filter(|other| container(other) == gone);
        executors.extend(others.map(|other| other.executor_meta.id.as_str()));
    }
    let executors = losses::together(executors);
    tracing::info!(job = %part.job_id, stage = part.stage_id, reducer = part.partition_id, why, executors, "an output is lost");
    BallistaError::FetchFailed(executors, part.stage_id, part.partition_id, why.to_string()).into_datafusion()
}

/// The bag or table that an output is in.
fn container(location: &PartitionLocation) -> String {
    let part = &location.partition_id;
    let place = StagePlace::new(&part.job_id, part.stage_id);
    if MapNumber::is_small(location.file_id) { place.table() } else { place.bag(part.partition_id) }
}

/// Small ones together, then the others, read ahead across their borders.
fn pieces(shared: &Arc<Shared>, locations: &[PartitionLocation]) -> BoxStream<'static, Piece> {
    let (mut small, mut keys, mut large, mut paths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut table = String::new();
    for (index, location) in locations.iter().enumerate() {
        let Some(number) = MapNumber::of_output(location.file_id) else { continue };
        if MapNumber::is_small(location.file_id) {
            small.push(index);
            keys.push(number.key(location.partition_id.partition_id));
            table = container(location);
        } else {
            large.push(index);
            paths.push(format!("{}/{}", container(location), number.name()));
        }
    }
    let nodes = shared.nodes.clone();
    let few = async move {
        if keys.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let values = match nodes.get_many(&table, &names).await {
            Ok(values) => values,
            Err(error) => return vec![Err((small[0], error))],
        };
        let piece = |(index, value): (usize, std::result::Result<Bytes, NodeError>)| match value {
            Ok(bytes) => Ok((index, bytes)),
            Err(error) => Err((index, error)),
        };
        small.into_iter().zip(values).map(piece).collect()
    };
    let few = few.into_stream().flat_map(stream::iter);
    let many = shared.nodes.read_each(paths).map(move |piece| match piece {
        Ok((index, bytes)) => Ok((large[index], bytes)),
        Err((index, error)) => Err((large[index], error)),
    });
    few.chain(many).boxed()
}
