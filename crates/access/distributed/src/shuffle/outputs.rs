//! Writes a task's rows for its reducers: blocks in bags, small outputs together in a table, files where there is no room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::JobId;
use ballista_core::serde::protobuf::ShuffleWritePartition;
use bytes::Bytes;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamEncoder};
use datafusion::error::{DataFusionError, Result};
use forebay_client::{CreateOptions, NodeBlock, NodeError, NodeResult, NodeType, StorageClass};
use forebay_types::Error;
use futures::{StreamExt, TryStreamExt, stream};
use tokio_util::task::AbortOnDropHandle;

use super::place::{MapNumber, StagePlace};
use super::spare::Spare;
use super::{Shared, failed};

/// Bytes of a block, and of what a message of rows is cut down to so that it lies in one.
const BLOCK_BYTES: usize = 1 << 20;
const MESSAGE_BYTES: usize = BLOCK_BYTES - (32 << 10);
/// An output of at most so many bytes goes with others of its task in one message.
const SMALL_BYTES: usize = 4 << 10;
/// Blocks of a task on their way to their worker.
const SENDING_MAX: usize = 8;
/// Blocks of a file that are made part of it with one call, and how long the first of them may wait for the others: a worker
/// drops blocks that are nobody's after five minutes.
const ADDED: usize = 8;
pub(super) const SETTLE: Duration = Duration::from_secs(15);
/// Outputs that are finished at a time.
const FINISHING: usize = 16;

/// Which task writes, and where.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) job: JobId,
    pub(super) stage: usize,
    pub(super) number: MapNumber,
    pub(super) class: StorageClass,
}

/// What a task has for its reducers. Each output is one stream of Arrow messages, none of which lies across two blocks unless
/// it is larger than one: a reader beside the worker has its columns where they lie.
pub(super) struct Outputs {
    writer: Arc<Writer>,
    schema: SchemaRef,
    outputs: Vec<Output>,
    sending: VecDeque<Sending>,
    /// There was no room, or no worker: everything else goes to files.
    spared: bool,
}

struct Output {
    reducer: usize,
    encoder: StreamEncoder,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    /// Blocks with their worker that are not part of the file yet.
    sent: Vec<NodeBlock>,
    sent_since: Option<Instant>,
    /// There is a file.
    is_made: bool,
    /// Blocks of it were sent.
    was_sent: bool,
    spare: Option<Spare>,
    batches: u64,
    rows: u64,
    bytes: u64,
}

struct Sending {
    output: usize,
    block: AbortOnDropHandle<NodeResult<NodeBlock>>,
    parts: Vec<Bytes>,
}

impl Writer {
    fn place(&self) -> StagePlace {
        StagePlace::new(&self.job, self.stage)
    }

    fn path(&self, reducer: usize) -> String {
        format!("{}/{}", self.place().bag(reducer), self.number.name())
    }

    /// Makes the file of an output.
    async fn make(&self, reducer: usize) -> NodeResult<()> {
        let place = self.place();
        self.shared.make(place.directory(), NodeType::Directory).await?;
        self.shared.make(&place.bag(reducer), NodeType::Bag).await?;
        self.shared.nodes.create(&self.path(reducer), CreateOptions::new(NodeType::File)).await
    }

    /// Puts small outputs into the stage's table, many with one message.
    async fn put_small(&self, outputs: impl Iterator<Item = &Output>) -> Result<()> {
        let values: Vec<(String, Bytes)> =
            outputs.map(|output| (self.number.key(output.reducer), output.pending.concat().into())).collect();
        if values.is_empty() {
            return Ok(());
        }
        let (place, table) = (self.place(), self.place().table());
        let put = async {
            self.shared.make(place.directory(), NodeType::Directory).await?;
            self.shared.make(&table, NodeType::Table).await?;
            let values: Vec<(&str, Bytes)> = values.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
            self.shared.nodes.put_many(&table, &values).await?.into_iter().collect::<NodeResult<Vec<()>>>()
        };
        put.await.map(drop).map_err(|error| self.broken(error))
    }

    /// The names of a stage can't be written to: its tasks are to run again, and use files then.
    fn broken(&self, error: NodeError) -> DataFusionError {
        self.shared.note_full(&self.job, self.stage, &error);
        DataFusionError::IoError(std::io::Error::other(Error::from(error)))
    }
}

impl Outputs {
    /// One for each of these reducers.
    pub(super) fn new(writer: Arc<Writer>, schema: SchemaRef, reducers: &[usize]) -> Result<Self> {
        // Bytes on disk cost more than making them fewer does; in memory it is the other way round.
        let codec = (writer.class == StorageClass::Disk).then_some(CompressionType::LZ4_FRAME);
        let options = IpcWriteOptions::default().try_with_compression(codec)?;
        let output = |reducer: &usize| {
            Ok(Output {
                reducer: *reducer,
                encoder: StreamEncoder::try_new_with_options(&schema, options.clone())?,
                pending: Vec::new(),
                pending_bytes: 0,
                sent: Vec::new(),
                sent_since: None,
                is_made: false,
                was_sent: false,
                spare: None,
                batches: 0,
                rows: 0,
                bytes: 0,
            })
        };
        let outputs = reducers.iter().map(output).collect::<Result<Vec<_>>>()?;
        let spared = writer.shared.is_full(&writer.job, writer.stage);
        Ok(Self { writer, schema, outputs, sending: VecDeque::new(), spared })
    }

