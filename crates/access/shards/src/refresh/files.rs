//! Objects that are followed, as files of this machine while they are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_client::Client;
use forebay_shard::{Key, Value};
use forebay_shard_store::{Columns, KEY_BYTES_MAX, WantedChange};
use forebay_types::{Error, ObjectInfo, Result, ResultExt};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

use super::keys::too_much;
use super::state::Lease;

/// Bytes of an object that are read at once.
const PIECE: u64 = 4 << 20;
/// Records of an object at most: their keys are in memory together.
const KEYS_MAX: usize = 8 << 20;
/// Changes that are made with one call, and about how many bytes of them.
pub(super) const CHANGES_AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: usize = 1 << 20;
/// Bytes that workers take with one call, each record with the end of its line.
const CALL_BYTES_MAX: usize = 4 << 20;
/// Calls that wait to be made.
const AHEAD: usize = 2;

/// Records as a file has them.
pub type Records = Vec<(Key, Vec<Value>)>;

/// What knows the formats of files.
pub trait ReadRecords: Send + Sync + 'static {
    /// `Invalid` where the name of an object says already that it can't be read: then it is not brought.
    fn check_name(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Hands over all records of a file, in pieces; of the same key the last one counts. `Invalid` where it has other columns than these.
    /// Called on a thread that may block.
    fn read(&self, file: &Path, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()>;

    /// The same of the object at a path, whose folders may say more of its records.
    fn read_object(
        &self,
        file: &Path,
        _path: &str,
        columns: &Columns,
        each: &mut dyn FnMut(Records) -> Result<()>,
    ) -> Result<()> {
        self.read(file, columns, each)
    }
}

/// Brings an object to a file, and says meanwhile that the dataset is refreshed still.
pub(super) async fn bring(client: &Client, lease: &mut Lease, object: &ObjectInfo, file: &Path) -> Result<()> {
    let version = &object.version;
    let mut to = std::fs::File::create(file).context(|| file.display())?;
    let (operation, mut at) = (client.operation(), 0);
    while at < version.size {
        lease.renew().await?;
        let end = (at + PIECE).min(version.size);
        let bytes = client.read(operation, version, at..end).await?;
        std::io::Write::write_all(&mut to, &bytes).context(|| file.display())?;
        at = end;
    }
    debug_assert_eq!(at, version.size, "all of it is there");
    Ok(())
}

/// The keys of the records of an object, by its path and the file that it was brought to; ascending, each once.
pub(super) async fn keys_of(reader: &Arc<dyn ReadRecords>, (path, file): (&str, &Path), columns: &Columns) -> Result<Vec<Key>> {
    let (reader, path) = (Arc::clone(reader), path.to_string());
    let (file, columns) = (file.to_path_buf(), columns.clone());
    let reading = forebay_runtime::spawn_blocking(move || -> Result<Vec<Key>> {
        let (mut keys, mut bytes): (Vec<Key>, usize) = (Vec::new(), 0);
        reader.read_object(&file, &path, &columns, &mut |records: Records| {
            bytes += records.iter().map(|(key, _)| key.len()).sum::<usize>();
            records.iter().try_for_each(|(key, values)| check_followed(&columns, key, values))?;
            keys.extend(records.into_iter().map(|(key, _)| key));
            match keys.len() > KEYS_MAX {
                true => Err(Error::invalid(format!("it has more than {KEYS_MAX} records: cut it into smaller objects"))),
                false if bytes > KEY_BYTES_MAX => Err(too_much()),
                false => Ok(()),
            }
        })?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    });
    reading.await.map_err(ended_early)?
}

/// A record as a change, and that as it is sent. `Invalid` where they are more than workers take at once.
fn put_of(columns: &Columns, key: &Key, values: &[Value]) -> Result<(Json, String)> {
    let put = json!({ "put": columns.record_json(key, values, None)? });
    let line = put.to_string();
    match line.len() >= CALL_BYTES_MAX {
        true => Err(Error::invalid(format!("a record of it has more than {} MiB as JSON", CALL_BYTES_MAX >> 20))),
        false => Ok((put, line)),
    }
}

/// `Invalid` where workers refuse a record of a dataset that follows objects: it could not be written again.
pub fn check_followed(columns: &Columns, key: &Key, values: &[Value]) -> Result<()> {
    checked_put(columns, key, values).map(drop)
}

fn checked_put(columns: &Columns, key: &Key, values: &[Value]) -> Result<(Json, String)> {
    let (put, line) = put_of(columns, key, values)?;
    WantedChange::parse(columns, line.as_bytes())?;
    Ok((put, line))
}

/// A file's records as changes, those of all keys or of some, which ascend; and what says whether these were all. Of some, those that workers
/// refuse are left out, and why the first was is said: their object was taken over without them.
pub(super) fn puts_of(
    reader: &Arc<dyn ReadRecords>,
    (path, file): (&str, PathBuf),
    columns: &Columns,
    only: Option<Vec<Key>>,
) -> (mpsc::Receiver<Vec<Json>>, JoinHandle<Result<Option<Error>>>) {
    debug_assert!(only.as_ref().is_none_or(|only| only.is_sorted()), "keys that are looked up ascend");
    let (sender, puts) = mpsc::channel(AHEAD);
    let (reader, columns, path) = (Arc::clone(reader), columns.clone(), path.to_string());
    let reading = forebay_runtime::spawn_blocking(move || -> Result<Option<Error>> {
        let mut left_out = None;
        let ended = || Error::closed("the refresh has ended");
        // Waits where there is no room: a thread that must not, as that of a simulated host, has room for what its objects have.
        let send = |changes: Vec<Json>| match sender.try_send(changes) {
            Err(TrySendError::Full(changes)) => sender.blocking_send(changes).map_err(|_| ended()),
            sent => sent.map_err(|_| ended()),
        };
        let is_wanted = |key: &Key| only.as_ref().is_none_or(|only| only.binary_search(key).is_ok());
        let (mut changes, mut bytes): (Vec<Json>, usize) = (Vec::new(), 0);
        reader.read_object(&file, &path, &columns, &mut |records: Records| {
            for (key, values) in records.into_iter().filter(|(key, _)| is_wanted(key)) {
                let made = match only.is_some() {
                    true => checked_put(&columns, &key, &values),
                    // They were looked at when the keys were read.
                    false => put_of(&columns, &key, &values),
                };
                let (put, line) = match made {
                    Ok(made) => made,
                    Err(error) if only.is_some() => {
                        left_out.get_or_insert(error);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if bytes + line.len() >= CALL_BYTES_MAX {
                    bytes = 0;
                    send(std::mem::take(&mut changes))?;
                }
                bytes += line.len() + 1;
                debug_assert!(bytes <= CALL_BYTES_MAX, "a worker takes them at once");
                changes.push(put);
                if changes.len() >= CHANGES_AT_ONCE || bytes >= BYTES_AT_ONCE {
                    bytes = 0;
                    send(std::mem::take(&mut changes))?;
                }
            }
            Ok(())
        })?;
        if !changes.is_empty() {
            send(changes)?;
        }
        Ok(left_out)
    });
    (puts, reading)
}

/// What a task's end means that nobody awaited.
pub(super) fn ended_early(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("reading an object ended early: {error}"))
}
