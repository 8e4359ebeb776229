//! Objects of a log that are on a worker's disk before shared storage has them: a file a claim, which is appended to and made durable.
//!
//! Only the process that made a file appends to it. What another one finds there is what was durable, and perhaps one object more.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use forebay_types::{Error, ErrorKind, Result, ResultExt};

use crate::dataset::{LogClaim, LogPlace};
use crate::folder::{explain, sync_folder};

const MAGIC: &[u8; 8] = b"FBDCLAIM";
const VERSION: u32 = 1;
/// Before each part: its length, and the checksum of its bytes.
const HEAD_BYTES: usize = 8;
/// Bytes of a part at most: what is longer is damage.
const PART_BYTES_MAX: usize = 64 << 20;
/// Digits of a log's name.
const LOG_DIGITS: usize = 16;
/// The number of an object of a log at most: it has ten digits.
const NUMBER_MAX: u64 = 9_999_999_999;

/// Which log a claim is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimedLog {
    /// The mount's number.
    pub mount: u64,
    /// The log.
    pub place: LogPlace,
    /// The claim.
    pub claim: LogClaim,
}

/// What a worker has on its disk under a claim. Reading and writing block.
#[derive(Debug)]
pub struct ClaimFile {
    of: ClaimedLog,
    path: PathBuf,
    file: File,
    /// Where each object begins, and its bytes; the first one has the number behind the claim's.
    objects: Vec<(u64, usize)>,
    bytes: u64,
}

impl ClaimFile {
    /// A new one in `folder`, durable as it is; `role` tells two of one claim apart.
    pub fn create(folder: &Path, role: &str, of: ClaimedLog) -> Result<Self> {
        let path = folder.join(format!("{:032x}-{role}", of.claim.id));
        let mut head = Vec::with_capacity(256);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        push(&mut head, &encode(&of));
        let made = File::options().read(true).append(true).create_new(true).open(&path);
        let mut file = made.map_err(|error| explain(error, &path))?;
        let written = file.write_all(&head).and_then(|()| file.sync_all());
        written.map_err(|error| explain(error, &path)).and_then(|()| sync_folder(folder)).inspect_err(|_| {
            // Nobody was told of it.
            let _ = std::fs::remove_file(&path);
        })?;
        Ok(Self { of, path, file, objects: Vec::new(), bytes: head.len() as u64 })
    }

    /// What processes before this one left in `folder`. A file of which not even the beginning is whole was no claim's yet, and goes; one that is
    /// damaged stays where it is and is none of these, so that nobody takes it for all that there was.
    pub fn left(folder: &Path) -> Result<Vec<Self>> {
        let mut left = Vec::new();
        for entry in std::fs::read_dir(folder).context(|| folder.display())? {
            let path = entry.context(|| folder.display())?.path();
            match Self::open(&path) {
                Ok(Some(file)) => left.push(file),
                Ok(None) => std::fs::remove_file(&path).context(|| path.display())?,
                Err(error) if error.kind() == ErrorKind::Corrupt => tracing::error!(%error, "a claim's file is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(left)
    }

    fn open(path: &Path) -> Result<Option<Self>> {
        let file = File::open(path).context(|| path.display())?;
        let bytes = std::fs::read(path).context(|| path.display())?;
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Ok(None) };
        let Some((version, mut rest)) = rest.split_first_chunk() else { return Ok(None) };
        if u32::from_le_bytes(*version) != VERSION {
            let newer = "it is of a newer version of Forebay, and may have changes that shared storage has not: use that one";
            return Err(Error::invalid(format!("{}: {newer}", path.display())));
        }
        let at = |rest: &[u8]| bytes.len() - rest.len();
        let Some(head) = pull(&mut rest, path)? else { return Ok(None) };
        let unknown = || Error::corrupt(format!("{}: it does not say which log's changes are in it", path.display()));
        let of = decode(head).ok_or_else(unknown)?;
        let mut objects = Vec::new();
        let mut end = at(rest);
        // The last one may be torn, and was acknowledged to nobody then.
        while let Some(object) = pull(&mut rest, path)? {
            objects.push(((end + HEAD_BYTES) as u64, object.len()));
            end = at(rest);
        }
        Ok(Some(Self { of, path: path.to_path_buf(), file, objects, bytes: end as u64 }))
    }

    /// Which log it is of.
    pub fn of(&self) -> &ClaimedLog {
        &self.of
    }

    /// The number of its first object.
    pub fn first(&self) -> u64 {
        self.of.claim.number + 1
    }

    /// The number that the next one has.
    pub fn end(&self) -> u64 {
        self.first() + self.objects.len() as u64
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends the next object. Once this has failed nothing more may be appended.
    pub fn append(&mut self, object: &[u8]) -> Result<()> {
        let mut part = Vec::with_capacity(HEAD_BYTES + object.len());
        push(&mut part, object);
        let written = self.file.write_all(&part).and_then(|()| self.file.sync_data());
        written.map_err(|error| explain(error, &self.path))?;
        self.objects.push((self.bytes + HEAD_BYTES as u64, object.len()));
        self.bytes += part.len() as u64;
        Ok(())
    }

    /// The objects from a number on, as many as fit into `bytes_max`, and one at least where there is one.
    pub fn read(&self, from: u64, bytes_max: usize) -> Result<Vec<Vec<u8>>> {
        let before = from.checked_sub(self.first()).and_then(|before| usize::try_from(before).ok());
        let mut left = bytes_max;
        let mut read = Vec::new();
        for (at, bytes) in before.and_then(|before| self.objects.get(before..)).unwrap_or_default() {
            if *bytes > left && !read.is_empty() {
                break;
            }
            let mut object = vec![0; *bytes];
            self.file.read_exact_at(&mut object, *at).context(|| self.path.display())?;
            left = left.saturating_sub(*bytes);
            read.push(object);
        }
        Ok(read)
    }

    /// Removes it: shared storage has all that it has, or never will.
    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::from(error).context(self.path.display())),
            _ => Ok(()),
        }
    }
}

