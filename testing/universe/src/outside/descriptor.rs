//! What a file's descriptor says of it, asked of the kernel itself.
#![allow(unsafe_code, reason = "the kernel is asked past the library, which would ask the world again")]

use std::mem::MaybeUninit;

use libc::{c_int, c_void};

/// A regular file that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenFile {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// What is open there; none where it is no regular file.
pub(super) fn regular_file(descriptor: c_int) -> Option<OpenFile> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel writes a whole `stat` there, or says that it has not.
    let about = unsafe {
        if libc::fstat(descriptor, about.as_mut_ptr()) != 0 {
            return None;
        }
        about.assume_init()
    };
    (about.st_mode & libc::S_IFMT == libc::S_IFREG).then_some(OpenFile { device: about.st_dev, inode: about.st_ino })
}

/// Where the next write without a place goes.
pub(super) fn position(descriptor: c_int) -> u64 {
    // SAFETY: no memory is passed.
    let at = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
    u64::try_from(at).unwrap_or_default()
}

/// Bytes of a file as they are; zeros where there are none, or they can't be read.
pub(super) fn bytes_at(descriptor: c_int, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the kernel writes at most `len` bytes, which there is memory for.
    unsafe { libc::syscall(libc::SYS_pread64, descriptor, bytes.as_mut_ptr().cast::<c_void>(), len, at) };
    bytes
}
