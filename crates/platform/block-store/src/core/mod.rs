//! Both tiers with their books, put together for all who work on them: what is where, room, eviction, what is kept and pinned, what
//! goes with a disk, what comes back after a restart.

mod access;
mod admit;
mod disk;
mod evict;
mod forget;
mod free;
mod pin;
mod pool;
mod reclaim;
mod recover;
mod spare;
mod write;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_data_folder::whole_disk_bytes;
use forebay_types::{Error, ErrorKind, Owner, PAGE_BYTES, PageRun, Result, SegmentId, format_bytes};
use memmap2::MmapMut;
use parking_lot::Mutex;

use crate::books::{DiskRoom, Spares, Tier, choose};
use crate::media::{Arena, Record, SUMS_PER_PAGE, SumGroups};
use crate::settings::{DiskFolder, StoreSettings};
use crate::table::{DiskNo, Place, Segment, Table};
use reclaim::Reclaim;

pub use access::Pinned;
pub(crate) use access::{ReadPages, WritePages};
pub(crate) use admit::Reservation;
pub(crate) use disk::Disk;
pub(crate) use pin::BlockPin;

/// Addresses of the DRAM tier at least, in bytes, so that small tiers don't run out of them.
const ADDRESS_BYTES_MIN: u64 = 1 << 40;
/// Addresses for each byte of capacity.
const ADDRESSES_PER_BYTE: u64 = 64;
/// Share of the DRAM tier that caches the disk tier's checksums: one in this many.
const FRAMES_SHARE: u64 = 256;
const FRAMES_MIN: u64 = 4;

/// Hears of pages of a segment, and whether they have come or left.
pub(crate) type Hear = Box<dyn Fn(SegmentId, PageRun, Change) + Send + Sync>;

/// What has become of pages of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They are in a tier, and were in none.
    Came,
    /// They are in no tier any more.
    Left,
}

/// Everything that fills, pins and the store's own threads share.
pub(crate) struct Core {
    pub settings: StoreSettings,
    pub table: Table,
    pub arena: Arc<Arena>,
    pub dram: Tier,
    pub dram_sums: SumGroups,
    pub spares: Mutex<Spares>,
    /// What the disk tier is made of, the store's own folder first where it has a part of it.
    pub disks: Vec<Disk>,
    pub folder_faults: FolderFaults,
    /// How long a load waits for the disk.
    pub patience: Duration,
    /// Who hears of pages that have come or that no tier has any more.
    pub changes: OnceLock<Hear>,
    /// What a scrub reads pages of the disk into, from one of its steps to the next.
    pub scratch: Mutex<Option<MmapMut>>,
    closed: AtomicBool,
}

/// What is wrong with folders of the disk tier since the start, in words.
#[derive(Default)]
pub(crate) struct FolderFaults {
    /// Those that can't be used.
    pub left_out: Vec<String>,
    /// Those that may take more than their file system has.
    pub too_large: Vec<String>,
}

impl FolderFaults {
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.left_out.iter().chain(&self.too_large)
    }
}

impl Core {
    /// Both tiers, empty.
    pub fn new(settings: StoreSettings, patience: Duration) -> Result<Self> {
        let bytes = settings.dram_bytes.saturating_mul(ADDRESSES_PER_BYTE).max(ADDRESS_BYTES_MIN);
        let addresses = (bytes / PAGE_BYTES).next_multiple_of(SUMS_PER_PAGE);
        let folders = disk_folders(&settings);
        // Each disk has as many as any other.
        let frames = match folders.len() as u64 {
            0 => 0,
            count => (settings.dram_bytes / PAGE_BYTES / FRAMES_SHARE / count).max(FRAMES_MIN),
        };
        let frames_in_all = frames * folders.len() as u64;
        let arena = Arc::new(Arena::new(addresses, frames_in_all)?);
        let dram = Tier::new(settings.dram_bytes / PAGE_BYTES, addresses);
        dram.force_reserve(frames_in_all);
        let (mut disks, mut folder_faults) = (Vec::new(), FolderFaults::default());
        for (at, name) in folders {
            folder_faults.too_large.extend(beyond_its_disk(&at, &name));
            let no = u8::try_from(disks.len()).expect("there are few disks");
            let of_arena = (u64::from(no) * frames, frames);
            match Disk::open(DiskNo(no), &at, name, &arena, of_arena, settings.in_flight) {
                Ok(disk) => disks.push(disk),
                Err(error) if at.folder == settings.folder => return Err(error),
                Err(error) => folder_faults.left_out.push(leave_out(&at.folder, error)?),
            }
        }
        Ok(Self {
            table: Table::new(),
            disks,
            folder_faults,
            arena,
            dram,
            dram_sums: SumGroups::new(addresses),
            spares: Mutex::default(),
            patience,
            changes: OnceLock::new(),
            scratch: Mutex::default(),
            closed: AtomicBool::new(false),
            settings,
        })
    }