fn push(to: &mut Vec<u8>, part: &[u8]) {
    to.extend_from_slice(&u32::try_from(part.len()).expect("objects are bounded").to_le_bytes());
    to.extend_from_slice(&forebay_types::crc32c(part).to_le_bytes());
    to.extend_from_slice(part);
}

/// The next part, if a whole one is there; the last one may be torn. `Corrupt` where one does not verify that was written before others.
fn pull<'b>(rest: &mut &'b [u8], path: &Path) -> Result<Option<&'b [u8]>> {
    let Some((head, behind)) = rest.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let bytes = word(0) as usize;
    // No part is empty: after a loss of power a file may end in zeros.
    let is_one = (1..=PART_BYTES_MAX).contains(&bytes);
    let Some((part, behind)) = behind.split_at_checked(bytes).filter(|_| is_one) else { return Ok(None) };
    if forebay_types::crc32c(part) == word(4) {
        *rest = behind;
        return Ok(Some(part));
    }
    match behind.iter().all(|byte| *byte == 0) {
        true => Ok(None),
        false => Err(Error::corrupt(format!(
            "{}: changes in it are damaged that two workers had on their disks: the other one has them; delete the file once shared storage \
             has them too",
            path.display()
        ))),
    }
}

fn encode(of: &ClaimedLog) -> Vec<u8> {
    assert!(of.place.log.len() == LOG_DIGITS, "logs are named by {LOG_DIGITS} digits");
    let mut bytes = Vec::new();
    of.claim.encode(&mut bytes);
    bytes.extend_from_slice(&of.mount.to_le_bytes());
    bytes.extend_from_slice(&of.place.shard.to_le_bytes());
    bytes.extend_from_slice(of.place.log.as_bytes());
    bytes.extend_from_slice(of.place.folder.as_bytes());
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<ClaimedLog> {
    // Numbers go on behind that of the claim.
    let claim = LogClaim::decode(&mut bytes).filter(|claim| claim.number <= NUMBER_MAX)?;
    let (mount, bytes) = bytes.split_first_chunk()?;
    let (shard, bytes) = bytes.split_first_chunk()?;
    let (log, folder) = bytes.split_first_chunk::<LOG_DIGITS>()?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let place = LogPlace { folder: text(folder)?, log: text(log)?, shard: u32::from_le_bytes(*shard) };
    Some(ClaimedLog { mount: u64::from_le_bytes(*mount), place, claim })
}

#[cfg(test)]
mod tests {
    use forebay_types::WorkerId;

    use super::*;

    fn of(id: u128) -> ClaimedLog {
        let place = LogPlace { folder: "a/b.shards".into(), log: "0123456789abcdef".into(), shard: 7 };
        ClaimedLog { mount: 3, place, claim: LogClaim { id, writer: WorkerId(1), second: WorkerId(2), number: 41 } }
    }

    #[test]
    fn what_was_durable_is_found_by_the_next_process_and_a_torn_end_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ClaimFile::create(folder.path(), "w", of(9)).unwrap();
        let objects = [vec![1; 10], vec![2], vec![3; 5000]];
        objects.iter().for_each(|object| file.append(object).unwrap());
        assert_eq!((file.first(), file.end()), (42, 45));
        let path = file.path.clone();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(file.bytes(), whole.len() as u64);
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let left = ClaimFile::left(folder.path()).unwrap();
            let Some(left) = left.first() else {
                assert!(!path.exists() && cut < 8 + 4 + 8 + 100, "cut at {cut}");
                continue;
            };
            assert_eq!(left.of(), &of(9));
            let count = (left.end() - left.first()) as usize;
            assert_eq!(left.read(42, usize::MAX).unwrap(), objects[..count], "cut at {cut}");
            assert!(cut < whole.len() || count == 3);
            // What the disk was not told before the power went is zeros on some.
            let zeros = [&whole[..cut], &[0; 100][..]].concat();
            std::fs::write(&path, zeros).unwrap();
            let left = ClaimFile::left(folder.path()).unwrap();
            assert_eq!(left[0].read(42, usize::MAX).unwrap(), objects[..count], "zeros from {cut} on");
        }
        std::fs::write(&path, &whole).unwrap();
        assert!(ClaimFile::create(folder.path(), "w", of(9)).is_err(), "a claim has one file of a role");
        ClaimFile::create(folder.path(), "s", of(9)).unwrap();
    }

    #[test]
    fn what_is_damaged_before_its_end_is_not_taken_for_all_that_there_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ClaimFile::create(folder.path(), "w", of(9)).unwrap();
        let (head, path) = (file.bytes() as usize, file.path.clone());
        (1..3u8).for_each(|object| file.append(&[object; 50]).unwrap());
        for at in [head - 1, head + HEAD_BYTES] {
            let mut damaged = std::fs::read(&path).unwrap();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert!(ClaimFile::left(folder.path()).unwrap().is_empty(), "byte {at}");
            assert!(path.exists(), "somebody may want it");
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
        }
        assert_eq!(ClaimFile::left(folder.path()).unwrap()[0].end(), 44);
    }

    #[test]
    fn a_file_that_verifies_and_says_no_log_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("9-w");
        for head in [&[7; 50][..], &[0xff; 100]] {
            let mut file = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
            push(&mut file, head);
            push(&mut file, b"changes that somebody may have been told of");
            std::fs::write(&path, file).unwrap();
            assert!(ClaimFile::left(folder.path()).unwrap().is_empty());
            assert!(path.exists(), "somebody may want it");
        }
    }

    #[test]
    fn no_flipped_bit_of_an_object_passes() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ClaimFile::create(folder.path(), "w", of(9)).unwrap();
        let begun = file.bytes() as usize;
        file.append(&[7; 50]).unwrap();
        let whole = std::fs::read(&file.path).unwrap();
        for at in begun..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&file.path, damaged).unwrap();
            assert_eq!(ClaimFile::left(folder.path()).unwrap()[0].end(), 42, "byte {at}");
        }
    }

    #[test]
    fn objects_are_read_from_a_number_on_as_many_as_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ClaimFile::create(folder.path(), "w", of(9)).unwrap();
        (0..4u8).for_each(|object| file.append(&[object; 100]).unwrap());
        let read = |from, bytes| file.read(from, bytes).unwrap().iter().map(|object| object[0]).collect::<Vec<_>>();
        assert_eq!((read(42, 1000), read(43, 250), read(44, 1)), (vec![0, 1, 2, 3], vec![1, 2], vec![2]));
        assert!(read(46, 1000).is_empty() && read(41, 1000).is_empty());
        file.remove().unwrap();
        file.remove().unwrap();
        assert!(ClaimFile::left(folder.path()).unwrap().is_empty());
    }
}
