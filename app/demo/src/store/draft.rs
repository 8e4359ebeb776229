//! Bytes on their way to being objects: hashed as they come, and gone if nobody keeps them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use forebay_types::hex;
use ring::digest::{Context, SHA256};

use super::place::{Opened, Place};

/// What is being written; gone when dropped.
pub(crate) struct Draft {
    to: To,
    /// Of the file; empty where there is none.
    path: PathBuf,
    pub(crate) size: u64,
    hash: Context,
}

enum To {
    File(File),
    Memory(Vec<u8>),
}

impl Draft {
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self::new(To::File(file), path))
    }

    /// One without a file.
    pub(crate) fn in_memory() -> Self {
        Self::new(To::Memory(Vec::new()), PathBuf::new())
    }

    fn new(to: To, path: PathBuf) -> Self {
        Self { to, path, size: 0, hash: Context::new(&SHA256) }
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.hash.update(data);
        self.size += data.len() as u64;
        match &mut self.to {
            To::File(file) => file.write_all(data),
            To::Memory(bytes) => bytes.write_all(data),
        }
    }

    /// Copies the first `bytes` of `from` here without hashing them: the tag comes from elsewhere.
    pub(crate) fn copy(&mut self, from: &Opened, bytes: u64) -> io::Result<()> {
        let copied = match from {
            Opened::File(file) => {
                let mut source = file.try_clone()?;
                source.seek(SeekFrom::Start(0))?;
                self.to.take_from(source.take(bytes))?
            }
            Opened::Memory(there) => {
                let there: &[u8] = there;
                self.to.take_from(there.take(bytes))?
            }
        };
        self.size += copied;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// The tag of what was written: half of its SHA-256, marked as no MD5 by `-1`, as S3 marks tags of parts.
    pub(crate) fn etag(&self) -> String {
        format!("{}-1", hex(&self.hash.clone().finish().as_ref()[..16]))
    }

    /// Where it is to stay. A file has `tail` after the data then, and its lasting name.
    pub(crate) fn keep(mut self, tail: &[u8], path: &Path) -> io::Result<Place> {
        match &mut self.to {
            To::Memory(bytes) => Ok(Place::Memory(std::mem::take(bytes).into())),
            To::File(file) => {
                file.write_all(tail)?;
                std::fs::rename(&self.path, path)?;
                self.path.clear();
                Ok(Place::File(path.into()))
            }
        }
    }
}

impl To {
    fn take_from(&mut self, mut source: impl Read) -> io::Result<u64> {
        match self {
            Self::File(file) => io::copy(&mut source, file),
            Self::Memory(bytes) => io::copy(&mut source, bytes),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