    pub fn disk(&self, no: DiskNo) -> &Disk {
        &self.disks[usize::from(no.0)]
    }

    /// The disk that pages of a segment are on, if any are on disk.
    pub fn disk_of(&self, id: SegmentId) -> Option<&Disk> {
        let mut shard = self.table.by_id(id);
        let no = shard.by_id(id).filter(|entry| entry.disk.extent.is_some())?.disk_no;
        Some(self.disk(no))
    }

    /// The disk that takes pages of a segment: the one that it is bound to, else one by room and load. None where that takes nothing now.
    pub fn disk_for(&self, entry: &Segment) -> Option<&Disk> {
        match &*self.disks {
            // Who fails at the only one hears it from that.
            [only] => Some(only),
            _ if entry.is_bound() => Some(self.disk(entry.disk_no)).filter(|disk| disk.takes()),
            _ => self.disk_without(entry.id, entry.owner, &[]),
        }
    }

    /// The disk that takes a segment which is on none yet, by room and load, without those that were tried. One that has failed is tried
    /// again with what can be fetched again: temporary data goes to others as long as there are any.
    pub fn disk_without(&self, id: SegmentId, owner: Owner, tried: &[DiskNo]) -> Option<&Disk> {
        let is_well = |disk: &Disk| disk.health.is_well() && !tried.contains(&disk.no);
        let only_well = owner == Owner::Temporary && self.disks.iter().any(is_well);
        let rooms = self.disks.iter().map(|disk| {
            let room = disk.room();
            let takes = if only_well { is_well(disk) } else { room.takes || self.disks.len() == 1 };
            DiskRoom { takes: takes && !tried.contains(&disk.no), ..room }
        });
        choose(&rooms.collect::<Vec<_>>(), id).map(|at| &self.disks[at])
    }

    pub fn tier(&self, place: Place) -> &Tier {
        match place {
            Place::Dram => &self.dram,
            Place::Disk(no) => &self.disk(no).tier,
        }
    }

    /// Gives pages back, with the pages of checksums that go out of use by that; returns how many in all.
    pub fn punch(&self, place: Place, start: u64, len: u64) -> u64 {
        match place {
            Place::Dram => {
                self.arena.punch(start, len);
                len + self.dram_sums.remove(start, len, |group| self.arena.punch_sums(group))
            }
            Place::Disk(no) => len + self.disk(no).punch(start, len),
        }
    }

    /// Takes a record of a change of a disk, under the lock of what has changed.
    pub fn log(&self, no: DiskNo, record: Record) {
        self.disk(no).index.log(record);
    }

    /// Sees to it that records taken outside the store's own threads are written soon.
    pub fn nudge(&self) {
        self.disks.iter().filter(|disk| disk.index.has_work()).for_each(|disk| disk.pool.nudge());
    }

    /// An error when there is no disk tier, or the store is closed.
    pub fn check_disk(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::closed(format!("{}: the store is closed", self.settings.folder.display())));
        }
        if self.disks.is_empty() {
            return Err(Error::invalid("there is no disk tier here: give the worker one"));
        }
        Ok(())
    }

    pub fn close(&self) {
        self.closed.store(true, SeqCst);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }
}

/// Leaves a folder on another disk out, and says so in words. What is not right with the folder itself is for who named it, as it is with
/// the store's own.
pub(crate) fn leave_out(folder: &Path, error: Error) -> Result<String> {
    if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Denied) {
        return Err(error);
    }
    tracing::error!(folder = %folder.display(), %error, "a disk of the disk tier is left out");
    Ok(format!("disk tier in {} is left out: {error}", folder.display()))
}

/// What is wrong, in words, where a folder may take more than there is of its disk. It goes on until that is full.
fn beyond_its_disk(at: &DiskFolder, name: &str) -> Option<String> {
    let whole = whole_disk_bytes(&at.folder).filter(|whole| at.bytes > *whole)?;
    let warning = format!(
        "{name}: it may take {}, and its file system has {} in all: make the disk tier smaller",
        format_bytes(at.bytes),
        format_bytes(whole)
    );
    tracing::warn!(folder = %at.folder.display(), "{warning}");
    Some(warning)
}

/// The folders of the disk tier, the store's own first, each with what it is called.
fn disk_folders(settings: &StoreSettings) -> Vec<(DiskFolder, String)> {
    let own = DiskFolder { folder: settings.folder.clone(), bytes: settings.disk_bytes };
    let own = (own.bytes > 0).then(|| (own, "disk tier".to_string()));
    let others = settings.disks.iter().map(|disk| (disk.clone(), format!("disk tier in {}", disk.folder.display())));
    own.into_iter().chain(others).collect()
}
