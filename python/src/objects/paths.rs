//! What a path stands for, object or folder, and the entries that listings give to Python.

use forebay_client::Client;
use forebay_types::{Error, ErrorKind, ForebayPath, Key, ObjectInfo, ObjectVersion, Result};

/// What a listing shows: path, whether it is a folder, bytes, milliseconds since the Unix epoch, version.
pub(crate) type Entry = (String, bool, u64, Option<i64>, Option<String>);

pub(crate) fn object(beside: &ForebayPath, info: ObjectInfo) -> Entry {
    let path = ForebayPath::new(beside.mount().clone(), info.version.key).to_string();
    (path, false, info.version.size, Some(info.modified_ms), Some(info.version.tag.to_string()))
}

/// The entry of a folder, which ends with `/`.
pub(crate) fn folder(beside: &ForebayPath, key: Key) -> Entry {
    (ForebayPath::new(beside.mount().clone(), key).to_string(), true, 0, None, None)
}

/// What a path stands for, and its path as it was meant: everything below it when something is, else the object.
pub(crate) async fn tree(client: &Client, path: &ForebayPath) -> Result<(ForebayPath, Vec<ObjectInfo>)> {
    let folder = path.as_folder()?;
    let objects = client.list_all(&folder).await?;
    if !objects.is_empty() || path.key().as_str().is_empty() {
        return Ok((folder, objects));
    }
    if path.is_folder() {
        return Err(nothing(path));
    }
    match client.open(path).await {
        Ok(info) => Ok((path.clone(), vec![info])),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(nothing(path)),
        Err(error) => Err(error),
    }
}

pub(crate) fn versions(objects: &[ObjectInfo]) -> Vec<ObjectVersion> {
    objects.iter().map(|info| info.version.clone()).collect()
}

/// Nothing is at a path and nothing below it.
pub(crate) fn nothing(path: &ForebayPath) -> Error {
    Error::not_found(format!(
        "{path}: there is no such object and nothing is below it; if it was just written by others, refresh({:?}) looks again",
        path.to_string()
    ))
}
