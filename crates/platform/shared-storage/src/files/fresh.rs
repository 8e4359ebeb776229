//! Attributes of files as their server has them now. Who opens a file of NFS gets them anew, and so does who opens a folder; who only
//! looks at a file of a folder is told what this machine has kept for up to a minute, and a version would be learned as one of now
//! that was another's long ago. So a listing asks, file by file, wherever this machine is not the only one that changes files.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fstatfs, openat, statx};
use rustix::io::Errno;

/// Asks the server how a file is now: the one of a name in a folder, or the one that is open where there is no name.
pub(super) type Ask = fn(BorrowedFd<'_>, &str) -> Result<(), Errno>;

/// File systems of this machine alone, by what Linux calls them: ext2 to ext4, XFS, Btrfs, ZFS, F2FS, bcachefs, tmpfs, ramfs and overlays.
/// NFS, SMB, Lustre, Ceph, FUSE and any other may have servers.
const LOCAL: [u32; 9] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1, 0xf2f5_2010, 0xca45_1a4e, 0x0102_1994, 0x8584_58f6, 0x794c_7630];

/// How the files below an open folder are asked for; not at all where there is nobody to ask.
pub(super) fn asking(folder: BorrowedFd<'_>) -> Option<Ask> {
    let is_local = fstatfs(folder).is_ok_and(|found| is_local(found.f_type as u32));
    (!is_local).then_some(ask as Ask)
}

fn is_local(kind: u32) -> bool {
    LOCAL.contains(&kind)
}

fn ask(folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let of = if name.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::SYMLINK_NOFOLLOW };
    let asked = statx(folder, name, of | AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS);
    told(asked.map(drop), folder, name)
}

/// What becomes of how asking went.
fn told(asked: Result<(), Errno>, folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    match asked {
        // Old kernels and sandboxes have no such call: opening asks as well, and who may not open it may not read it either. What is
        // open is as it was when it was opened.
        Err(Errno::NOSYS) if name.is_empty() => Ok(()),
        Err(Errno::NOSYS) => {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            drop(openat(folder, name, flags, Mode::empty()));
            Ok(())
        }
        // Whoever looks at it next is told so.
        Err(Errno::NOENT) => Ok(()),
        asked => asked,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn files_that_others_may_change_are_asked_for() {
        for local in LOCAL {
            assert!(is_local(local));
        }
        // NFS, SMB, CIFS, FUSE, Lustre, Ceph, AFS, and 9P.
        for remote in [0x6969, 0xfe53_4d42, 0xff53_4d42, 0x6573_5546, 0x0bd0_0bd0, 0x00c3_6400, 0x5346_414f, 0x0102_1997] {
            assert!(!is_local(remote), "{remote:#x}");
        }
    }

    #[test]
    fn a_file_may_be_asked_for_by_name_and_open_and_may_be_gone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        let open = std::fs::File::open(folder.path()).unwrap();
        let file = std::fs::File::open(folder.path().join("a")).unwrap();
        assert_eq!(ask(open.as_fd(), "a"), Ok(()));
        assert_eq!(ask(file.as_fd(), ""), Ok(()));
        assert_eq!(ask(open.as_fd(), "none"), Ok(()));
        assert_eq!(ask(file.as_fd(), "a"), Err(Errno::NOTDIR));
    }

    #[test]
    fn where_nobody_can_be_asked_files_are_what_is_known_of_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        let open = std::fs::File::open(folder.path()).unwrap();
        let file = std::fs::File::open(folder.path().join("a")).unwrap();
        for name in ["a", "none"] {
            assert_eq!(told(Err(Errno::NOSYS), open.as_fd(), name), Ok(()));
        }
        assert_eq!(told(Err(Errno::NOSYS), file.as_fd(), ""), Ok(()), "or a link to it would be no file");
        assert_eq!(told(Err(Errno::IO), file.as_fd(), ""), Err(Errno::IO));
    }
}
