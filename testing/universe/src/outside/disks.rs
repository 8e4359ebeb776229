//! Disks of hosts, and what goes wrong with them: reads and writes that fail, no room, work that takes longer, and what a host that
//! loses its power has not kept.
//!
//! Files are the system's. Of a host that will lose its power it is known what was in a page before it was written, until that is
//! synchronised: any page of that may then have what was there before, or be torn between two sectors.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libc::c_int;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::descriptor::{OpenFile, bytes_at, position, regular_file};
use super::packet::HostId;

/// What is written as a whole, or not.
const SECTOR_BYTES: usize = 512;
const PAGE_BYTES: u64 = 4096;
/// Pages of a host that are not on its disk yet at most: the system writes older ones by itself.
const UNSYNCED_MAX: usize = 1024;
/// No host has its turn: files are touched by the world.
const NOBODY: HostId = HostId::MAX;

thread_local! {
    static DISKS: Cell<Option<Box<Disks>>> = const { Cell::new(None) };
}

/// The disks of a world.
pub(crate) struct Disks {
    /// Where all files of hosts are.
    device: u64,
    folder: PathBuf,
    turn: HostId,
    /// The process whose turn it is is being ended: nothing that it still does reaches its disk.
    ending: bool,
    /// A process that has ended and is run all the same: the same of it.
    ended: Option<HostId>,
    disks: Vec<Disk>,
    chance: StdRng,
    happened: BTreeMap<&'static str, u64>,
}

/// A host's disk. Faults may overlap.
#[derive(Default)]
struct Disk {
    /// One read, or write, in so many fails.
    fails_reads: Vec<u32>,
    fails_writes: Vec<u32>,
    full: u32,
    without_files: u32,
    late_ms: u64,
    /// What was written and is not synchronised, the oldest first. None where nobody asks for it.
    unsynced: Option<VecDeque<Written>>,
}

/// A part of a page that was written.
struct Written {
    inode: u64,
    at: u64,
    before: Vec<u8>,
}

/// What can be wrong with a disk for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// One read in so many fails.
    FailsReads { one_in: u32 },
    /// One write in so many fails, and so does synchronising.
    FailsWrites { one_in: u32 },
    /// There is no room for what is written.
    Full,
    /// Its process gets no descriptors for more files of it.
    NoFiles,
    /// Work on it takes so much longer.
    Late { by_ms: u64 },
}

/// What becomes of a write.
pub(super) enum Writing {
    /// So many bytes of it are written.
    Takes(usize),
    Fails(c_int),
}

impl Disks {
    /// Those of so many hosts, whose files are in a folder. Some will lose their power.
    pub(crate) fn new(folder: &Path, hosts: usize, seed: u64, lose_power: &[HostId]) -> Self {
        // Of a file: a folder's may be another one.
        let probe = folder.join("probe");
        let device = File::create(&probe).and_then(|file| file.metadata()).expect("a folder of the world's").dev();
        std::fs::remove_file(&probe).expect("a file of the world's");
        let mut disks: Vec<Disk> = (0..hosts).map(|_| Disk::default()).collect();
        lose_power.iter().for_each(|host| disks[*host].unsynced = Some(VecDeque::new()));
        let chance = StdRng::seed_from_u64(seed);
        let folder = folder.to_owned();
        Self { device, folder, turn: NOBODY, ending: false, ended: None, disks, chance, happened: BTreeMap::new() }
    }

    fn is_ending(&self) -> bool {
        self.ending || self.ended == Some(self.turn)
    }

