//! The log in files of this machine: group commit, parts that are begun and forgotten, a torn end cut off.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use forebay_types::{Error, Result, ResultExt};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::batch::Batch;
use super::frame::{self, BODY_BYTES_MAX};
use super::replay::{PART_HEADER_BYTES, part_header, scan};
use crate::folder::{explain, sync_folder};

/// A durable sequence of entries, numbered from 1 without gaps, in local files: one file a part, named by the number of its first entry.
///
/// Entries of several threads go to the disk as one write and one flush: whoever comes first writes for all who wait.
pub struct LocalLog {
    folder: PathBuf,
    state: Mutex<State>,
    written: Condvar,
}

struct State {
    /// The last part; taken out by the thread that writes.
    part: Option<Part>,
    waiting: Batch,
    /// First entries of all parts, with their paths.
    parts: BTreeMap<u64, PathBuf>,
    /// After a flush that failed nobody knows what the disk has: nothing more is accepted.
    broken: Option<Error>,
}

struct Part {
    file: File,
    path: PathBuf,
    /// Bytes that are durable.
    bytes: u64,
    /// The number of the next entry.
    next: u64,
}

impl LocalLog {
    /// Opens the log of a folder to write to it, or makes one. A torn end is cut off.
    ///
    /// One process at a time: the caller holds the folder's lock.
    pub fn open(folder: &Path, first: u64) -> Result<Self> {
        let mut parts = parts_of(folder)?;
        let part = match parts.last_key_value() {
            None => {
                let part = Part::create(folder, first)?;
                parts.insert(first, part.path.clone());
                part
            }
            Some((&first, path)) => Part::open(path, first)?,
        };
        let state = State { part: Some(part), waiting: Batch::default(), parts, broken: None };
        Ok(Self { folder: folder.to_path_buf(), state: Mutex::new(state), written: Condvar::new() })
    }

    /// Reads the log of a folder that another process may be writing to; a torn end is passed over. Says the number after
    /// the last entry.
    pub fn read(folder: &Path, from: u64, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<u64> {
        let parts = parts_of(folder)?;
        if let Some((&first, path)) = parts.first_key_value().filter(|(first, _)| **first > from) {
            let message = format!("{}: the log begins with entry {first}, entry {from} is missing", path.display());
            return Err(Error::corrupt(message));
        }
        replay(&parts, from, each)
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>, entry: &[u8]) -> Result<u64> {
        // A batch that is full goes to the disk before it takes more.
        while state.waiting.body.len() + entry.len() + 4 > BODY_BYTES_MAX {
            state = self.write_or_wait(state);
        }
        let place = state.waiting.push(entry);
        let outcome = state.waiting.outcome.clone();
        loop {
            match outcome.get() {
                Some(Ok(first)) => return Ok(first + u64::from(place)),
                Some(Err(error)) => return Err(error.clone()),
                None => state = self.write_or_wait(state),
            }
        }
    }

    /// Writes the batch that waits, unless another thread is writing: then waits for that one.
    fn write_or_wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let Some(mut part) = state.part.take() else {
            self.written.wait(&mut state);
            return state;
        };
        let batch = std::mem::take(&mut state.waiting);
        let broken = state.broken.clone();
        let mut failed_for_good = None;
        MutexGuard::unlocked(&mut state, || {
            let outcome = if let Some(error) = broken { Err(error) } else { part.write(&batch, &mut failed_for_good) };
            let _ = batch.outcome.set(outcome);
        });
        state.broken = state.broken.take().or(failed_for_good);
        state.part = Some(part);
        self.written.notify_all();
        state
    }

    /// Makes an entry durable and says its number; entries of several threads are made durable together.
    pub fn append(&self, entry: &[u8]) -> Result<u64> {
        if entry.len() + 4 > BODY_BYTES_MAX {
            let message = format!("an update of {} bytes is too large: {BODY_BYTES_MAX} at most", entry.len());
            return Err(Error::invalid(message));
        }
        self.wait(self.state.lock(), entry)
    }

    /// Hands over the entries from number `from` on, in order.
    pub fn replay(&self, from: u64, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let parts = self.state.lock().parts.clone();
        replay(&parts, from, each).map(drop)
    }

    /// Starts a new part, so that the entries so far can be forgotten as a whole. Says the number of the next entry.
    pub fn roll(&self) -> Result<u64> {
        let mut state = self.state.lock();
        loop {
            if let Some(part) = &state.part {
                let next = part.next;
                if let Some(error) = &state.broken {
                    return Err(error.clone());
                }
                // A part that nothing was written to since is as good as a new one.
                if part.bytes > PART_HEADER_BYTES as u64 {
                    let part = Part::create(&self.folder, next)?;
                    state.parts.insert(next, part.path.clone());
                    state.part = Some(part);
                }
                return Ok(next);
            }
            self.written.wait(&mut state);
        }
    }

