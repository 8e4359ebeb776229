//! Locks that the system ends with their process, so that a crash leaves nothing to be cleaned up.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};

/// The lock of one process on a file; free again when this is dropped or the process dies.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks the file; gives it back when another process has the lock. Does not wait.
    pub fn take(file: File) -> io::Result<Result<Self, File>> {
        match file.try_lock() {
            Ok(()) => Ok(Ok(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(Err(file)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A process that another thread is just starting has a copy of every open file until it runs its program: to close this
        // one would leave the lock with it.
        let _ = self.0.unlock();
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for FileLock {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::FileLock;

    #[test]
    fn a_dropped_lock_is_free_although_a_copy_of_the_file_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let file = std::fs::File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        let lock = FileLock::take(file).unwrap().unwrap();
        let other = || FileLock::take(std::fs::File::open(&path).unwrap()).unwrap();
        assert!(other().is_err());
        drop(lock);
        assert!(other().is_ok());
        drop(copy);
    }
}
