//! The keys that came from an object, kept beside the dataset's files.

use bytes::Bytes;
use forebay_client::Client;
use forebay_shard::Key;
use forebay_shard_store::{
    Columns, DatasetSource, KEY_BYTES_MAX, KEYS_MAX, data_key, decode_keys, encode_keys, has_keys, keys_name,
};
use forebay_types::{Error, ErrorKind, ForebayPath, Result};

use crate::open::below;

/// Bytes that are sent or read at once.
const PIECE: usize = 4 << 20;
/// Bytes of an object of keys at most.
const BYTES_MAX: u64 = 1 << 30;

/// Stores keys, which ascend, and gives the name of their object: one of those that sources name, where it has the same keys. `Invalid`
/// where they are too much to be read again.
pub(crate) async fn store_keys(client: &Client, path: &ForebayPath, keys: &[Key], named: &[&str]) -> Result<String> {
    debug_assert!(keys.is_sorted(), "keys ascend");
    if keys.len() > KEYS_MAX || keys.iter().map(Key::len).sum::<usize>() > KEY_BYTES_MAX {
        return Err(too_much());
    }
    let mut bytes = Bytes::from(encode_keys(keys));
    if let Some(name) = named.iter().find(|name| has_keys(name, &bytes)) {
        return Ok((*name).to_string());
    }
    let name = keys_name(forebay_runtime::random::<u64>(), &bytes);
    debug_assert!(has_keys(&name, &bytes), "its name says what it has");
    let mut writer = client.writer(&below(path, &data_key(&name))?).await?;
    while !bytes.is_empty() {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        writer.write(piece).await?;
    }
    writer.finish().await?;
    Ok(name)
}

/// The keys that came from an object.
pub(super) async fn load_keys(
    client: &Client,
    path: &ForebayPath,
    columns: &Columns,
    source: &DatasetSource,
) -> Result<Vec<Key>> {
    let at = below(path, &data_key(&source.keys))?;
    // Not that there is no dataset.
    let gone = || Error::corrupt(format!("{at}: the keys of a source are gone: create the dataset again with --replace"));
    let info = client.open(&at).await.map_err(|error| if error.kind() == ErrorKind::NotFound { gone() } else { error })?;
    let size = info.version.size;
    if size > BYTES_MAX {
        return Err(Error::corrupt(format!("{at}: {size} bytes are no keys of a source")));
    }
    let (operation, mut bytes) = (client.operation(), Vec::with_capacity(size as usize));
    while (bytes.len() as u64) < size {
        let from = bytes.len() as u64;
        let piece = client.read(operation, &info.version, from..(from + PIECE as u64).min(size)).await?;
        bytes.extend_from_slice(&piece);
    }
    decode_keys(&bytes, columns.key_type(), source.records, &at.to_string())
}

/// Why an object is not followed.
pub(super) fn too_much() -> Error {
    Error::invalid(format!(
        "an object has more than {KEYS_MAX} keys, or these more than {} MiB: cut it into smaller objects",
        KEY_BYTES_MAX >> 20
    ))
}
