use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use bytes::Bytes;

/// Slices handed to the system at once.
const SLICES_MAX: usize = 1024;

/// A worker's DRAM tier, to be written to where the worker has given this process a place. By system calls: memory that the tier
/// does not have yet need not be cleared first.
pub(crate) struct Writing(OwnedFd);

impl Writing {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Writes parts one after the other, the first at `offset`.
    pub(crate) fn write(&self, offset: u64, parts: &[Bytes]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let (mut left, mut at) = (&mut slices[..], offset);
        while !left.is_empty() {
            match rustix::io::pwritev(&self.0, &left[..left.len().min(SLICES_MAX)], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += written as u64;
                    IoSlice::advance_slices(&mut left, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
