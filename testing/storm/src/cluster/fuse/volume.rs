//! Files and folders in memory, which are made, written and removed; reads and writes may be made to fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::Errno;

use super::question::{
    About, Answers, CREATE, FALLOCATE, FSYNC, GETATTR, IS_FILE, IS_FOLDER, LOOKUP, MKDIR, MKNOD, OPEN, Question, READ, READDIR,
    RENAME, RENAME2, RMDIR, ROOT, SETATTR, UNLINK, WRITE, halves, listed, opened,
};

const PAGE: u64 = 4096;
/// What is changed of a file by `SETATTR`.
const SETS_MODE: u32 = 1;
const SETS_SIZE: u32 = 1 << 3;
/// `fallocate` gives space back, which is not kept in mind otherwise.
const PUNCHES: u32 = 2;
/// The kind that a mode says; the rest of it are rights.
const KIND: u32 = 0o170_000;
const RIGHTS: u32 = 0o7_777;

/// All of it.
pub(super) struct Volume {
    nodes: BTreeMap<u64, Node>,
    next: u64,
    /// Reads, writes and synchronising fail.
    fails: Arc<AtomicBool>,
}

struct Node {
    mode: u32,
    /// Of a folder.
    names: BTreeMap<Vec<u8>, u64>,
    /// Of a file: as far as it was written.
    pages: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl Node {
    fn new(mode: u32) -> Self {
        Self { mode, names: BTreeMap::new(), pages: BTreeMap::new(), bytes: 0 }
    }

    fn read(&self, from: u64, most: usize) -> Vec<u8> {
        let end = self.bytes.min(from.saturating_add(most as u64));
        let mut read = Vec::new();
        let mut at = from;
        while at < end {
            let (page, within) = (at / PAGE, (at % PAGE) as usize);
            let part = (PAGE as usize - within).min((end - at) as usize);
            match self.pages.get(&page) {
                Some(bytes) => read.extend_from_slice(&bytes[within..within + part]),
                None => read.resize(read.len() + part, 0),
            }
            at += part as u64;
        }
        read
    }

    fn write(&mut self, from: u64, mut bytes: &[u8]) {
        let mut at = from;
        while !bytes.is_empty() {
            let (page, within) = (at / PAGE, (at % PAGE) as usize);
            let (part, rest) = bytes.split_at(bytes.len().min(PAGE as usize - within));
            let there = self.pages.entry(page).or_insert_with(|| vec![0; PAGE as usize]);
            there[within..within + part.len()].copy_from_slice(part);
            at += part.len() as u64;
            bytes = rest;
        }
        self.bytes = self.bytes.max(at);
    }

    /// Zeros from one byte to another.
    fn clear(&mut self, from: u64, to: u64) {
        let (first, end) = (from.div_ceil(PAGE), to / PAGE);
        let whole: Vec<u64> =
            if first < end { self.pages.range(first..end).map(|(page, _)| *page).collect() } else { Vec::new() };
        whole.iter().for_each(|page| drop(self.pages.remove(page)));
        for (page, bytes) in self.pages.range_mut(from / PAGE..to.div_ceil(PAGE)) {
            let (begin, end) = (from.max(page * PAGE), to.min((page + 1) * PAGE));
            bytes[(begin - page * PAGE) as usize..(end - page * PAGE) as usize].fill(0);
        }
    }

    fn cut(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.clear(bytes, self.bytes);
        }
        self.bytes = bytes;
    }
}

impl Volume {
    pub(super) fn new(fails: Arc<AtomicBool>) -> Self {
        Self { nodes: BTreeMap::from([(ROOT, Node::new(IS_FOLDER | 0o755))]), next: ROOT + 1, fails }
    }

