//! The kernel's questions to a file system of a process's own, and answers: FUSE, version 7, of some files below a root that never change.
//! Numbers are in the machine's order; layouts are those of `linux/fuse.h`.

use bytes::Bytes;
use rustix::io::Errno;

const MAJOR: u32 = 7;
const MINOR: u32 = 31;
/// Bytes of a question's header, and of an answer's.
const ASKED_BYTES: usize = 40;
const ANSWERED_BYTES: usize = 16;
const WRITE_BYTES_MAX: u32 = 64 << 10;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

/// Reads go past the kernel's cache.
const DIRECT_IO: u32 = 1;
/// The number of the root; those of files follow.
const ROOT: u64 = 1;
const FIRST: u64 = 2;
const FOLDER_MODE: u32 = 0o040_555;
const FILE_MODE: u32 = 0o100_444;
/// What a name in a folder is: a file.
const IS_FILE: u32 = 8;
/// When all of it was made, in seconds since 1970.
const MADE_SECS: u64 = 1_700_000_000;

/// Files by their names.
pub(super) struct Files(pub(super) Vec<(String, Bytes)>);

impl Files {
    /// The answer to a question; none where none is wanted.
    pub(super) fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (kind, unique, node) = (u32_at(question, 4)?, u64_at(question, 8)?, u64_at(question, 16)?);
        let body = question.get(ASKED_BYTES..)?;
        let told = match kind {
            FORGET | BATCH_FORGET | INTERRUPT => return None,
            INIT => Ok(ready(body)),
            LOOKUP => self.lookup(body),
            GETATTR => self.about(node).map(|about| [words(&[0, 0]), about].concat()),
            OPEN => Ok([words(&[0]), halves(&[DIRECT_IO, 0])].concat()),
            OPENDIR => Ok(words(&[0, 0])),
            READ => self.read(node, body),
            READDIR => self.names(body),
            STATFS => Ok([words(&[0; 5]), halves(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])].concat()),
            RELEASE | RELEASEDIR | FLUSH | DESTROY => Ok(Vec::new()),
            _ => Err(Errno::NOSYS),
        };
        let (error, told) = told.map_or_else(|errno| (-errno.raw_os_error(), Vec::new()), |told| (0, told));
        let len = (ANSWERED_BYTES + told.len()) as u32;
        Some([len.to_ne_bytes().as_slice(), &error.to_ne_bytes(), &unique.to_ne_bytes(), told.as_slice()].concat())
    }

    fn file(&self, node: u64) -> Result<&Bytes, Errno> {
        let place = node.checked_sub(FIRST).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.0.get(place)).map(|(_, bytes)| bytes).ok_or(Errno::NOENT)
    }

    fn lookup(&self, body: &[u8]) -> Result<Vec<u8>, Errno> {
        let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
        let place = self.0.iter().position(|(known, _)| known.as_bytes() == name).ok_or(Errno::NOENT)?;
        let node = FIRST + place as u64;
        // It is asked for again each time.
        Ok([words(&[node, 0, 0, 0, 0]), self.about(node)?].concat())
    }

    /// What a file or the root is.
    fn about(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let (bytes, mode, links) = match node {
            ROOT => (0, FOLDER_MODE, 2),
            file => (self.file(file)?.len() as u64, FILE_MODE, 1),
        };
        let numbers = words(&[node, bytes, bytes.div_ceil(512), MADE_SECS, MADE_SECS, MADE_SECS]);
        // Parts of seconds, mode, links, owner and group, device, block size, flags.
        Ok([numbers, halves(&[0, 0, 0, mode, links, 0, 0, 0, 4096, 0])].concat())
    }

    fn read(&self, node: u64, body: &[u8]) -> Result<Vec<u8>, Errno> {
        let (file, (from, most)) = (self.file(node)?, wanted(body)?);
        let from = from.min(file.len());
        Ok(file[from..file.len().min(from + most)].to_vec())
    }

    /// Names from a place on, as many as there is room for.
    fn names(&self, body: &[u8]) -> Result<Vec<u8>, Errno> {
        let (from, most) = wanted(body)?;
        let mut names = Vec::new();
        for (place, (name, _)) in self.0.iter().enumerate().skip(from) {
            let mut entry = words(&[FIRST + place as u64, place as u64 + 1]);
            entry.extend(halves(&[name.len() as u32, IS_FILE]));
            entry.extend(name.as_bytes());
            entry.resize(entry.len().next_multiple_of(8), 0);
            if names.len() + entry.len() > most {
                break;
            }
            names.extend(entry);
        }
        Ok(names)
    }
}

