//! `forebay cat`, and the reading of an object as a stream that `cp` shares: in order, of one version, in bounded memory.

use bytes::Bytes;
use forebay_client::Client;
use forebay_protocol::RangeSpec;
use forebay_types::ForebayPath;
use futures::stream::LocalBoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use crate::cli::CatArgs;
use crate::exit::{Failure, Outcome};
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
        let mut pieces = pieces(client, path, range).await?;
        while let Some(bytes) = pieces.try_next().await? {
            output.bytes(&bytes)?;
        }
    }
    output.finish()
}

/// A range of an object, in order. All bytes are of one version.
pub(crate) async fn pieces<'a>(
    client: &'a Client,
    path: &ForebayPath,
    range: RangeSpec,
) -> Outcome<LocalBoxStream<'a, Outcome<Bytes>>> {
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
    let end = match range {
        RangeSpec::Bounded { start, len } => start.saturating_add(len).min(info.version.size),
        RangeSpec::From { .. } | RangeSpec::Suffix { .. } => info.version.size,
    };
    let rest = stream::iter((got.end..end).step_by(CHUNK_BYTES as usize)).map(move |start| {
        let version = info.version.clone();
        async move { client.read(operation, &version, start..end.min(start + CHUNK_BYTES)).await.map_err(Failure::from) }
    });
    let first = stream::once(std::future::ready(Ok(bytes)));
    Ok(first.chain(rest.buffered(AHEAD)).boxed_local())
}
