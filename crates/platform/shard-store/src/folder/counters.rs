//! The file with what a shard was asked, so that the next process knows which layers pay.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use forebay_data_folder::FileLock;
use forebay_shard::QueryCounters;
use forebay_types::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

/// Its name in the shard's folder.
pub(crate) const COUNTERS: &str = "counters";
/// The version that is written; others are passed over.
const VERSION: u32 = 1;
const WORD: &str = "forebay-shard-counters";
/// A hundred attributes take a few KiB; what is longer is something else.
const BYTES_MAX: u64 = 1 << 20;

/// Counters as they stand in the file. docs/specs/shard-files.md has the bytes.
#[derive(Default, Serialize, Deserialize)]
struct Counters {
    gets: f64,
    columns: Vec<f64>,
    searches: Vec<f64>,
    hits: Vec<f64>,
    substring_hits: f64,
}

/// The file, held by one process for as long as it takes to read it and write it again.
///
/// It only says what pays, so it is written in place and never flushed: what is torn or damaged is begun anew.
pub(crate) struct CountersFile {
    file: FileLock,
}

impl CountersFile {
    /// Takes it; makes it if there is none. `None` while another process has it.
    pub(crate) fn take(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(COUNTERS);
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = open().and_then(FileLock::take).context(|| path.display())?;
        Ok(lock.ok().map(|file| Self { file }))
    }

    /// What it says, if that verifies.
    pub(crate) fn read(&mut self) -> Result<Option<QueryCounters>> {
        self.file.seek(SeekFrom::Start(0))?;
        read_from(&self.file)
    }

    pub(crate) fn write(&mut self, counters: &QueryCounters) -> Result<()> {
        let bytes = encode(counters)?;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        Ok(self.file.write_all(&bytes)?)
    }
}

/// What the counters of a folder say, also where it can't be written to.
pub(crate) fn read_counters(folder: &Path) -> Option<QueryCounters> {
    read_from(&File::open(folder.join(COUNTERS)).ok()?).ok().flatten()
}

fn read_from(file: &File) -> Result<Option<QueryCounters>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    let counters = decode(&bytes);
    if counters.is_none() && !bytes.is_empty() {
        tracing::warn!("what a shard was asked before can't be read, and is counted anew");
    }
    Ok(counters)
}

fn encode(counters: &QueryCounters) -> Result<Vec<u8>> {
    let QueryCounters { gets, columns, searches, hits, substring_hits } = counters.clone();
    let body = serde_json::to_vec(&Counters { gets, columns, searches, hits, substring_hits })
        .map_err(|error| Error::internal(format!("counters: {error}")))?;
    let mut bytes = format!("{WORD} {VERSION} {:08x}\n", forebay_types::crc32c(&body)).into_bytes();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Option<QueryCounters> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    if head != format!("{WORD} {VERSION} {:08x}", forebay_types::crc32c(body)) {
        return None;
    }
    let Counters { gets, columns, searches, hits, substring_hits } = serde_json::from_slice(body).ok()?;
    Some(QueryCounters { gets, columns, searches, hits, substring_hits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back_and_damaged_ones_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let counters = QueryCounters { gets: 0.1 + 0.2, hits: vec![1e300, 0.0], ..QueryCounters::default() };
        let mut file = CountersFile::take(folder.path()).unwrap().unwrap();
        assert_eq!(file.read().unwrap(), None);
        file.write(&counters).unwrap();
        assert_eq!(file.read().unwrap(), Some(counters.clone()));
        assert!(CountersFile::take(folder.path()).unwrap().is_none(), "two have it");
        drop(file);
        assert_eq!(read_counters(folder.path()), Some(counters.clone()));
        let good = encode(&counters).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert_eq!(decode(&bad), None, "byte {at}");
            assert_eq!(decode(&good[..at]), None, "cut at {at}");
        }
    }
}
