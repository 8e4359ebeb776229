//! Memory that two processes have mapped.

#![allow(unsafe_code, reason = "the one place of this crate that looks at memory which another process shares")]

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use forebay_types::{Error, Result, ResultExt};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};

use super::words::AtomicU64;

/// Memory that two processes have mapped: words that either may change at any time.
pub(super) struct Memory(MmapRaw);

impl Memory {
    /// New memory, zeros, and a descriptor for the other process.
    pub fn create(bytes: usize) -> Result<(Self, OwnedFd)> {
        let made = || -> std::io::Result<(Self, OwnedFd)> {
            let memfd = rustix::fs::memfd_create("forebay-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            rustix::fs::ftruncate(&memfd, bytes as u64)?;
            // Nobody can make it shorter, which would kill who reads behind its end.
            rustix::fs::fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            Ok((Self(MmapOptions::new().len(bytes).map_raw(&memfd)?), memfd))
        };
        made().context(|| "shared memory for a client of this host")
    }

    /// The other process's memory. `Invalid` unless it has just so many bytes and can't become shorter.
    pub fn open(descriptor: OwnedFd, bytes: usize) -> Result<Self> {
        let seals =
            rustix::fs::fcntl_get_seals(descriptor.as_fd()).map_err(std::io::Error::from).context(|| "seals of a ring")?;
        let file = File::from(descriptor);
        let len = file.metadata().context(|| "size of a ring")?.len();
        if !seals.contains(SealFlags::SHRINK) || len != bytes as u64 {
            return Err(Error::invalid(format!(
                "the server's shared memory has {len} bytes and seals {seals:?}, not {bytes} bytes: run one version of forebay"
            )));
        }
        Ok(Self(MmapOptions::new().len(bytes).map_raw(&file).context(|| "mapping a ring")?))
    }

    /// All of it.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page aligned, readable and writable, as long as said, can't shrink (sealed) and lives as
        // long as the slice borrows it. Any bits are a word, and all accesses, the other process's too, are atomic or are
        // none of this program's: this is the only view of the mapping that is ever made here.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / size_of::<AtomicU64>()) }
    }
}
