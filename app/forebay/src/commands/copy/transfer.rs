//! Copies one file of `cp`, so that its target is whole or as it was before.

use bytes::Bytes;
use forebay_client::Client;
use forebay_protocol::RangeSpec;
use forebay_types::{Error, ErrorKind, ResultExt};
use futures::stream::LocalBoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use tokio::io::AsyncReadExt;

use super::place::Place;
use super::target::Target;
use crate::commands::cat;
use crate::exit::{Failure, Outcome};
use crate::input;
use crate::output::Output;

/// Bytes read at once from a file or the standard input.
const CHUNK_BYTES: usize = 1 << 20;

/// Copies one file and gives its size; none where `no_clobber` keeps what is there. A target is complete or, when this fails, as it
/// was before.
pub(crate) async fn copy(
    client: &Client,
    from: &Place,
    to: &Place,
    no_clobber: bool,
    bar: &ProgressBar,
    output: &mut Output,
) -> Outcome<Option<u64>> {
    // What is seen to be there is not read to the end first; what comes meanwhile the condition holds off.
    if no_clobber && is_there(client, to).await? {
        return Ok(None);
    }
    let mut pieces = pieces(client, from).await?;
    let mut target = Target::begin(client, to, no_clobber, output).await?;
    let mut total = 0;
    while let Some(bytes) = pieces.try_next().await? {
        total += bytes.len() as u64;
        bar.inc(bytes.len() as u64);
        target.write(bytes).await?;
    }
    Ok(target.finish().await?.then_some(total))
}

async fn is_there(client: &Client, place: &Place) -> Outcome<bool> {
    match place {
        Place::Standard => Ok(false),
        Place::Local(file) => Ok(file.exists()),
        Place::Mounted(path) => match client.open(path).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        },
        Place::Temporary(path) => Ok(client.nodes().stat(&path.to_string()).await.map_err(Error::from)?.is_some()),
    }
}

/// The bytes of a source, in order; of an object all of one version.
async fn pieces<'a>(client: &'a Client, from: &Place) -> Outcome<LocalBoxStream<'a, Outcome<Bytes>>> {
    let file = match from {
        Place::Standard => input::standard_input()?,
        Place::Local(file) => input::open(Some(file)).await?,
        Place::Mounted(path) => return cat::pieces(client, path, RangeSpec::From { start: 0 }).await,
        Place::Temporary(path) => {
            let snapshot = client.nodes().snapshot(&path.to_string()).await.map_err(Error::from)?;
            let reader = snapshot.read(0..snapshot.len()).map_err(Error::from)?;
            return Ok(reader.map_err(|error| Failure::Failed(error.into())).boxed_local());
        }
    };
    let name = from.to_string();
    let read = move |mut file: tokio::fs::File| {
        let name = name.clone();
        async move {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let read = (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk).await.context(|| name)?;
            Ok::<_, Failure>((read > 0).then(|| (Bytes::from(chunk), file)))
        }
    };
    Ok(stream::try_unfold(file, read).boxed_local())
}
