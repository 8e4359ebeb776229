//! The DRAM tier's memory as the system sees it: mapped, handed to other processes, and given back page by page.

#![allow(unsafe_code, reason = "the one mapping of the DRAM tier, and the views into it")]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use forebay_types::{Error, PAGE_BYTES, Result, ResultExt, format_bytes};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use super::SUMS_PER_PAGE;

/// The DRAM tier for a process that reads it in place.
#[derive(Debug)]
pub struct ArenaHandle {
    /// A read-only descriptor of the tier, sealed against resizing. A page that is not under a pin may change or
    /// vanish at any time; reading one that is not there makes the system allocate it, so read only what is pinned.
    pub fd: OwnedFd,
    /// Bytes to map.
    pub bytes: u64,
}

/// The DRAM tier's addresses: a sparse memfd, mapped whole. Data pages come first, then one checksum (4 bytes) a data
/// page, then frames, which are pages for the store's own use.
#[derive(Debug)]
pub(crate) struct Arena {
    memfd: OwnedFd,
    map: MmapRaw,
    data_pages: u64,
    frames_at: u64,
}

impl Arena {
    /// `data_pages` addresses, a multiple of 1024, and `frames` frames.
    pub fn new(data_pages: u64, frames: u64) -> Result<Self> {
        assert!(data_pages.is_multiple_of(SUMS_PER_PAGE));
        let frames_at = data_pages + data_pages / SUMS_PER_PAGE;
        let bytes = (frames_at + frames) * PAGE_BYTES;
        let made = || -> std::io::Result<(OwnedFd, MmapRaw)> {
            let memfd = rustix::fs::memfd_create("forebay-dram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            rustix::fs::ftruncate(&memfd, bytes)?;
            // A write seal would forbid giving pages back.
            rustix::fs::fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            let map = MmapOptions::new().len(bytes as usize).no_reserve_swap().map_raw(&memfd)?;
            // A core dump is of no use with a cache in it.
            map.advise(Advice::DontDump)?;
            Ok((memfd, map))
        };
        let (memfd, map) = made().context(|| {
            format!(
                "the DRAM tier's {} of addresses can't be set up: lift limits on address space and file size (ulimit -v, -f), since \
                 addresses are not memory",
                format_bytes(bytes)
            )
        })?;
        Ok(Self { memfd, map, data_pages, frames_at })
    }

    /// A descriptor for others, by which the tier can be read but not written.
    pub fn handle(&self) -> Result<ArenaHandle> {
        let file = File::open(self.path()).context(|| "the DRAM tier can't be opened for reading in place")?;
        Ok(ArenaHandle { fd: file.into(), bytes: self.data_pages * PAGE_BYTES })
    }

    /// A descriptor for others by which all of the tier can be written.
    pub fn writable(&self) -> Result<OwnedFd> {
        let file = File::options().write(true).open(self.path());
        Ok(file.context(|| "the DRAM tier can't be opened for writing in place")?.into())
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.memfd.as_fd().as_raw_fd())
    }

    /// Gives the memory of data pages back.
    pub fn punch(&self, page: u64, pages: u64) {
        assert!(page + pages <= self.data_pages);
        self.punch_at(page, pages);
    }

    /// Gives a page of checksums back.
    pub fn punch_sums(&self, group: u64) {
        assert!(group < self.data_pages / SUMS_PER_PAGE);
        self.punch_at(self.data_pages + group, 1);
    }

    fn punch_at(&self, page: u64, pages: u64) {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if let Err(error) = rustix::fs::fallocate(&self.memfd, mode, page * PAGE_BYTES, pages * PAGE_BYTES) {
            // Only a signal or a kernel without shmem's hole punching comes here; the pages will be written over.
            tracing::warn!(page, pages, %error, "memory of the DRAM tier was not given back");
        }
    }

    /// The stored checksum of a data page. Only of pages that are counted in the tier's [`super::SumGroups`].
    pub fn sum(&self, page: u64) -> &AtomicU32 {
        assert!(page < self.data_pages);
        // SAFETY: the word lies within the mapping, which lives as long as `self`, is 4-byte aligned because the mapping is
        // page aligned, and is accessed through atomics only, here and in no other place of this process.
        unsafe { AtomicU32::from_ptr(self.at(self.data_pages).add(page as usize * 4).cast()) }
    }

    /// # Safety
    /// Nobody may write to these pages, nor may they be punched, while the slice lives.
    pub unsafe fn read(&self, page: u64, pages: u64) -> &[u8] {
        assert!(page + pages <= self.data_pages);
        // SAFETY: within the mapping; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.at(page), (pages * PAGE_BYTES) as usize) }
    }

    /// # Safety
    /// Nobody else may touch these pages while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "exclusive by the caller's promise: claims on pages, not a borrow of the arena")]
    pub unsafe fn write(&self, page: u64, pages: u64) -> &mut [u8] {
        assert!(page + pages <= self.data_pages);
        // SAFETY: within the mapping; that nobody else looks is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(page), (pages * PAGE_BYTES) as usize) }
    }

    /// Copies bytes to an offset of data pages that nobody else touches. By a system call: the kernel need not clear the pages first,
    /// nor fault them in one by one, by which it is about twice as fast as copying through the mapping, or receiving there.
    pub fn copy_in(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        assert!(offset + bytes.len() as u64 <= self.data_pages * PAGE_BYTES);
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.memfd, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// # Safety
    /// Nobody else may touch this frame while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "exclusive by the caller's promise: a lock on the frame")]
    pub unsafe fn frame(&self, frame: u64) -> &mut [u8] {
        let page = self.frames_at + frame;
        assert!((page + 1) * PAGE_BYTES <= self.map.len() as u64);
        // SAFETY: within the mapping; that nobody else looks is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(page), PAGE_BYTES as usize) }
    }

    /// Memory that the tier really takes, in bytes, as the system counts it.
    pub fn resident_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.memfd).map_err(|error| Error::from(std::io::Error::from(error)))?;
        Ok(stat.st_blocks as u64 * 512)
    }

    fn at(&self, page: u64) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add((page * PAGE_BYTES) as usize)
    }
}