    fn count(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    /// A file of a host, where it is one.
    fn file(&self, descriptor: c_int) -> Option<OpenFile> {
        regular_file(descriptor).filter(|file| file.device == self.device)
    }

    fn before_open(&mut self, path: &[u8]) -> Option<c_int> {
        let is_without = self.disks.get(self.turn)?.without_files > 0;
        if !is_without || !path.starts_with(self.folder.as_os_str().as_bytes()) {
            return None;
        }
        self.count("open_failed");
        Some(libc::EMFILE)
    }

    fn before_read(&mut self, descriptor: c_int) -> Option<c_int> {
        let one_in = *self.disks.get(self.turn)?.fails_reads.iter().min()?;
        self.file(descriptor)?;
        if !self.chance.random_ratio(1, one_in) {
            return None;
        }
        self.count("read_failed");
        Some(libc::EIO)
    }

    fn before_write(&mut self, descriptor: c_int, at: Option<u64>, len: usize) -> Writing {
        let Some(disk) = self.disks.get(self.turn) else { return Writing::Takes(len) };
        let (is_full, one_in) = (disk.full > 0, disk.fails_writes.iter().min().copied());
        let is_well = !is_full && one_in.is_none() && disk.unsynced.is_none() && !self.is_ending();
        let Some(file) = (!is_well).then(|| self.file(descriptor)).flatten() else { return Writing::Takes(len) };
        if self.is_ending() {
            return Writing::Fails(libc::EIO);
        }
        let refused = match one_in {
            _ if is_full => Some((libc::ENOSPC, "disk_full")),
            Some(one_in) if self.chance.random_ratio(1, one_in) => Some((libc::EIO, "write_failed")),
            _ => None,
        };
        let mut takes = len;
        if let Some((errno, what)) = refused {
            // Writes with a place are of whole pages.
            takes = if at.is_some() { len / 2 / PAGE_BYTES as usize * PAGE_BYTES as usize } else { len / 2 };
            if takes == 0 || self.chance.random() {
                self.count(what);
                return Writing::Fails(errno);
            }
        }
        if let Some(unsynced) = &mut self.disks[self.turn].unsynced {
            note(unsynced, descriptor, file.inode, at.unwrap_or_else(|| position(descriptor)), takes as u64);
        }
        Writing::Takes(takes)
    }

    fn before_sync(&mut self, descriptor: c_int) -> Option<c_int> {
        let disk = self.disks.get(self.turn)?;
        if disk.fails_writes.is_empty() && disk.unsynced.is_none() && !self.is_ending() {
            return None;
        }
        let (file, one_in) = (self.file(descriptor)?, disk.fails_writes.iter().min().copied());
        if self.is_ending() {
            return Some(libc::EIO);
        }
        if one_in.is_some_and(|one_in| self.chance.random_ratio(1, one_in)) {
            self.count("sync_failed");
            return Some(libc::EIO);
        }
        if let Some(unsynced) = &mut self.disks[self.turn].unsynced {
            unsynced.retain(|written| written.inode != file.inode);
        }
        None
    }
}

/// Takes down what is in a file before it is written.
fn note(unsynced: &mut VecDeque<Written>, descriptor: c_int, inode: u64, at: u64, len: u64) {
    // Of one call: the kernel is asked about each write.
    let (before, end) = (bytes_at(descriptor, at, len as usize), at + len);
    let mut from = at;
    while from < end {
        let next = (from / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES).min(end);
        let page = before[(from - at) as usize..(next - at) as usize].to_vec();
        unsynced.push_back(Written { inode, at: from, before: page });
        from = next;
    }
    unsynced.drain(..unsynced.len().saturating_sub(UNSYNCED_MAX));
}

/// Works on the disks, where this thread has them and nobody is at it.
fn with<T>(work: impl FnOnce(&mut Disks) -> T) -> Option<T> {
    let done = DISKS.try_with(|disks| {
        let mut here = disks.take()?;
        let done = work(&mut here);
        disks.set(Some(here));
        Some(done)
    });
    done.ok().flatten()
}

pub(super) fn before_open(path: &[u8]) -> Option<c_int> {
    with(|disks| disks.before_open(path)).flatten()
}

pub(super) fn before_read(descriptor: c_int) -> Option<c_int> {
    with(|disks| disks.before_read(descriptor)).flatten()
}

pub(super) fn before_write(descriptor: c_int, at: Option<u64>, len: usize) -> Writing {
    with(|disks| disks.before_write(descriptor, at, len)).unwrap_or(Writing::Takes(len))
}

pub(super) fn before_sync(descriptor: c_int) -> Option<c_int> {
    with(|disks| disks.before_sync(descriptor)).flatten()
}

/// From now on this thread's files are on these disks.
pub(crate) fn install(disks: Disks) {
    DISKS.set(Some(Box::new(disks)));
}

/// Says whose code runs from now on.
pub(crate) fn turn(host: HostId) {
    with(|disks| disks.turn = host);
}

/// The world itself touches files from now on.
pub(crate) fn turn_of_nobody() {
    turn(NOBODY);
}

/// The process whose turn it is is being ended, or that is over.
pub(crate) fn set_ending(ending: bool) {
    with(|disks| disks.ending = ending);
}

/// Nothing reaches the disk of this host any more: its process has ended.
pub(crate) fn set_ended(host: Option<HostId>) {
    with(|disks| disks.ended = host);
}

/// Something is wrong with a host's disk from now on.
pub(crate) fn begin(host: HostId, trouble: Trouble) {
    with(|disks| {
        let disk = &mut disks.disks[host];
        match trouble {
            Trouble::FailsReads { one_in } => disk.fails_reads.push(one_in),
            Trouble::FailsWrites { one_in } => disk.fails_writes.push(one_in),
            Trouble::Full => disk.full += 1,
            Trouble::NoFiles => disk.without_files += 1,
            Trouble::Late { by_ms } => disk.late_ms += by_ms,
        }
    });
}

/// It is wrong no longer.
pub(crate) fn end(host: HostId, trouble: Trouble) {
    let less = |all: &mut Vec<u32>, one_in: u32| {
        let place = all.iter().position(|each| *each == one_in).expect("what ends has begun");
        all.remove(place);
    };
    with(|disks| {
        let disk = &mut disks.disks[host];
        match trouble {
            Trouble::FailsReads { one_in } => less(&mut disk.fails_reads, one_in),
            Trouble::FailsWrites { one_in } => less(&mut disk.fails_writes, one_in),
            Trouble::Full => disk.full -= 1,
            Trouble::NoFiles => disk.without_files -= 1,
            Trouble::Late { by_ms } => disk.late_ms -= by_ms,
        }
    });
}

/// How much longer work on the disk of the host takes whose turn it is.
pub(super) fn late() -> Duration {
    let late_ms = with(|disks| disks.disks.get(disks.turn).map(|disk| disk.late_ms));
    Duration::from_millis(late_ms.flatten().unwrap_or_default())
}

/// How often something went wrong, by what it was.
pub(crate) fn happened() -> BTreeMap<&'static str, u64> {
    with(|disks| disks.happened.clone()).unwrap_or_default()
}

