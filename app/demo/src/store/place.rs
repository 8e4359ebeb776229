//! Where the bytes of objects and parts are: in a file each, or in memory.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;

/// Where bytes are.
#[derive(Debug)]
pub(crate) enum Place {
    File(PathBuf),
    Memory(Bytes),
}

impl Place {
    /// The bytes, which stay what they are from now on.
    pub(crate) fn open(&self) -> io::Result<Opened> {
        Ok(match self {
            Self::File(path) => Opened::File(File::open(path)?),
            Self::Memory(bytes) => Opened::Memory(bytes.clone()),
        })
    }

    /// Nobody will open them any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match self {
            Self::File(path) => std::fs::remove_file(path),
            Self::Memory(_) => Ok(()),
        }
    }
}

/// Bytes that stay what they are.
pub(crate) enum Opened {
    File(File),
    Memory(Bytes),
}

impl Opened {
    /// Bytes from `at` on, some of `most` at least; `UnexpectedEof` where there are none.
    pub(crate) fn read(&self, at: u64, most: usize) -> io::Result<Bytes> {
        let read = match self {
            Self::File(file) => {
                let mut buffer = Vec::with_capacity(most);
                rustix::io::pread(file, rustix::buffer::spare_capacity(&mut buffer), at)?;
                buffer.truncate(most);
                Bytes::from(buffer)
            }
            Self::Memory(bytes) => {
                let start = bytes.len().min(at as usize);
                bytes.slice(start..bytes.len().min(start + most))
            }
        };
        if read.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
    }
}
