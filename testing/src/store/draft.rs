//! Files on their way to being objects: hashed as they come, and gone if nobody keeps them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use forebay_types::hex;
use ring::digest::{Context, SHA256};

/// A file that is being written; gone when dropped.
pub(crate) struct Draft {
    file: File,
    path: PathBuf,
    size: u64,
    hash: Context,
}

impl Draft {
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { file, path, size: 0, hash: Context::new(&SHA256) })
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.hash.update(data);
        self.size += data.len() as u64;
        self.file.write_all(data)
    }

    /// Copies the first `bytes` of `file` here without hashing them: the tag comes from elsewhere.
    pub(crate) fn copy(&mut self, file: &File, bytes: u64) -> io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let mut source = file.try_clone()?;
        source.seek(SeekFrom::Start(0))?;
        let copied = io::copy(&mut source.take(bytes), &mut self.file)?;
        self.size += copied;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The tag of what was written: half of its SHA-256, marked as no MD5 by `-1`, as S3 marks tags of parts.
    pub(crate) fn etag(&self) -> String {
        format!("{}-1", hex(&self.hash.clone().finish().as_ref()[..16]))
    }

    /// Adds `tail` after the data and gives the file its lasting name.
    pub(crate) fn keep(mut self, tail: &[u8], path: &Path) -> io::Result<()> {
        self.file.write_all(tail)?;
        std::fs::rename(&self.path, path)?;
        self.path.clear();
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