/// A host has lost its power: what it wrote to files of a folder and has not synchronised is there, or not, page by page.
pub(crate) fn lose_unsynced(host: HostId, folder: &Path) {
    turn_of_nobody();
    let written = with(|disks| disks.disks[host].unsynced.as_mut().map(std::mem::take)).flatten().unwrap_or_default();
    let mut paths = BTreeMap::new();
    files_of(folder, &mut paths);
    let mut files: BTreeMap<u64, (File, u64)> = BTreeMap::new();
    let mut settled = BTreeSet::new();
    // Backwards: what is lost leaves what was there before it, which may be lost as well.
    for Written { inode, at, before } in written.into_iter().rev() {
        let page = (inode, at / PAGE_BYTES);
        let Some(path) = paths.get(&inode).filter(|_| !settled.contains(&page)) else { continue };
        let sectors = before.len() / SECTOR_BYTES;
        let drawn = with(|disks| (disks.chance.random_range(0..4), disks.chance.random_range(0..=sectors)));
        let (which, whole) = drawn.expect("disks of this thread");
        let (what, from) = match which {
            0 | 1 => ("page_lost", 0),
            2 => ("page_torn", whole * SECTOR_BYTES),
            _ => ("page_kept", before.len()),
        };
        with(|disks| disks.count(what));
        if which > 1 {
            settled.insert(page);
        }
        let (file, len) = files.entry(inode).or_insert_with(|| {
            let file = File::options().write(true).open(path).expect("a file of the world's");
            let len = file.metadata().expect("a file of the world's").len();
            (file, len)
        });
        // What is behind its end by now was cut off.
        let (from_at, to) = (at + from as u64, (at + before.len() as u64).min(*len));
        if from_at < to {
            let lost = &before[from..(to - at) as usize];
            file.write_all_at(lost, from_at).expect("a file of the world's");
        }
    }
}

/// The files of a folder by their numbers.
fn files_of(folder: &Path, paths: &mut BTreeMap<u64, PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            files_of(&entry.path(), paths);
        } else if about.is_file() {
            paths.insert(about.ino(), entry.path());
        }
    }
}
