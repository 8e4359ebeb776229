//! The kernel's questions to a file system, and answers: FUSE, version 7. Numbers are in the machine's order; layouts are those of
//! `linux/fuse.h`.

use rustix::io::Errno;

const MAJOR: u32 = 7;
const MINOR: u32 = 31;
/// Bytes of a question's header, and of an answer's.
const ASKED_BYTES: usize = 40;
const ANSWERED_BYTES: usize = 16;
const WRITE_BYTES_MAX: u32 = 64 << 10;
/// Longer than any question.
pub(super) const QUESTION_BYTES_MAX: usize = 256 << 10;

pub(super) const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
pub(super) const GETATTR: u32 = 3;
pub(super) const SETATTR: u32 = 4;
pub(super) const MKNOD: u32 = 8;
pub(super) const MKDIR: u32 = 9;
pub(super) const UNLINK: u32 = 10;
pub(super) const RMDIR: u32 = 11;
pub(super) const RENAME: u32 = 12;
pub(super) const OPEN: u32 = 14;
pub(super) const READ: u32 = 15;
pub(super) const WRITE: u32 = 16;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
pub(super) const FSYNC: u32 = 20;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
pub(super) const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
pub(super) const CREATE: u32 = 35;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;
pub(super) const FALLOCATE: u32 = 43;
pub(super) const RENAME2: u32 = 45;

/// The number of the root; those of files follow.
pub(super) const ROOT: u64 = 1;
pub(super) const IS_FOLDER: u32 = 0o040_000;
pub(super) const IS_FILE: u32 = 0o100_000;
/// Pages of 4 KiB that a file system says that it has, all of them free.
const PAGES: u64 = 1 << 18;
/// When everything was made, in seconds since 1970.
const MADE_SECS: u64 = 1_700_000_000;

/// What answers what is about files.
pub(super) trait Answers: Send + 'static {
    /// The answer's bytes, behind its header.
    fn answer(&mut self, question: &Question<'_>) -> Result<Vec<u8>, Errno>;
}

/// A question about a file or a folder.
pub(super) struct Question<'a> {
    pub(super) kind: u32,
    pub(super) node: u64,
    pub(super) body: &'a [u8],
}

/// What a file or a folder is.
pub(super) struct About {
    pub(super) node: u64,
    pub(super) bytes: u64,
    pub(super) mode: u32,
}

impl Question<'_> {
    pub(super) fn u32_at(&self, at: usize) -> Result<u32, Errno> {
        u32_at(self.body, at).ok_or(Errno::INVAL)
    }

    pub(super) fn u64_at(&self, at: usize) -> Result<u64, Errno> {
        u64_at(self.body, at).ok_or(Errno::INVAL)
    }

    /// Where a read begins, and how much of it is wanted at most.
    pub(super) fn wanted(&self) -> Result<(u64, usize), Errno> {
        Ok((self.u64_at(8)?, self.u32_at(16)? as usize))
    }

    /// The names behind so many bytes.
    pub(super) fn names(&self, at: usize) -> Result<impl Iterator<Item = &[u8]>, Errno> {
        Ok(self.body.get(at..).ok_or(Errno::INVAL)?.split(|byte| *byte == 0))
    }

    /// The first of them.
    pub(super) fn name(&self, at: usize) -> Result<&[u8], Errno> {
        self.names(at)?.next().ok_or(Errno::INVAL)
    }
}

impl About {
    fn bytes(&self) -> Vec<u8> {
        let Self { node, bytes, mode } = *self;
        let numbers = words(&[node, bytes, bytes.div_ceil(512), MADE_SECS, MADE_SECS, MADE_SECS]);
        // Parts of seconds, mode, links, owner and group, device, block size, flags.
        [numbers, halves(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])].concat()
    }

    /// As an answer to who asks for it. The kernel asks again each time.
    pub(super) fn told(&self) -> Vec<u8> {
        [words(&[0, 0]), self.bytes()].concat()
    }

    /// As one to who looked for its name.
    pub(super) fn found(&self) -> Vec<u8> {
        [words(&[self.node, 0, 0, 0, 0]), self.bytes()].concat()
    }
}

/// A file is open; what is read and written of it goes past the kernel's cache or not.
pub(super) fn opened(past_cache: bool) -> Vec<u8> {
    [words(&[0]), halves(&[u32::from(past_cache), 0])].concat()
}

