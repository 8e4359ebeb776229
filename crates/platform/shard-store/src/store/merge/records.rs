//! The records of a view in the order of their keys, with no more of them in memory than a page of each of its files.

use std::collections::VecDeque;

use forebay_shard::{Key, Record, Shard, ValueType};
use forebay_types::{Error, Result};

use crate::store::{View, put_values};
use crate::update::Update;

/// Records that are read of a file at once, and their bytes: where these are more, no more than a shard reads side by side anyway.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;
const SIDE_BY_SIDE: usize = 16;

/// A compressed shard that is read from front to back.
struct Pages<'v> {
    shard: &'v Shard,
    read: VecDeque<(Key, Vec<u8>)>,
    after: Option<Key>,
    has_ended: bool,
}

impl Pages<'_> {
    /// The key of its next record; none at the end.
    fn key(&mut self) -> Result<Option<&Key>> {
        if self.read.is_empty() && !self.has_ended {
            let (read, mut page_bytes, mut is_full) = (&mut self.read, 0, false);
            self.shard.scan(self.after.as_ref(), |key, record| {
                let mut bytes = Vec::new();
                record.write(&mut bytes);
                page_bytes += bytes.len();
                read.push_back((key, bytes));
                is_full = read.len() >= PAGE || page_bytes >= PAGE_BYTES && read.len().is_multiple_of(SIDE_BY_SIDE);
                Ok(!is_full)
            })?;
            self.after = self.read.back().map(|(key, _)| key.clone());
            self.has_ended = !is_full;
        }
        Ok(self.read.front().map(|(key, _)| key))
    }
}

/// Calls with each record that a view has, by its compressed shards and the updates that are in no suffix array.
pub(super) fn for_each_record(
    view: &View,
    attributes: usize,
    type_of: impl Fn(usize) -> ValueType,
    mut call: impl FnMut(&Key, &Record) -> Result<()>,
) -> Result<()> {
    assert!(view.suffixes.is_empty(), "a store that is only read has no suffix arrays");
    let page = |shard| Pages { shard, read: VecDeque::new(), after: None, has_ended: false };
    let mut files: Vec<Pages<'_>> = view.shards.iter().map(|mapped| page(&mapped.shard)).collect();
    let mut updates = newest(view).into_iter().peekable();
    let mut updated = Record::new();
    loop {
        let next = lowest(&mut files)?;
        if let Some((key, update)) = updates.next_if(|(key, _)| next.as_ref().is_none_or(|next| *key <= next)) {
            pop(&mut files, key)?;
            if let Some(values) = update.values {
                put_values(&values.to_vec(), None, &type_of, &mut updated)?;
                call(key, &updated)?;
            }
            continue;
        }
        let Some(key) = next else { return Ok(()) };
        // Of several with one key that of the later file stays.
        let record = pop(&mut files, &key)?.and_then(|bytes| Record::read(&bytes, attributes));
        let (record, _) = record.ok_or_else(|| Error::internal("a record in one piece can't be taken apart"))?;
        call(&key, &record)?;
    }
}

/// The lowest key that any of the files has next.
fn lowest(files: &mut [Pages<'_>]) -> Result<Option<Key>> {
    let mut lowest: Option<&Key> = None;
    for file in files {
        if let Some(key) = file.key()?
            && lowest.is_none_or(|lowest| key < lowest)
        {
            lowest = Some(key);
        }
    }
    Ok(lowest.cloned())
}

/// Takes the records of a key out of all files that have it; gives the last one's.
fn pop(files: &mut [Pages<'_>], key: &Key) -> Result<Option<Vec<u8>>> {
    let mut last = None;
    for file in files {
        if file.key()? == Some(key) {
            last = file.read.pop_front().map(|(_, bytes)| bytes);
        }
    }
    Ok(last)
}

/// The newest update of each key that is updated, in the order of keys.
fn newest(view: &View) -> Vec<(&Key, Update<'_>)> {
    let mut all: Vec<(&Key, Update<'_>)> = view.runs.iter().rev().flat_map(|run| run.iter()).collect();
    // The newest of a key stands first, and what is first stays; of the same number that of the later stretch.
    all.sort_by(|(one, a), (other, b)| one.cmp(other).then(b.number.cmp(&a.number)));
    all.dedup_by(|(one, _), (other, _)| one == other);
    all
}
