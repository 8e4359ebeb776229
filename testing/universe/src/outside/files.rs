//! The system's calls on files. What libc is asked for them is answered here, in this program alone: on the thread that simulates, by
//! the disk of the host whose turn it is; on all others, by the kernel.
#![allow(unsafe_code, reason = "these functions are libc's, whose callers pass plain pointers")]

use std::ffi::CStr;

use libc::{c_char, c_int, c_void, mode_t, off64_t, size_t, ssize_t};

use super::disks::{self, Writing};

/// Nothing was done, for this reason.
fn fails(errno: c_int) -> c_int {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// Of any arguments, as libc's own is: how they are passed is the same.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller gives a name that ends with a zero, as libc's own wants it.
    let name = unsafe { CStr::from_ptr(path) };
    match disks::before_open(name.to_bytes()) {
        Some(errno) => fails(errno),
        // SAFETY: the caller's arguments, as they are.
        None => unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(descriptor: c_int, into: *mut c_void, len: size_t) -> ssize_t {
    match disks::before_read(descriptor) {
        Some(errno) => fails(errno) as ssize_t,
        // SAFETY: the caller's arguments, as they are.
        None => unsafe { libc::syscall(libc::SYS_read, descriptor, into, len) as ssize_t },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(descriptor: c_int, into: *mut c_void, len: size_t, at: off64_t) -> ssize_t {
    match disks::before_read(descriptor) {
        Some(errno) => fails(errno) as ssize_t,
        // SAFETY: the caller's arguments, as they are.
        None => unsafe { libc::syscall(libc::SYS_pread64, descriptor, into, len, at) as ssize_t },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(descriptor: c_int, from: *const c_void, len: size_t) -> ssize_t {
    match disks::before_write(descriptor, None, len) {
        Writing::Fails(errno) => fails(errno) as ssize_t,
        // SAFETY: the caller's arguments, of which no more bytes are written than there are.
        Writing::Takes(bytes) => unsafe { libc::syscall(libc::SYS_write, descriptor, from, bytes.min(len)) as ssize_t },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(descriptor: c_int, from: *const c_void, len: size_t, at: off64_t) -> ssize_t {
    match disks::before_write(descriptor, Some(at as u64), len) {
        Writing::Fails(errno) => fails(errno) as ssize_t,
        // SAFETY: the caller's arguments, of which no more bytes are written than there are.
        Writing::Takes(bytes) => unsafe { libc::syscall(libc::SYS_pwrite64, descriptor, from, bytes.min(len), at) as ssize_t },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(descriptor: c_int) -> c_int {
    match disks::before_sync(descriptor) {
        Some(errno) => fails(errno),
        // SAFETY: no memory is passed.
        None => unsafe { libc::syscall(libc::SYS_fsync, descriptor) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    match disks::before_sync(descriptor) {
        Some(errno) => fails(errno),
        // SAFETY: no memory is passed.
        None => unsafe { libc::syscall(libc::SYS_fdatasync, descriptor) as c_int },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use super::disks::{Disks, Trouble, begin, end, happened, install, lose_unsynced, turn};

    const PAGE: usize = 4096;

    /// On a thread of its own, where the host 1 has its turn.
    fn with_disks(loses_power: bool, test: impl FnOnce(&Path) + Send + 'static) {
        let tested = std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let loses_power: &[usize] = if loses_power { &[1] } else { &[] };
            install(Disks::new(folder.path(), 2, 7, loses_power));
            turn(1);
            test(folder.path());
        });
        tested.join().unwrap();
    }

    #[test]
    fn a_disk_that_fails_fails_its_own_host_alone() {
        with_disks(false, |folder| {
            let path = folder.join("file");
            std::fs::write(&path, [7_u8; PAGE]).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let mut bytes = [0; PAGE];
            begin(1, Trouble::FailsReads { one_in: 1 });
            assert_eq!(file.read_at(&mut bytes, 0).unwrap_err().raw_os_error(), Some(libc::EIO));
            assert_eq!(std::fs::read(&path).unwrap_err().raw_os_error(), Some(libc::EIO));
            assert!(std::fs::read_to_string("/proc/self/stat").is_ok(), "what is on no disk is read");
            turn(0);
            file.read_exact_at(&mut bytes, 0).unwrap();
            turn(1);
            end(1, Trouble::FailsReads { one_in: 1 });
            begin(1, Trouble::FailsWrites { one_in: 1 });
            assert_eq!(file.write_all_at(&[8; PAGE], 0).unwrap_err().raw_os_error(), Some(libc::EIO));
            assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(libc::EIO));
            end(1, Trouble::FailsWrites { one_in: 1 });
            begin(1, Trouble::Full);
            let refused = (&file).write_all(&[8; 5]).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
            end(1, Trouble::Full);
            file.write_all_at(&[9; PAGE], 0).unwrap();
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert_eq!(bytes, [9; PAGE]);
            assert!(["read_failed", "write_failed", "sync_failed", "disk_full"].iter().all(|what| happened().contains_key(what)));
        });
    }

    #[test]
    fn who_has_no_descriptors_for_files_opens_none_of_its_own_and_keeps_those_it_has() {
        with_disks(false, |folder| {
            let path = folder.join("file");
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
            begin(1, Trouble::NoFiles);
            assert_eq!(File::open(&path).unwrap_err().raw_os_error(), Some(libc::EMFILE));
            assert_eq!(std::fs::write(folder.join("other"), [1_u8]).unwrap_err().raw_os_error(), Some(libc::EMFILE));
            file.write_all_at(&[9; PAGE], 0).unwrap();
            assert!(std::fs::read_to_string("/proc/self/stat").is_ok(), "what is not its disk's is opened");
            turn(0);
            assert!(File::open(&path).is_ok(), "another host has some");
            turn(1);
            end(1, Trouble::NoFiles);
            assert_eq!(std::fs::read(&path).unwrap(), [9; PAGE]);
            assert!(happened().contains_key("open_failed"));
        });
    }

    #[test]
    fn a_host_that_loses_its_power_has_what_was_synchronised_and_some_of_the_rest() {
        with_disks(true, |folder| {
            let (pages, path) = (64, folder.join("file"));
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
            file.write_all_at(&vec![1; pages * PAGE], 0).unwrap();
            file.sync_data().unwrap();
            // Twice in half of the pages: any of the three may be found, and halves of two of them.
            file.write_all_at(&vec![2; pages * PAGE], 0).unwrap();
            file.write_all_at(&vec![3; pages / 2 * PAGE], 0).unwrap();
            lose_unsynced(1, folder);
            turn(0);
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes.len(), pages * PAGE);
            let is_torn = |page: &[u8]| page.iter().any(|byte| *byte != page[0]);
            let has = |of: &[u8], version: u8| of.chunks(PAGE).any(|page| !is_torn(page) && page[0] == version);
            let (twice, once) = bytes.split_at(pages / 2 * PAGE);
            assert!(has(twice, 3) && has(twice, 1) && has(once, 1) && has(once, 2) && !once.contains(&3));
            assert!(bytes.chunks(PAGE).any(is_torn));
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])), "a sector is whole");
            // What is there now is what there is.
            lose_unsynced(1, folder);
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        });
    }
}
