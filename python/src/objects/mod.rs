//! Objects: listings, bytes, readers and writers.

mod object;
pub(crate) mod paths;
mod writer;

use forebay_client::{Client, RangeSpec};
use forebay_types::{ErrorKind, ForebayPath, Result};
use futures::TryStreamExt;

use crate::buffer::Buffer;
pub(crate) use object::Object;
pub(crate) use writer::Writer;

use paths::{Entry, folder, nothing, object};

/// Bytes of a copy read at once.
const COPY_BYTES: u64 = 8 << 20;

/// What is directly below a path, or with `recursive` all objects below it; the object itself when it is one.
pub(crate) async fn list(client: &Client, path: &ForebayPath, recursive: bool) -> Result<Vec<Entry>> {
    let below = path.as_folder()?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut pages = client.list(&below, !recursive).await?;
    while let Some(page) = pages.try_next().await? {
        entries.extend(page.folders.into_iter().map(|key| folder(path, key)));
        // The object of a folder's own name is not in it.
        let within = page.objects.into_iter().filter(|info| info.version.key != *below.key());
        entries.extend(within.map(|info| object(path, info)));
    }
    entries.sort();
    if entries.is_empty() && !path.key().as_str().is_empty() {
        let info = client.open(path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => nothing(path),
            _ => error,
        })?;
        entries.push(object(path, info));
    }
    Ok(entries)
}

/// The object at a path, or the folder that it is.
pub(crate) async fn stat(client: &Client, path: &ForebayPath) -> Result<Entry> {
    let key = path.key().as_str();
    if key.is_empty() {
        client.mount(path.mount()).await?;
        return Ok(folder(path, path.key().clone()));
    }
    if !key.ends_with('/') {
        match client.open(path).await {
            Ok(info) => return Ok(object(path, info)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let below = path.as_folder()?;
    let first = client.list(&below, true).await?.try_next().await?;
    match first.is_some_and(|page| !page.objects.is_empty() || !page.folders.is_empty()) {
        true => Ok(folder(path, below.key().clone())),
        false => Err(nothing(path)),
    }
}

/// Bytes of the version that is current under the mount's rule. `length` None: to the end; `offset` below 0: from the end.
pub(crate) async fn read(client: &Client, path: &ForebayPath, offset: i64, length: Option<u64>) -> Result<Buffer> {
    let range = match (u64::try_from(offset), length) {
        (Ok(start), Some(len)) => RangeSpec::Bounded { start, len },
        (Ok(start), None) => RangeSpec::From { start },
        (Err(_), _) => RangeSpec::Suffix { len: offset.unsigned_abs() },
    };
    let (_, _, mut bytes) = client.read_latest(client.operation(), path, range).await?;
    if let (true, Some(length)) = (offset < 0, length) {
        bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    }
    Ok(Buffer::new(bytes))
}

/// Copies an object, of one version, without its bytes passing through Python.
pub(crate) async fn copy(client: &Client, source: &ForebayPath, target: &ForebayPath) -> Result<Entry> {
    let (operation, info) = (client.operation(), client.open(source).await?);
    let mut writer = client.writer(target).await?;
    let whole = 0..info.version.size;
    let _ahead = client.prefetch_near(operation, vec![(info.version.clone(), vec![whole])], 2 * COPY_BYTES);
    let mut at = 0;
    while at < info.version.size {
        let end = (at + COPY_BYTES).min(info.version.size);
        writer.write(client.read(operation, &info.version, at..end).await?).await?;
        at = end;
    }
    writer.finish().await.map(|info| object(target, info))
}
