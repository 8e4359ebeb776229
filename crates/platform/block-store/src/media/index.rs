//! What the disk tier has, as a log on the same disk: how it is written, written anew when it is long, and read.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use parking_lot::Mutex;

use super::record::{RECORD_BYTES, Record, header};

/// Records that wait to be written at most; beyond, the index is written anew when the disk takes it.
const PENDING_MAX: usize = 1 << 20;
/// An index with fewer records is not worth being written anew.
const COMPACT_MIN: u64 = 1 << 16;

/// The append-only log of what the disk tier has. Records are taken in memory, in the order of the changes, and
/// written by the store's own threads; a process that is killed loses the last ones, which costs warmth, not correctness.
pub(crate) struct Index {
    path: PathBuf,
    pending: Mutex<Vec<Record>>,
    /// The file, and how many records it holds. None after an error: then it has to be written anew.
    file: Mutex<Option<(File, u64)>>,
    stale: AtomicBool,
}

impl Index {
    /// The index at `path`, which is to be written anew at once.
    pub fn new(path: PathBuf) -> Self {
        Self { path, pending: Mutex::default(), file: Mutex::new(None), stale: AtomicBool::new(true) }
    }

    /// Takes a record. Called under the segment's lock, so that records of a segment have the order of its changes.
    pub fn log(&self, record: Record) {
        let mut pending = self.pending.lock();
        if pending.len() < PENDING_MAX {
            pending.push(record);
        } else {
            // Incomplete from here on: what the table holds then is the truth.
            pending.clear();
            self.stale.store(true, SeqCst);
        }
    }

    pub fn has_work(&self) -> bool {
        self.stale.load(SeqCst) || !self.pending.lock().is_empty()
    }

    /// Writes the pending records; `snapshot` gives all that is there, for when the index is stale, or several times longer
    /// than it has to be for `live` records.
    pub fn write_out(&self, live: u64, snapshot: impl FnOnce() -> Vec<Record>) -> io::Result<()> {
        let mut file = self.file.lock();
        if let Some((_, written)) = &*file
            && *written > COMPACT_MIN.max(live * 4)
        {
            self.stale.store(true, SeqCst);
        }
        let pending = std::mem::take(&mut *self.pending.lock());
        if self.stale.swap(false, SeqCst) {
            // The snapshot is taken after the pending records were: changes meanwhile are in the snapshot, or pending
            // again, or both, which comes to the same.
            let written = self.write_anew(&snapshot());
            *file = written.inspect_err(|_| self.stale.store(true, SeqCst)).map(Some)?;
            return Ok(());
        }
        if let Some((log, written)) = &mut *file {
            *written += pending.len() as u64;
            log.write_all(&bytes(&pending)).inspect_err(|_| self.stale.store(true, SeqCst))?;
        }
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.lock().as_ref().map_or(Ok(()), |(file, _)| file.sync_data())
    }

    fn write_anew(&self, records: &[Record]) -> io::Result<(File, u64)> {
        let path = self.path.with_extension("new");
        let mut file = File::create(&path)?;
        file.write_all(&header())?;
        for part in records.chunks(1 << 14) {
            file.write_all(&bytes(part))?;
        }
        // Complete before it takes the other's place, also if the machine stops in between.
        file.sync_data()?;
        std::fs::rename(&path, &self.path)?;
        Ok((file, records.len() as u64))
    }
}

fn bytes(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|record| record.to_bytes()).collect()
}

/// What the index at a path says.
#[derive(Default)]
pub(crate) struct Read {
    pub records: Vec<Record>,
    /// Records that did not verify, a torn one at the end among them. Left out, which is safe: pages they would have
    /// added are missing, pages and extents they would have taken off do not verify or are overwritten by later ones.
    pub bad: u64,
}

/// Reads an index; nothing when there is none. One with a damaged header is bad as a whole.
pub(crate) fn read(path: &Path) -> io::Result<Read> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::default()),
        Err(error) => return Err(error),
    };
    let (records, torn) = bytes.as_chunks::<RECORD_BYTES>();
    let Some((first, records)) = records.split_first().filter(|(first, _)| **first == header()) else {
        return Ok(Read { records: Vec::new(), bad: 1 });
    };
    debug_assert_eq!(first.len(), RECORD_BYTES);
    let good: Vec<Record> = records.iter().filter_map(Record::from_bytes).collect();
    let bad = (records.len() - good.len()) as u64 + u64::from(!torn.is_empty());
    Ok(Read { records: good, bad })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::SegmentId;

    fn keep(number: u64) -> Record {
        Record::Keep { id: SegmentId(number.into()), keep: true }
    }

    #[test]
    fn an_index_that_has_grown_is_written_anew_and_stays_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.index");
        let index = Index::new(path.clone());
        let snapshot = || vec![keep(1), keep(2)];
        index.write_out(2, snapshot).unwrap();
        assert_eq!(read(&path).unwrap().records, snapshot());
        for number in 0..=COMPACT_MIN {
            index.log(keep(number));
        }
        index.write_out(2, || unreachable!("appended")).unwrap();
        assert_eq!(read(&path).unwrap().records.len() as u64, 2 + COMPACT_MIN + 1);
        assert!(!index.has_work());
        // What is logged between the decision and the snapshot is in one of the two.
        index.log(keep(7));
        let late = || {
            index.log(keep(8));
            snapshot()
        };
        index.write_out(2, late).unwrap();
        assert_eq!(read(&path).unwrap().records, snapshot());
        index.write_out(2, || unreachable!("appended")).unwrap();
        assert_eq!(read(&path).unwrap().records, [keep(1), keep(2), keep(8)]);
    }

    #[test]
    fn more_records_than_may_wait_are_replaced_by_a_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.index");
        let index = Index::new(path.clone());
        index.write_out(0, Vec::new).unwrap();
        (0..=PENDING_MAX as u64).for_each(|number| index.log(keep(number)));
        index.write_out(0, || vec![keep(5)]).unwrap();
        assert_eq!(read(&path).unwrap().records, [keep(5)]);
    }
}
