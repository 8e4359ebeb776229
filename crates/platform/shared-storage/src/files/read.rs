//! Reads of files, which anybody may change meanwhile: that is seen after each piece, and ends the read with a conflict.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Attributes, Error, Key, ObjectInfo, Result};
use rustix::buffer::spare_capacity;
use rustix::fs::{Stat, fstat};
use rustix::io::{Errno, pread};

use super::{Files, Inner, name};
use crate::backend::{Opened, Source};
use crate::bandwidth::Turn;
use crate::counters::count_by;
use crate::request::Get;

/// Bytes read at once.
const READ_BYTES: u64 = 1 << 20;

pub(super) async fn open(files: &Files, get: &Get<'_>) -> Result<Opened> {
    let key = get.key.clone();
    let (file, stat, info) = files.aside(move |files| files.open_file(&key)).await?;
    if let Some(tag) = get.if_match.filter(|tag| **tag != info.version.tag) {
        return Err(files.0.conflict(get.key, tag, &info.version.tag));
    }
    let past_end = || Error::invalid(format!("{}: the range is past the file's end", files.0.path(get.key.as_str())));
    let range = get.range.of(info.version.size).ok_or_else(past_end)?;
    let source = FileSource {
        files: files.clone(),
        file: Arc::new((file, stat)),
        info: info.clone(),
        left: range.clone(),
        turn: files.0.limiter.turn(get.class),
    };
    Ok(Opened { info, attributes: Attributes { complete: true, ..Attributes::default() }, range, source: Box::new(source) })
}

/// A range of one open file.
struct FileSource {
    files: Files,
    /// With how it was when it was opened.
    file: Arc<(OwnedFd, Stat)>,
    info: ObjectInfo,
    left: Range<u64>,
    turn: Turn,
}

#[async_trait]
impl Source for FileSource {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.left.is_empty() {
            return None;
        }
        let bytes = self.turn.take((self.left.end - self.left.start).min(READ_BYTES)).await;
        let (file, info, at) = (Arc::clone(&self.file), self.info.clone(), self.left.start);
        let read = self.files.aside(move |files| read(files, &file, &info, at, bytes)).await;
        if let Ok(read) = &read {
            self.left.start += read.len() as u64;
            self.turn.give_back(bytes - read.len() as u64);
            self.turn.read(read.len() as u64);
            count_by(&self.files.0.tally.bytes_in, read.len() as u64);
        }
        Some(read)
    }
}

/// Reads, and looks afterwards whether the file is still the version that was opened: what was read before a change is
/// that version's, what may be of another is not handed on.
fn read(files: &Inner, (file, stat): &(OwnedFd, Stat), info: &ObjectInfo, at: u64, bytes: u64) -> Result<Bytes> {
    let key: &Key = &info.version.key;
    let failed = |errno: Errno| files.failed(key.as_str(), errno);
    let mut buffer = Vec::with_capacity(bytes as usize);
    let wanted = bytes as usize;
    while buffer.len() < wanted {
        let from = at + buffer.len() as u64;
        match pread(file, spare_capacity(&mut buffer), from) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    buffer.truncate(wanted);
    let now = fstat(file).map_err(failed)?;
    if !name::has_same_bytes(stat, &now) || buffer.len() < wanted {
        return Err(files.conflict(key, &info.version.tag, &name::tag(&now)));
    }
    Ok(buffer.into())
}