    /// Adds rows to the output with this index. Waits when there is much on its way.
    pub(super) async fn add(&mut self, index: usize, batch: &RecordBatch) -> Result<()> {
        let bytes: usize = batch.columns().iter().map(|column| slice_bytes(column.as_ref())).sum();
        let rows = batch.num_rows();
        let mut step = rows.max(1);
        if bytes > MESSAGE_BYTES {
            // Bits are not cut within a byte.
            step = (rows * MESSAGE_BYTES / bytes / 8 * 8).max(1);
        }
        let output = &mut self.outputs[index];
        (output.rows, output.bytes) = (output.rows + rows as u64, output.bytes + bytes as u64);
        for start in (0..rows).step_by(step) {
            let part = compact(&batch.slice(start, step.min(rows - start)))?;
            let output = &mut self.outputs[index];
            output.batches += 1;
            let message: Vec<Bytes> = output.encoder.encode(&part)?.into_iter().filter_map(bytes_of).collect();
            self.push(index, message).await?;
        }
        Ok(())
    }

    /// Adds a message, in the block that is being filled when it fits.
    async fn push(&mut self, index: usize, message: Vec<Bytes>) -> Result<()> {
        let len: usize = message.iter().map(Bytes::len).sum();
        if self.outputs[index].pending_bytes + len > BLOCK_BYTES {
            self.send(index).await?;
        }
        for mut part in message {
            while self.outputs[index].pending_bytes + part.len() > BLOCK_BYTES {
                let room = BLOCK_BYTES - self.outputs[index].pending_bytes;
                let head = part.split_to(room);
                self.outputs[index].push(head);
                self.send(index).await?;
            }
            self.outputs[index].push(part);
        }
        assert!(self.outputs[index].pending_bytes <= BLOCK_BYTES, "no more is kept back than a block");
        Ok(())
    }

    /// Sends what an output has pending as a block.
    async fn send(&mut self, index: usize) -> Result<()> {
        let output = &mut self.outputs[index];
        if output.pending.is_empty() {
            return Ok(());
        }
        let pending_bytes = std::mem::take(&mut output.pending_bytes);
        output.was_sent = true;
        let parts = std::mem::take(&mut output.pending);
        assert_eq!(parts.iter().map(Bytes::len).sum::<usize>(), pending_bytes, "what is kept back was counted");
        if self.spared {
            // What was sent before it lies before it.
            while !self.sending.is_empty() {
                self.sent_one().await?;
            }
            return self.spare(index, &parts);
        }
        let (writer, own, reducer) = (Arc::clone(&self.writer), parts.clone(), output.reducer);
        let sent = async move {
            let shared = &writer.shared;
            shared.nodes.send_block_of(&writer.path(reducer), shared.beside, writer.class, own).await
        };
        let block = AbortOnDropHandle::new(forebay_runtime::spawn(sent));
        self.sending.push_back(Sending { output: index, block, parts });
        while self.sending.len() > SENDING_MAX {
            self.sent_one().await?;
        }
        assert!(self.sending.len() <= SENDING_MAX, "{} blocks are on their way", self.sending.len());
        Ok(())
    }

    /// Waits for the block that was sent first.
    async fn sent_one(&mut self) -> Result<()> {
        let Some(Sending { output: index, block, parts }) = self.sending.pop_front() else { return Ok(()) };
        let block = block.await.map_err(|error| failed(Error::internal(error.to_string())))?;
        match block {
            Ok(block) if !self.spared => {
                let output = &mut self.outputs[index];
                debug_assert!(output.was_sent, "a block that is with its worker was sent");
                output.sent.push(block);
                output.sent_since.get_or_insert_with(forebay_runtime::now);
                assert!(output.sent.len() <= ADDED, "{} blocks wait to be part of their file", output.sent.len());
                if output.sent.len() >= ADDED { self.settle(index).await } else { Ok(()) }
            }
            // What comes after something that lies in a file lies there too: an output may be sorted.
            Ok(_) => self.spare(index, &parts),
            Err(error) => {
                self.writer.shared.note_full(&self.writer.job, self.writer.stage, &error);
                self.spared = true;
                self.spare(index, &parts)
            }
        }
    }

    /// Makes the blocks that are with their workers part of an output's file.
    async fn settle(&mut self, index: usize) -> Result<()> {
        let (writer, output) = (Arc::clone(&self.writer), &mut self.outputs[index]);
        output.settle(&writer).await
    }

    /// Makes those blocks part of their files that have waited for long.
    pub(super) async fn settle_old(&mut self) -> Result<()> {
        let is_old = |output: &Output| output.sent_since.is_some_and(|since| since.elapsed() >= SETTLE);
        for index in 0..self.outputs.len() {
            if is_old(&self.outputs[index]) {
                self.settle(index).await?;
            }
        }
        Ok(())
    }