/// The answer to the first question: nothing is wanted that need not be.
fn ready(body: &[u8]) -> Vec<u8> {
    let ahead = u32_at(body, 8).unwrap_or_default();
    // Requests behind the way: at most, and from when on there are many of them; the largest write, the grain of times.
    let mut ready = [halves(&[MAJOR, MINOR, ahead, 0]), halves(&[12 << 16 | 16, WRITE_BYTES_MAX, 1])].concat();
    ready.resize(64, 0);
    ready
}

/// Where a read begins, and how much of it is wanted at most.
fn wanted(body: &[u8]) -> Result<(usize, usize), Errno> {
    let (from, most) = (u64_at(body, 8).ok_or(Errno::INVAL)?, u32_at(body, 16).ok_or(Errno::INVAL)?);
    Ok((usize::try_from(from).map_err(|_| Errno::INVAL)?, most as usize))
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: u32, node: u64, body: &[u8]) -> Option<(i32, Vec<u8>)> {
        let files =
            Files(vec![("a".to_owned(), Bytes::from_static(b"first")), ("b".to_owned(), Bytes::from_static(b"second one"))]);
        let len = (ASKED_BYTES + body.len()) as u32;
        let head = [halves(&[len, kind]), words(&[77, node, 0, 0])].concat();
        let answer = files.answer(&[head, body.to_vec()].concat())?;
        assert_eq!((u32_at(&answer, 0), u64_at(&answer, 8)), (Some(answer.len() as u32), Some(77)));
        Some((i32::from_ne_bytes(answer[4..8].try_into().unwrap()), answer[ANSWERED_BYTES..].to_vec()))
    }

    #[test]
    fn files_are_found_read_and_listed() {
        let (error, entry) = asked(LOOKUP, ROOT, b"b\0").unwrap();
        assert_eq!((error, entry.len(), u64_at(&entry, 0), u64_at(&entry, 48)), (0, 128, Some(3), Some(10)));
        assert_eq!(asked(LOOKUP, ROOT, b"c\0").unwrap().0, -Errno::NOENT.raw_os_error());
        let from_to = |from: u64, most: u32| [words(&[0, from]), halves(&[most, 0])].concat();
        assert_eq!(asked(READ, 3, &from_to(7, 100)).unwrap(), (0, b"one".to_vec()));
        assert_eq!(asked(READ, 3, &from_to(100, 100)).unwrap(), (0, Vec::new()), "behind its end");
        let (_, names) = asked(READDIR, ROOT, &from_to(0, 4096)).unwrap();
        assert_eq!((names.len(), names[24], names[32 + 24]), (64, b'a', b'b'));
        assert_eq!(asked(READDIR, ROOT, &from_to(1, 40)).unwrap().1[..], names[32..]);
        assert!(asked(READDIR, ROOT, &from_to(2, 4096)).unwrap().1.is_empty());
    }

    #[test]
    fn answers_have_the_lengths_that_the_kernel_wants() {
        let first = halves(&[MAJOR, 41, 4096, 0]);
        let lengths = [(INIT, 64), (GETATTR, 104), (OPEN, 16), (OPENDIR, 16), (STATFS, 80), (FLUSH, 0)];
        for (kind, len) in lengths {
            assert_eq!(asked(kind, ROOT, &first).map(|(error, told)| (error, told.len())), Some((0, len)), "{kind}");
        }
        assert_eq!(asked(FORGET, ROOT, &first), None);
        assert_eq!(asked(9, ROOT, &first).unwrap().0, -Errno::NOSYS.raw_os_error(), "what is not known");
    }
}
