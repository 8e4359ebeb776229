//! Objects through a client's API, as queries read them and programs write them.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, PutCondition, RangeSpec};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use tokio::time::sleep;

/// A range that a plan has found an older version of is planned anew so often.
const PLANS: usize = 5;

/// Writes an object; its ETag.
pub async fn put(client: &Client, path: &ForebayPath, body: Bytes) -> Result<String> {
    let info = client.put(path, body, PutCondition::Any).await?;
    Ok(tag(info.version.tag.as_str()))
}

/// Reads a range, and says its ETag. With `waits` it opens a version, waits, and reads that one, as a query does.
pub async fn get(
    client: &Client,
    path: &ForebayPath,
    start: u64,
    bytes: u64,
    waits: Option<Duration>,
) -> Result<(Bytes, String)> {
    match waits {
        None => latest(client, path, start, bytes).await,
        Some(waits) => planned(client, path, start, bytes, waits).await,
    }
}

async fn latest(client: &Client, path: &ForebayPath, start: u64, len: u64) -> Result<(Bytes, String)> {
    let range = RangeSpec::Bounded { start, len };
    let (info, _, bytes) = client.read_latest(client.operation(), path, range).await?;
    Ok((bytes, tag(info.version.tag.as_str())))
}

/// Opens a version and reads that one a moment later; where it is gone by then, the next one.
async fn planned(client: &Client, path: &ForebayPath, start: u64, bytes: u64, waits: Duration) -> Result<(Bytes, String)> {
    let mut last = Error::conflict("no plan was made");
    for _ in 0..PLANS {
        let info = client.open(path).await?;
        sleep(waits).await;
        let range = start..info.version.size.min(start.saturating_add(bytes));
        match client.read(client.operation(), &info.version, range).await {
            Ok(bytes) => return Ok((bytes, tag(info.version.tag.as_str()))),
            Err(error) if error.kind() == ErrorKind::Conflict => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// An ETag without its quotes.
pub fn tag(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}
