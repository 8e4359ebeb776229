//! A file as an array of pages, by O_DIRECT: the DRAM tier is the only cache that pages have.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use forebay_types::PAGE_BYTES;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};

/// A sparse file of pages, read and written past the system's page cache.
pub(crate) struct DiskFile {
    file: File,
    #[cfg(test)]
    pub delay: parking_lot::Mutex<std::time::Duration>,
}

impl DiskFile {
    /// Opens the file, making it when it is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let file = match direct {
            // Some file systems know no O_DIRECT; slower by a copy, and right all the same.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                tracing::warn!(path = %path.display(), "file system without O_DIRECT: the disk tier goes through its page cache");
                options.open(path)?
            }
            opened => opened?,
        };
        Ok(Self {
            file,
            #[cfg(test)]
            delay: parking_lot::Mutex::default(),
        })
    }

    /// Fills `bytes` from the page at `page` on; zeros past the file's end.
    pub fn read(&self, page: u64, bytes: &mut [u8]) -> io::Result<()> {
        #[cfg(test)]
        std::thread::sleep(*self.delay.lock());
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], page * PAGE_BYTES + done as u64) {
                // A read that ends within a page would not be aligned when it goes on: the file's end, in either case.
                Ok(read) if read == 0 || !(read as u64).is_multiple_of(PAGE_BYTES) => {
                    bytes[done + read..].fill(0);
                    return Ok(());
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes whole pages at `page`.
    pub fn write(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, page * PAGE_BYTES)
    }

    /// Gives pages back.
    pub fn punch(&self, page: u64, pages: u64) -> io::Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, mode, page * PAGE_BYTES, pages * PAGE_BYTES)?)
    }

    /// Whether the file has data anywhere in these pages.
    pub fn has_data(&self, page: u64, pages: u64) -> bool {
        let found = rustix::fs::seek(&self.file, SeekFrom::Data(page * PAGE_BYTES));
        found.is_ok_and(|at| at < (page + pages) * PAGE_BYTES)
    }

    /// Cuts the file after `pages` pages when it is longer.
    pub fn truncate(&self, pages: u64) -> io::Result<()> {
        if self.file.metadata()?.len() > pages * PAGE_BYTES { self.file.set_len(pages * PAGE_BYTES) } else { Ok(()) }
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