    /// Gives back the room of parts that only hold entries below `before`.
    pub fn forget(&self, before: u64) -> Result<()> {
        let gone: Vec<PathBuf> = {
            let mut state = self.state.lock();
            // A part ends where the next one starts; the last one stays.
            let keep = state.parts.range(..=before).next_back().map_or(0, |(&first, _)| first);
            let kept = state.parts.split_off(&keep);
            std::mem::replace(&mut state.parts, kept).into_values().collect()
        };
        for path in &gone {
            std::fs::remove_file(path).context(|| path.display())?;
        }
        if gone.is_empty() { Ok(()) } else { sync_folder(&self.folder) }
    }
}

impl Part {
    fn create(folder: &Path, first: u64) -> Result<Self> {
        let path = folder.join(format!("log-{first:016x}"));
        let create = || {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
            file.write_all(&part_header(first))?;
            file.sync_all()?;
            Ok::<_, std::io::Error>(file)
        };
        let file = create().context(|| path.display())?;
        sync_folder(folder)?;
        Ok(Self { file, path, bytes: PART_HEADER_BYTES as u64, next: first })
    }

    fn open(path: &Path, first: u64) -> Result<Self> {
        let bytes = std::fs::read(path).context(|| path.display())?;
        let scanned = scan(path, &bytes, first, true, &mut |_, _| Ok(()))?;
        if scanned.good_bytes == 0 {
            return Self::create(path.parent().unwrap_or(Path::new(".")), first);
        }
        let open = || {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            if scanned.good_bytes < bytes.len() {
                tracing::warn!(path = %path.display(), bytes = bytes.len() - scanned.good_bytes, "the torn end of the log was cut off");
                file.set_len(scanned.good_bytes as u64)?;
            }
            // What the process before wrote may not have been flushed when it ended; now it is read, so it has to stay.
            file.sync_all()?;
            Ok::<_, std::io::Error>(file)
        };
        let file = open().context(|| path.display())?;
        Ok(Self { file, path: path.to_path_buf(), bytes: scanned.good_bytes as u64, next: scanned.next })
    }

    fn write(&mut self, batch: &Batch, failed_for_good: &mut Option<Error>) -> Result<u64> {
        let first = self.next;
        if batch.count == 0 {
            return Ok(first);
        }
        let frame = frame::encode(first, batch.count, &batch.body);
        let written = self.file.seek(SeekFrom::Start(self.bytes)).and_then(|_| self.file.write_all(&frame));
        if let Err(error) = written {
            // As on a full disk: what was written of it is taken back, and the log goes on.
            if let Err(error) = self.file.set_len(self.bytes) {
                *failed_for_good = Some(Error::from(error).context(self.path.display()));
            }
            return Err(explain(error, &self.path));
        }
        if let Err(error) = self.file.sync_data() {
            let error = Error::from(error).context(format!("{}: the log can't be flushed", self.path.display()));
            *failed_for_good = Some(error.clone());
            return Err(error);
        }
        self.bytes += frame.len() as u64;
        self.next += u64::from(batch.count);
        Ok(first)
    }
}

/// First entries and paths of the parts in a folder.
fn parts_of(folder: &Path) -> Result<BTreeMap<u64, PathBuf>> {
    let mut parts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).context(|| folder.display())? {
        let entry = entry.context(|| folder.display())?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("log-")).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        if let Some(number) = number {
            parts.insert(number, entry.path());
        }
    }
    Ok(parts)
}

fn replay(parts: &BTreeMap<u64, PathBuf>, from: u64, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<u64> {
    let mut next = from;
    let needed = parts.range(..=from).next_back().map_or(0, |(&first, _)| first);
    let mut expected = None;
    for (&first, path) in parts.range(needed..) {
        if expected.is_some_and(|expected| expected != first) {
            let message = format!("{}: the part of the log before this one is missing or cut short", path.display());
            return Err(Error::corrupt(message));
        }
        let mut bytes = Vec::new();
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).context(|| path.display())?;
        let last = parts.last_key_value().is_some_and(|(&last, _)| last == first);
        let scanned = scan(path, &bytes, first, last, &mut |number, entry| {
            if number >= from { each(number, entry) } else { Ok(()) }
        })?;
        expected = Some(scanned.next);
        next = next.max(scanned.next);
    }
    Ok(next)
}
