//! How large the tiers are and where, on one disk or several, and what a caller must know of a segment before it brings any of it.

use std::path::{Path, PathBuf};

use forebay_types::{Error, Owner, PAGE_BYTES, PageRun, Result, SEGMENT_BYTES, SegmentId};

/// Folders beside the store's own at most.
const DISKS_MAX: usize = 16;

/// A folder on a disk of its own that holds a part of the disk tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFolder {
    /// The folder. It has to be there: the folder of a disk that is not mounted is not made on another one.
    pub folder: PathBuf,
    /// What the tier may take there, in bytes; at least 1 MiB.
    pub bytes: u64,
}

/// How a store is set up.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The store's own folder, with the disk tier or a part of it; made when it is not there. Held by one process at a time.
    pub folder: PathBuf,
    /// Capacity of the DRAM tier in bytes; at least 1 MiB.
    pub dram_bytes: u64,
    /// What the disk tier may take in `folder`, in bytes; 0 for nothing.
    pub disk_bytes: u64,
    /// Where else the disk tier lies.
    pub disks: Vec<DiskFolder>,
    /// Requests in flight to each disk at most.
    pub in_flight: usize,
    /// Share of the DRAM tier that may be pinned for reading in place, 0 to 1.
    pub in_place_share: f64,
}

impl StoreSettings {
    /// A store in `folder` without a disk tier, with the usual limits.
    pub fn new(folder: impl Into<PathBuf>, dram_bytes: u64) -> Self {
        Self { folder: folder.into(), dram_bytes, disk_bytes: 0, disks: Vec::new(), in_flight: 8, in_place_share: 0.5 }
    }

    /// Sets what the disk tier may take in the store's own folder, in bytes.
    pub fn with_disk(mut self, disk_bytes: u64) -> Self {
        self.disk_bytes = disk_bytes;
        self
    }

    /// Adds a folder on another disk.
    pub fn with_disk_folder(mut self, folder: impl Into<PathBuf>, bytes: u64) -> Self {
        self.disks.push(DiskFolder { folder: folder.into(), bytes });
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let folder = self.folder.display();
        if self.dram_bytes < 1 << 20 {
            return Err(Error::invalid(format!("{folder}: a DRAM tier of {} bytes is too small: give it 1MiB", self.dram_bytes)));
        }
        if self.disk_bytes != 0 && self.disk_bytes < 1 << 20 {
            let bytes = self.disk_bytes;
            return Err(Error::invalid(format!(
                "{folder}: a disk tier of {bytes} bytes is too small: give it 1MiB, or 0 for none"
            )));
        }
        if self.disks.len() > DISKS_MAX {
            return Err(Error::invalid(format!("{} folders of the disk tier: {DISKS_MAX} at most", self.disks.len())));
        }
        for disk in &self.disks {
            let (shown, bytes) = (disk.folder.display(), disk.bytes);
            if bytes < 1 << 20 {
                return Err(Error::invalid(format!(
                    "{shown}: {bytes} bytes of a disk tier are too few: give it 1MiB, or leave it out"
                )));
            }
            let named = self.disks.iter().filter(|other| is_same(&other.folder, &disk.folder)).count();
            if named > 1 || is_same(&self.folder, &disk.folder) {
                return Err(Error::invalid(format!("{shown}: named twice as a folder of the disk tier: name each disk once")));
            }
        }
        if self.in_flight == 0 || self.in_flight > 256 {
            return Err(Error::invalid(format!("{folder}: {} disk requests in flight: say 1 to 256", self.in_flight)));
        }
        if !(0.0..=1.0).contains(&self.in_place_share) {
            return Err(Error::invalid(format!("{folder}: in-place share {} is not between 0 and 1", self.in_place_share)));
        }
        Ok(())
    }
}

/// Whether two paths lead to one folder, as far as that can be seen.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// What a fill has to know of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// The segment.
    pub id: SegmentId,
    /// Its length in bytes: 1 to 64 MiB. The last page is zero-padded.
    pub bytes: u32,
    /// Whom its pages are accounted to.
    pub owner: Owner,
    /// Kept against eviction.
    pub keep: bool,
}

impl SegmentSpec {
    pub(crate) fn pages(&self) -> u32 {
        self.bytes.div_ceil(PAGE_BYTES as u32)
    }

    pub(crate) fn validate(&self, run: PageRun) -> Result<()> {
        if self.bytes == 0 || u64::from(self.bytes) > SEGMENT_BYTES {
            return Err(Error::invalid(format!("segment {} of {} bytes: a segment has 1 byte to 64 MiB", self.id, self.bytes)));
        }
        if run.len == 0 || run.end() > self.pages() {
            let (end, pages) = (run.end(), self.pages());
            return Err(Error::invalid(format!("pages {}..{end} of segment {}, which has {pages}", run.start, self.id)));
        }
        Ok(())
    }
}