    /// Writes to a file of this executor.
    fn spare(&mut self, index: usize, parts: &[Bytes]) -> Result<()> {
        debug_assert!(self.spared, "rows go to a file from when nodes had no room for some");
        let (writer, schema, output) = (&self.writer, &self.schema, &mut self.outputs[index]);
        let spare = match &mut output.spare {
            Some(spare) => spare,
            None => {
                let is_rest = output.is_made || !output.sent.is_empty();
                let place = (&writer.job, writer.stage);
                let folder = &writer.shared.folder;
                let spare = Spare::create(folder, place, output.reducer, writer.number, is_rest.then_some(schema))?;
                output.spare.insert(spare)
            }
        };
        spare.add(parts)
    }

    /// Everything is where it is said to be when this returns.
    pub(super) async fn finish(mut self) -> Result<Vec<ShuffleWritePartition>> {
        let mut small = Vec::new();
        for index in 0..self.outputs.len() {
            let output = &self.outputs[index];
            if output.is_whole() && output.pending_bytes <= SMALL_BYTES && !self.spared {
                small.extend((output.pending_bytes > 0).then_some(index));
            } else {
                self.send(index).await?;
            }
        }
        while !self.sending.is_empty() {
            self.sent_one().await?;
        }
        if self.spared {
            for index in small.drain(..) {
                self.send(index).await?;
            }
        }
        self.outputs.iter_mut().filter_map(|output| output.spare.as_mut()).try_for_each(Spare::end)?;
        let writer = Arc::clone(&self.writer);
        writer.put_small(small.iter().map(|index| &self.outputs[*index])).await?;
        let settling: Vec<_> = self.outputs.iter_mut().map(|output| output.settle(&writer)).collect();
        stream::iter(settling).buffer_unordered(FINISHING).try_collect::<Vec<()>>().await?;
        let small = |index| small.binary_search(&index).is_ok();
        let mut outputs = self.outputs.iter().enumerate();
        assert!(outputs.all(|(index, output)| output.pending.is_empty() != small(index)), "what is kept back is in the table");
        Ok(self.outputs.iter().enumerate().flat_map(|(index, output)| output.places(writer.number, small(index))).collect())
    }
}

impl Output {
    /// Whether none of it went anywhere.
    fn is_whole(&self) -> bool {
        !self.is_made && !self.was_sent && self.spare.is_none()
    }

    fn push(&mut self, part: Bytes) {
        self.pending_bytes += part.len();
        self.pending.push(part);
    }

    async fn settle(&mut self, writer: &Writer) -> Result<()> {
        debug_assert_eq!(self.sent.is_empty(), self.sent_since.is_none(), "blocks wait from when the first of them was there");
        if self.sent.is_empty() {
            return Ok(());
        }
        self.sent_since = None;
        let blocks = std::mem::take(&mut self.sent);
        let settled = async {
            if !self.is_made {
                writer.make(self.reducer).await?;
                self.is_made = true;
            }
            writer.shared.nodes.append_blocks(&writer.path(self.reducer), blocks).await
        };
        settled.await.map(drop).map_err(|error| writer.broken(error))
    }

    /// As Ballista is told. What is in a file comes after what is in nodes.
    fn places(&self, number: MapNumber, small: bool) -> Vec<ShuffleWritePartition> {
        let place = |file_id: u64, rows: u64, bytes: u64, batches: u64| ShuffleWritePartition {
            partition_id: self.reducer as u64,
            num_batches: batches,
            num_rows: rows,
            num_bytes: bytes,
            file_id: Some(file_id),
            is_sort_shuffle: false,
        };
        let in_nodes = small || self.is_made;
        let mut places = Vec::new();
        if in_nodes {
            places.push(place(number.in_nodes(small), self.rows, self.bytes, self.batches));
        }
        if self.spare.is_some() {
            // Counted once.
            let (rows, bytes, batches) = if in_nodes { (0, 0, 0) } else { (self.rows, self.bytes, self.batches) };
            places.push(place(number.in_file(), rows, bytes, batches));
        }
        assert!(self.rows == 0 || !places.is_empty(), "{} rows are somewhere", self.rows);
        places
    }
}

/// The bytes of a buffer where they lie.
fn bytes_of(buffer: Buffer) -> Option<Bytes> {
    struct Owner(Buffer);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice()
        }
    }
    (!buffer.is_empty()).then(|| Bytes::from_owner(Owner(buffer)))
}

/// Bytes of the rows of an array, without those of what it is a part of.
fn slice_bytes(array: &dyn Array) -> usize {
    let viewed = match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    viewed + array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// Columns of views may refer to bytes of many more rows than they have, all of which would be written.
fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as _,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()) as _,
        _ => Arc::clone(column),
    });
    Ok(RecordBatch::try_new_with_options(
        batch.schema(),
        columns.collect(),
        &datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
    )?)
}