    fn node(&mut self, node: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::NOENT)
    }

    fn about(&mut self, node: u64) -> Result<About, Errno> {
        let Node { mode, bytes, .. } = *self.node(node)?;
        Ok(About { node, bytes, mode })
    }

    fn find(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        self.node(folder)?.names.get(name).copied().ok_or(Errno::NOENT)
    }

    fn make(&mut self, folder: u64, name: &[u8], mode: u32) -> Result<About, Errno> {
        let node = self.next;
        let names = &mut self.node(folder)?.names;
        if names.contains_key(name) {
            return Err(Errno::EXIST);
        }
        names.insert(name.to_vec(), node);
        self.nodes.insert(node, Node::new(mode));
        self.next += 1;
        self.about(node)
    }

    /// Takes a name away. What it named is there as long as somebody has it open.
    fn remove(&mut self, folder: u64, name: &[u8], is_folder: bool) -> Result<(), Errno> {
        let node = self.find(folder, name)?;
        let found = self.node(node)?;
        match (is_folder, found.mode & KIND == IS_FOLDER) {
            (true, false) => return Err(Errno::NOTDIR),
            (false, true) => return Err(Errno::ISDIR),
            (true, true) if !found.names.is_empty() => return Err(Errno::NOTEMPTY),
            _ => {}
        }
        self.node(folder)?.names.remove(name);
        Ok(())
    }

    fn rename(&mut self, folder: u64, question: &Question<'_>, names_at: usize) -> Result<Vec<u8>, Errno> {
        let mut names = question.names(names_at)?;
        let (from, to) = (names.next().ok_or(Errno::INVAL)?, names.next().ok_or(Errno::INVAL)?);
        let (node, into) = (self.find(folder, from)?, question.u64_at(0)?);
        self.node(into)?.names.insert(to.to_vec(), node);
        if (folder, from) != (into, to) {
            self.node(folder)?.names.remove(from);
        }
        Ok(Vec::new())
    }

    fn set(&mut self, question: &Question<'_>) -> Result<Vec<u8>, Errno> {
        let (sets, bytes, mode) = (question.u32_at(0)?, question.u64_at(16)?, question.u32_at(68)?);
        let node = self.node(question.node)?;
        if sets & SETS_MODE != 0 {
            node.mode = node.mode & KIND | mode & RIGHTS;
        }
        if sets & SETS_SIZE != 0 {
            node.cut(bytes);
        }
        Ok(self.about(question.node)?.told())
    }
}

