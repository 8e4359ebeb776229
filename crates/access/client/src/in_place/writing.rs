//! Writing to a place in a worker's tier.

use std::io;
use std::os::fd::OwnedFd;

/// A worker's DRAM tier, to be written to where the worker has given this process a place. By system calls: memory that the tier
/// does not have yet need not be cleared first.
pub(crate) struct Writing(OwnedFd);

impl Writing {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.0, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
