//! The file of a Unix socket.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use forebay_types::{Error, Result};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// The file of a Unix socket that this process listens on; removed when dropped.
pub(crate) struct UnixFile {
    path: PathBuf,
    /// Device and inode, so that no one else's file is removed.
    identity: (u64, u64),
}

/// Listens at `path`, for the same user only. A file that a dead process left behind is replaced.
pub(crate) fn listen(path: &Path) -> Result<(std::os::unix::net::UnixListener, UnixFile)> {
    let failed = |error: std::io::Error| {
        Error::invalid(format!("can't listen at unix:{}: {error}; name a socket in a folder that can be written", path.display()))
            .with_source(error)
    };
    let name = SocketAddrUnix::new(path).map_err(|_| {
        Error::invalid(format!("{} is too long for a Unix socket (107 bytes at most): name a shorter one", path.display()))
    })?;
    remove_stale(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd: OwnedFd =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(|error| failed(error.into()))?;
    // Before it has a name, so that there is no moment at which others can connect.
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(|error| failed(error.into()))?;
    rustix::net::bind(&fd, &name).map_err(|error| failed(error.into()))?;
    let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
    let file = UnixFile { path: path.to_path_buf(), identity: (metadata.dev(), metadata.ino()) };
    rustix::net::listen(&fd, BACKLOG).map_err(|error| failed(error.into()))?;
    Ok((fd.into(), file))
}

fn remove_stale(path: &Path) -> Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(Error::invalid(format!("{} is in the way and no socket: remove it or name another", path.display())));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => std::fs::remove_file(path).map_err(|error| {
            Error::invalid(format!("{} was left behind and can't be removed: {error}; remove it", path.display()))
        }),
        _ => Err(Error::invalid(format!("unix:{} is in use by another process: stop it or name another socket", path.display()))),
    }
}

impl Drop for UnixFile {
    fn drop(&mut self) {
        let ours = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(ours) {
            // Whoever comes next replaces it otherwise.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
