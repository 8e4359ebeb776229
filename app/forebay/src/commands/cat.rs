//! `forebay cat`, and the reading of an object as a stream that `cp` shares: in order, of one version, in bounded memory.

use std::ops::Range;

use forebay_client::Client;
use forebay_protocol::RangeSpec;
use forebay_types::{ForebayPath, ObjectVersion, OperationId};
use futures::{StreamExt, TryStreamExt, stream};

use crate::cli::CatArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::tree::no_object;

/// Bytes asked for at once, and how many such requests are on their way.
const CHUNK_BYTES: u64 = 8 << 20;
const AHEAD: usize = 3;

/// Writes objects to the standard output, one after the other.
pub(crate) async fn run(client: &Client, args: CatArgs) -> Outcome {
    let mut output = Output::new(false);
    for path in &args.paths {
        let range = args.range.map_or(RangeSpec::From { start: 0 }, |range| range.0);
        write(client, path, range, |bytes| output.bytes(bytes)).await?;
    }
    output.finish()
}

/// Hands a range of an object to `sink`, in order, in bounded memory. All bytes are of one version.
pub(crate) async fn write(
    client: &Client,
    path: &ForebayPath,
    range: RangeSpec,
    mut sink: impl FnMut(&[u8]) -> Outcome,
) -> Outcome<u64> {
    let operation = client.operation();
    // What is known of the size decides how much the first request asks for; it also finds the version.
    let first = match range {
        RangeSpec::Bounded { start, len } => RangeSpec::Bounded { start, len: len.min(CHUNK_BYTES) },
        RangeSpec::From { start } => RangeSpec::Bounded { start, len: CHUNK_BYTES },
        suffix @ RangeSpec::Suffix { .. } => suffix,
    };
    let (info, got, bytes) = match client.read_latest(operation, path, first).await {
        Ok(read) => read,
        Err(error) => return Err(no_object(client, path, error).await.into()),
    };
    sink(&bytes)?;
    drop(bytes);
    let end = match range {
        RangeSpec::Bounded { start, len } => start.saturating_add(len).min(info.version.size),
        RangeSpec::From { .. } | RangeSpec::Suffix { .. } => info.version.size,
    };
    rest(client, operation, &info.version, got.end..end, &mut sink).await?;
    Ok(end.saturating_sub(got.start))
}

async fn rest(
    client: &Client,
    operation: OperationId,
    version: &ObjectVersion,
    range: Range<u64>,
    sink: &mut impl FnMut(&[u8]) -> Outcome,
) -> Outcome {
    let starts = (range.start..range.end).step_by(CHUNK_BYTES as usize);
    let mut chunks = stream::iter(starts)
        .map(|start| client.read(operation, version, start..range.end.min(start + CHUNK_BYTES)))
        .buffered(AHEAD);
    while let Some(bytes) = chunks.try_next().await? {
        sink(&bytes)?;
    }
    Ok(())
}