/// Names of a folder from a place on, as many as there is room for.
pub(super) fn listed<'a>(entries: impl Iterator<Item = (&'a [u8], u64, u32)>, (from, most): (u64, usize)) -> Vec<u8> {
    let mut names = Vec::new();
    for (place, (name, node, mode)) in (1_u64..).zip(entries).skip(usize::try_from(from).unwrap_or(usize::MAX)) {
        let mut entry = words(&[node, place]);
        entry.extend(halves(&[name.len() as u32, mode >> 12]));
        entry.extend(name);
        entry.resize(entry.len().next_multiple_of(8), 0);
        if names.len() + entry.len() > most {
            break;
        }
        names.extend(entry);
    }
    names
}

/// The answer to a question as the kernel has it; none where none is wanted.
pub(super) fn answer(files: &mut dyn Answers, asked: &[u8]) -> Option<Vec<u8>> {
    let (kind, unique, node) = (u32_at(asked, 4)?, u64_at(asked, 8)?, u64_at(asked, 16)?);
    let body = asked.get(ASKED_BYTES..)?;
    let told = match kind {
        FORGET | BATCH_FORGET | INTERRUPT => return None,
        INIT => Ok(ready(body)),
        OPENDIR => Ok(opened(false)),
        STATFS => Ok([words(&[PAGES, PAGES, PAGES, PAGES, PAGES]), halves(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])].concat()),
        RELEASE | RELEASEDIR | FLUSH | DESTROY => Ok(Vec::new()),
        _ => files.answer(&Question { kind, node, body }),
    };
    let (error, told) = told.map_or_else(|errno| (-errno.raw_os_error(), Vec::new()), |told| (0, told));
    let head = [halves(&[(ANSWERED_BYTES + told.len()) as u32, error as u32]), words(&[unique])].concat();
    Some([head, told].concat())
}

/// The answer to the first question: nothing is wanted that need not be.
fn ready(body: &[u8]) -> Vec<u8> {
    let ahead = u32_at(body, 8).unwrap_or_default();
    // Requests behind the way: at most, and from when on there are many of them; the largest write, the grain of times.
    let mut ready = halves(&[MAJOR, MINOR, ahead, 0, 12 << 16 | 16, WRITE_BYTES_MAX, 1]);
    ready.resize(64, 0);
    ready
}

pub(super) fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

pub(super) fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The answer to a question: its error, and its bytes.
    pub(in crate::cluster::fuse) fn ask(files: &mut dyn Answers, kind: u32, node: u64, body: &[u8]) -> Option<(i32, Vec<u8>)> {
        let head = [halves(&[(ASKED_BYTES + body.len()) as u32, kind]), words(&[77, node, 0, 0])].concat();
        let answer = answer(files, &[head, body.to_vec()].concat())?;
        assert_eq!((u32_at(&answer, 0), u64_at(&answer, 8)), (Some(answer.len() as u32), Some(77)));
        Some((u32_at(&answer, 4).unwrap() as i32, answer[ANSWERED_BYTES..].to_vec()))
    }

    /// The number of what was found.
    pub(in crate::cluster::fuse) fn node_of(found: &[u8]) -> u64 {
        u64_at(found, 0).unwrap()
    }

    struct Nothing;

    impl Answers for Nothing {
        fn answer(&mut self, question: &Question<'_>) -> Result<Vec<u8>, Errno> {
            match question.kind {
                GETATTR => Ok(About { node: question.node, bytes: 5, mode: IS_FILE }.told()),
                LOOKUP => Ok(About { node: 9, bytes: 5, mode: IS_FILE }.found()),
                OPEN => Ok(opened(true)),
                _ => Err(Errno::NOSYS),
            }
        }
    }

    #[test]
    fn answers_have_the_lengths_that_the_kernel_wants() {
        let first = halves(&[MAJOR, 41, 4096, 0]);
        for (kind, len) in [(INIT, 64), (LOOKUP, 128), (GETATTR, 104), (OPEN, 16), (OPENDIR, 16), (STATFS, 80), (FLUSH, 0)] {
            let answer = ask(&mut Nothing, kind, ROOT, &first);
            assert_eq!(answer.map(|(error, told)| (error, told.len())), Some((0, len)), "{kind}");
        }
        assert_eq!(ask(&mut Nothing, FORGET, ROOT, &first), None);
        assert_eq!(ask(&mut Nothing, MKNOD, ROOT, &first).unwrap().0, -Errno::NOSYS.raw_os_error());
        assert_eq!(answer(&mut Nothing, b"short"), None);
    }
}
