//! A worker's tier in the memory of this process.

#![allow(unsafe_code, reason = "the only place of this crate that reads memory shared with another process")]

use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;

use forebay_types::{Error, Result, ResultExt};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{SealFlags, fcntl_get_seals};

/// A worker's DRAM tier, mapped read-only: an address space (up to 1 TiB) of which only pages that were read take
/// entries of the page table, and nothing else.
pub(crate) struct Mapping {
    map: MmapRaw,
    bytes: u64,
}

impl Mapping {
    /// Maps `bytes` of the tier behind `descriptor`. `Invalid` unless it is that long and sealed against shrinking, for
    /// reading past the end of a shrunk file would kill this process.
    pub(crate) fn new(descriptor: OwnedFd, bytes: u64) -> Result<Self> {
        let seals = fcntl_get_seals(&descriptor).map_err(std::io::Error::from).context(|| "seals of the worker's tier")?;
        let file = File::from(descriptor);
        let len = file.metadata().context(|| "size of the worker's tier")?.len();
        if !seals.contains(SealFlags::SHRINK) || len < bytes || bytes == 0 {
            return Err(Error::invalid(format!(
                "the worker's tier can't be mapped: {len} bytes, {bytes} announced, seals {seals:?}; run one version of forebay"
            )));
        }
        let len = usize::try_from(bytes).map_err(|_| Error::invalid(format!("a tier of {bytes} bytes is too large to map")))?;
        let map = MmapOptions::new()
            .len(len)
            .no_reserve_swap()
            .map_raw_read_only(&file)
            .context(|| "mapping the worker's tier (is the address space limited, as by ulimit -v?)")?;
        Ok(Self { map, bytes })
    }

    /// Whether a span lies within the mapping.
    pub(crate) fn holds(&self, span: &Range<u64>) -> bool {
        span.start <= span.end && span.end <= self.bytes
    }

    /// The bytes of a span that is pinned. Only [`super::Pin`] calls this, with its own span.
    pub(super) fn pinned(&self, span: Range<u64>) -> &[u8] {
        assert!(self.holds(&span), "span {span:?} is not in a tier of {} bytes", self.bytes);
        let len = (span.end - span.start) as usize;
        // SAFETY: the span lies within the mapping (asserted), which is readable, can't shrink (sealed, checked when it
        // was mapped), and lives as long as the slice borrows it. The worker neither writes to pages under a pin nor gives them
        // back, and a pin ends in two ways only: the client drops it, or the client's end of the socket is closed. The caller
        // holds the pin, the pin its session, and the session the open socket, as long as the slice is used, whether the
        // connection still stands or has ended in whatever way. A worker that has died writes nothing any more.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(span.start as usize), len) }
    }
}