impl Answers for Volume {
    fn answer(&mut self, question: &Question<'_>) -> Result<Vec<u8>, Errno> {
        let node = question.node;
        if matches!(question.kind, READ | WRITE | FSYNC | FALLOCATE) && self.fails.load(Relaxed) {
            return Err(Errno::IO);
        }
        match question.kind {
            LOOKUP => {
                let found = self.find(node, question.name(0)?)?;
                Ok(self.about(found)?.found())
            }
            GETATTR => Ok(self.about(node)?.told()),
            SETATTR => self.set(question),
            MKNOD => Ok(self.make(node, question.name(16)?, question.u32_at(0)?)?.found()),
            MKDIR => Ok(self.make(node, question.name(8)?, IS_FOLDER | question.u32_at(0)? & RIGHTS)?.found()),
            CREATE => {
                let mode = IS_FILE | question.u32_at(4)? & RIGHTS;
                Ok([self.make(node, question.name(16)?, mode)?.found(), opened(false)].concat())
            }
            UNLINK => self.remove(node, question.name(0)?, false).map(|()| Vec::new()),
            RMDIR => self.remove(node, question.name(0)?, true).map(|()| Vec::new()),
            RENAME => self.rename(node, question, 8),
            RENAME2 if question.u32_at(8)? == 0 => self.rename(node, question, 16),
            OPEN => self.about(node).map(|_| opened(false)),
            READ => {
                let (from, most) = question.wanted()?;
                Ok(self.node(node)?.read(from, most))
            }
            WRITE => {
                let (from, bytes) = question.wanted()?;
                let written = question.body.get(40..).and_then(|written| written.get(..bytes)).ok_or(Errno::INVAL)?;
                self.node(node)?.write(from, written);
                Ok(halves(&[bytes as u32, 0]))
            }
            FALLOCATE => {
                let (from, bytes, mode) = (question.u64_at(8)?, question.u64_at(16)?, question.u32_at(24)?);
                if mode & PUNCHES != 0 {
                    self.node(node)?.clear(from, from.saturating_add(bytes));
                }
                Ok(Vec::new())
            }
            FSYNC => Ok(Vec::new()),
            READDIR => {
                let names: Vec<(Vec<u8>, u64)> =
                    self.node(node)?.names.iter().map(|(name, node)| (name.clone(), *node)).collect();
                let mode = |node: &u64| self.nodes.get(node).map_or(IS_FILE, |node| node.mode);
                let entries = names.iter().map(|(name, node)| (name.as_slice(), *node, mode(node)));
                Ok(listed(entries, question.wanted()?))
            }
            _ => Err(Errno::NOSYS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::tests::{ask, node_of};
    use super::super::question::words;
    use super::*;

    fn create(volume: &mut Volume, name: &[u8]) -> u64 {
        let (error, created) = ask(volume, CREATE, ROOT, &[halves(&[0, 0o600, 0, 0]), name.to_vec()].concat()).unwrap();
        assert_eq!((error, created.len()), (0, 144));
        node_of(&created)
    }

    fn write(volume: &mut Volume, node: u64, from: u64, bytes: &[u8]) -> i32 {
        let head = [words(&[0, from]), halves(&[bytes.len() as u32, 0]), words(&[0, 0])].concat();
        ask(volume, WRITE, node, &[head, bytes.to_vec()].concat()).unwrap().0
    }

    fn read(volume: &mut Volume, node: u64, from: u64, most: u32) -> (i32, Vec<u8>) {
        ask(volume, READ, node, &[words(&[0, from]), halves(&[most, 0])].concat()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_cut_and_given_back() {
        let mut volume = Volume::new(Arc::default());
        let node = create(&mut volume, b"file\0");
        assert_eq!(write(&mut volume, node, 4_090, b"over a border"), 0);
        assert_eq!(read(&mut volume, node, 4_088, 100), (0, b"\0\0over a border".to_vec()));
        let punch = [words(&[0, 4_096, 4_096]), halves(&[PUNCHES | 1, 0])].concat();
        assert_eq!(ask(&mut volume, FALLOCATE, node, &punch).unwrap().0, 0);
        assert_eq!(read(&mut volume, node, 4_090, 100), (0, b"over a\0\0\0\0\0\0\0".to_vec()));
        let cut = [halves(&[SETS_SIZE, 0]), words(&[0, 4_092]), vec![0; 64]].concat();
        assert_eq!(ask(&mut volume, SETATTR, node, &cut).unwrap().0, 0);
        assert_eq!(read(&mut volume, node, 4_090, 100), (0, b"ov".to_vec()));
        assert_eq!(write(&mut volume, node, 4_096, b"x"), 0);
        assert_eq!(read(&mut volume, node, 4_090, 100), (0, b"ov\0\0\0\0x".to_vec()), "what was cut off does not come back");
    }

    #[test]
    fn names_are_made_moved_and_removed() {
        let mut volume = Volume::new(Arc::default());
        let node = create(&mut volume, b"new\0");
        assert_eq!(ask(&mut volume, MKDIR, ROOT, &[halves(&[0o700, 0]), b"folder\0".to_vec()].concat()).unwrap().0, 0);
        let folder = node_of(&ask(&mut volume, LOOKUP, ROOT, b"folder\0").unwrap().1);
        let rename = [words(&[folder, 0]), b"new\0old\0".to_vec()].concat();
        assert_eq!(ask(&mut volume, RENAME2, ROOT, &rename).unwrap().0, 0);
        assert_eq!(node_of(&ask(&mut volume, LOOKUP, folder, b"old\0").unwrap().1), node);
        assert_eq!(ask(&mut volume, LOOKUP, ROOT, b"new\0").unwrap().0, -Errno::NOENT.raw_os_error());
        assert_eq!(ask(&mut volume, RMDIR, ROOT, b"folder\0").unwrap().0, -Errno::NOTEMPTY.raw_os_error());
        assert_eq!(ask(&mut volume, UNLINK, folder, b"old\0").unwrap().0, 0);
        assert_eq!(ask(&mut volume, RMDIR, ROOT, b"folder\0").unwrap().0, 0);
    }

    #[test]
    fn one_that_fails_has_its_bytes_again_afterwards() {
        let fails = Arc::new(AtomicBool::new(false));
        let mut volume = Volume::new(Arc::clone(&fails));
        let node = create(&mut volume, b"file\0");
        assert_eq!(write(&mut volume, node, 0, b"bytes"), 0);
        fails.store(true, Relaxed);
        let failed = -Errno::IO.raw_os_error();
        assert_eq!((write(&mut volume, node, 0, b"other"), read(&mut volume, node, 0, 9)), (failed, (failed, Vec::new())));
        fails.store(false, Relaxed);
        assert_eq!(read(&mut volume, node, 0, 9), (0, b"bytes".to_vec()));
    }
}
