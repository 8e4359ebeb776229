//! Arrow IPC files and streams as a scan reads them: fetched a little ahead, decoded message by message.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::{Block, MessageHeader, MetadataVersion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::Result as EngineResult;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore};

use super::columns::{Arranged, Asked};
use super::footer::{Footer, footer};
use super::messages::{Messages, metadata_of, prefix_bytes};
use super::stream as streams;
use crate::paths::guard::fault::{Result, damage};
use crate::paths::guard::input::Input;

/// Bytes of messages that are asked for at once.
const TOGETHER_BYTES: u64 = 8 << 20;
/// How many of those are on their way.
const AHEAD: usize = 2;

/// Opens Arrow IPC files, and streams in files: what it is, a file says itself.
pub(in crate::paths::guard) struct ArrowOpener {
    pub(in crate::paths::guard) store: Arc<dyn ObjectStore>,
    pub(in crate::paths::guard) asked: Asked,
    pub(in crate::paths::guard) decoded_bytes_max: u64,
}

type Rows = BoxStream<'static, Result<RecordBatch>>;

/// The schema of a file or stream.
pub(in crate::paths::guard) async fn schema(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Result<SchemaRef> {
    if let Some(footer) = footer(store, file).await? { Ok(footer.schema) } else { streams::schema(store, file).await }
}

impl FileOpener for ArrowOpener {
    fn open(&self, part: PartitionedFile) -> EngineResult<FileOpenFuture> {
        let (store, asked, decoded_bytes_max) = (Arc::clone(&self.store), self.asked.clone(), self.decoded_bytes_max);
        Ok(Box::pin(async move {
            let file = part.object_meta;
            let part = part.range.map_or(0..i64::MAX, |range| range.start..range.end);
            let rows = match footer(&store, &file).await {
                Ok(Some(footer)) => of_file(&store, &file, footer, part, &asked, decoded_bytes_max).await,
                Ok(None) => of_stream(&store, &file, &asked, decoded_bytes_max).await,
                Err(fault) => Err(fault),
            };
            let rows = rows.map_err(|fault| fault.of(&file))?;
            Ok(rows.map_err(move |fault| fault.of(&file)).boxed())
        }))
    }
}

/// The rows of those messages of a file that begin in a part of it.
async fn of_file(
    store: &Arc<dyn ObjectStore>,
    file: &ObjectMeta,
    footer: Footer,
    part: Range<i64>,
    asked: &Asked,
    decoded_bytes_max: u64,
) -> Result<Rows> {
    let (columns, arranged) = asked.of(&footer.schema, decoded_bytes_max)?;
    let mut messages = Messages::new(footer.schema, footer.version, columns, decoded_bytes_max);
    let mut dictionaries = fetched(store, file, footer.dictionaries);
    while let Some(together) = dictionaries.try_next().await? {
        for (block, bytes) in together {
            messages.take_dictionary(bytes, head_bytes(&block))?;
        }
    }
    let batches = footer.batches.into_iter().filter(|block| part.contains(&block.offset())).collect();
    let messages = Arc::new(messages);
    let rows = fetched(store, file, batches).map_ok(move |together| {
        let messages = Arc::clone(&messages);
        let decode = move |(block, bytes): (Block, Bytes)| messages.rows(bytes, head_bytes(&block)).transpose();
        stream::iter(together).filter_map(move |one| std::future::ready(decode(one)))
    });
    Ok(in_order(rows.try_flatten().boxed(), arranged))
}

/// Rows with the columns that are asked for.
fn in_order(rows: Rows, arranged: Option<Arranged>) -> Rows {
    if let Some(arranged) = arranged { rows.and_then(move |rows| std::future::ready(arranged.rows(&rows))).boxed() } else { rows }
}

/// Bytes of a message before its body; that there are so many was checked with the footer.
fn head_bytes(block: &Block) -> usize {
    block.metaDataLength() as usize
}

/// The bytes of messages, those that lie close by asked for together.
fn fetched(
    store: &Arc<dyn ObjectStore>,
    file: &ObjectMeta,
    blocks: Vec<Block>,
) -> BoxStream<'static, Result<Vec<(Block, Bytes)>>> {
    let (store, location) = (Arc::clone(store), file.location.clone());
    let fetch = move |blocks: Vec<Block>| {
        let (store, location) = (Arc::clone(&store), location.clone());
        async move {
            let ranges: Vec<_> = blocks.iter().map(span).collect();
            let all = store.get_ranges(&location, &ranges).await?;
            match all.iter().zip(&ranges).all(|(bytes, range)| bytes.len() as u64 == range.end - range.start) {
                true => Ok(blocks.into_iter().zip(all).collect()),
                false => damage("it is shorter than its store says"),
            }
        }
    };
    stream::iter(together(blocks)).map(fetch).buffered(AHEAD).boxed()
}

fn span(block: &Block) -> Range<u64> {
    let start = block.offset() as u64;
    start..start + block.metaDataLength() as u64 + block.bodyLength() as u64
}

/// Messages in groups of few bytes.
fn together(blocks: Vec<Block>) -> Vec<Vec<Block>> {
    let (mut groups, mut bytes) = (Vec::<Vec<Block>>::new(), 0);
    for block in blocks {
        let span = span(&block);
        bytes += span.end - span.start;
        match groups.last_mut().filter(|_| bytes <= TOGETHER_BYTES) {
            Some(group) => group.push(block),
            None => {
                bytes = span.end - span.start;
                groups.push(vec![block]);
            }
        }
    }
    groups
}

/// The rows of a stream.
async fn of_stream(store: &Arc<dyn ObjectStore>, file: &ObjectMeta, asked: &Asked, decoded_bytes_max: u64) -> Result<Rows> {
    let mut input = Input::all(store, file);
    let schema = streams::first(&mut input).await?;
    let (columns, arranged) = asked.of(&schema, decoded_bytes_max)?;
    // The first version is the one that says nothing of the messages' own.
    let messages = Messages::new(schema, MetadataVersion::V1, columns, decoded_bytes_max);
    let rows = stream::try_unfold((input, messages), |(mut input, mut messages)| async move {
        while let Some(next) = streams::next(&mut input).await? {
            let message = metadata_of(&next.bytes[prefix_bytes(&next.bytes)..next.head_bytes])?;
            if message.header_type() == MessageHeader::DictionaryBatch {
                messages.take_dictionary(next.bytes, next.head_bytes)?;
            } else if let Some(rows) = messages.rows(next.bytes, next.head_bytes)? {
                return Ok(Some((rows, (input, messages))));
            }
        }
        Ok(None)
    });
    Ok(in_order(rows.boxed(), arranged))
}
