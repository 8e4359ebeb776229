//! Addresses, and the sockets behind them.

pub(crate) mod address;
pub(crate) mod leaving;
pub(crate) mod unix_file;

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sockopt,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A connected socket without TLS. Anyone may send; one task receives.
///
/// It is watched for input only. On a Unix socket the kernel reports room to write each time the peer takes something,
/// and a connection that watched for it all the time would be woken twice a call: who finds the socket full watches
/// for room itself ([`Room`]).
pub(crate) struct Socket {
    fd: AsyncFd<OwnedFd>,
    /// Whether descriptors can be passed.
    pub(crate) unix: bool,
}

impl Socket {
    /// Takes over a connected, non-blocking socket.
    pub(crate) fn new(fd: OwnedFd, unix: bool) -> io::Result<Self> {
        Ok(Self { fd: watched(fd, Interest::READABLE)?, unix })
    }

    /// Sends what the socket has room for, and `descriptor` with its first byte. `WouldBlock` when there is no room.
    pub(crate) fn send(&self, slices: &[IoSlice<'_>], descriptor: Option<BorrowedFd<'_>>) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let descriptors = descriptor.map(|fd| [fd]);
        loop {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if let Some(descriptors) = &descriptors {
                let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
                assert!(fits, "the buffer is made for one descriptor");
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::sendmsg(self.fd.get_ref(), slices, &mut control, flags) {
                Err(rustix::io::Errno::INTR) => continue,
                result => return result.map_err(io::Error::from),
            }
        }
    }

    /// Receives into initialised memory, and descriptors that come along. 0 at the end of the stream. `idle` is called
    /// before waiting.
    pub(crate) async fn receive(
        &self,
        into: &mut [u8],
        descriptors: &mut VecDeque<OwnedFd>,
        idle: impl Fn(),
    ) -> io::Result<usize> {
        if !self.unix {
            return self.receive_payload(into, idle).await;
        }
        let wanted = into.len();
        self.read(wanted, idle, |fd| {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let received = rustix::net::recvmsg(fd, &mut [IoSliceMut::new(into)], &mut control, flags)?;
            let before = descriptors.len();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    descriptors.extend(rights);
                }
            }
            // The kernel ends a read behind a descriptor, whatever else there is to read.
            Ok((received.bytes, descriptors.len() == before))
        })
        .await
    }

    /// Receives into initialised memory where no descriptors come.
    pub(crate) async fn receive_payload(&self, into: &mut [u8], idle: impl Fn()) -> io::Result<usize> {
        let wanted = into.len();
        self.read(wanted, idle, |fd| Ok((rustix::net::recv(fd, &mut *into, RecvFlags::DONTWAIT)?.1, true))).await
    }

    /// Receives into memory that need not be initialised; how many bytes of it are now.
    pub(crate) async fn receive_uninit(&self, into: &mut [MaybeUninit<u8>], idle: impl Fn()) -> io::Result<usize> {
        let wanted = into.len();
        self.read(wanted, idle, |fd| {
            let ((filled, _), _) = rustix::net::recv(fd, &mut *into, RecvFlags::DONTWAIT)?;
            Ok((filled.len(), true))
        })
        .await
    }

    /// Runs `receive` when there may be something to read. It tells how much it read, and whether less than `wanted`
    /// means that there is no more.
    async fn read(
        &self,
        wanted: usize,
        idle: impl Fn(),
        mut receive: impl FnMut(&OwnedFd) -> rustix::io::Result<(usize, bool)>,
    ) -> io::Result<usize> {
        loop {
            let mut told = false;
            let mut ready = std::future::poll_fn(|cx| {
                let poll = self.fd.poll_read_ready(cx);
                if poll.is_pending() && !told {
                    told = true;
                    idle();
                }
                poll
            })
            .await?;
            match receive(self.fd.get_ref()) {
                Ok((bytes, drained)) => {
                    if drained && 0 < bytes && bytes < wanted {
                        // Saves the read that would only find the socket empty. What arrives meanwhile sets it anew.
                        ready.clear_ready();
                    }
                    return Ok(bytes);
                }
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}

/// Waits for room to send on a [`Socket`].
pub(crate) struct Room(AsyncFd<OwnedFd>);

impl Room {
    /// Watches `socket` for room as long as this lives.
    pub(crate) fn of(socket: &Socket) -> io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(socket, 3).map_err(io::Error::from)?;
        Ok(Self(watched(fd, Interest::WRITABLE)?))
    }

    /// Runs `send` whenever there may be room, until it doesn't say `WouldBlock`.
    pub(crate) async fn send(&self, mut send: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            let mut ready = std::future::poll_fn(|cx| self.0.poll_write_ready(cx)).await?;
            match send() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                result => return result,
            }
        }
    }
}

#[allow(unsafe_code, reason = "tokio asks for the promise that the descriptor stays the same")]
fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is one open descriptor for as long as it lives, and the `AsyncFd` owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// Sets a TCP connection up: no delay, and a peer that is gone is noticed within 15 s on a quiet connection and 30 s
/// on one with bytes under way.
pub(crate) fn set_tcp_options(fd: impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd();
    sockopt::set_tcp_nodelay(fd, true)?;
    sockopt::set_socket_keepalive(fd, true)?;
    sockopt::set_tcp_keepidle(fd, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(fd, Duration::from_secs(3))?;
    sockopt::set_tcp_keepcnt(fd, 3)?;
    // Also ends a connection whose peer takes nothing for so long, so it leaves time for a server under load.
    sockopt::set_tcp_user_timeout(fd, 30_000)?;
    Ok(())
}

/// The user at the other end of a Unix socket, and whether it is this process's.
pub(crate) fn unix_peer(fd: impl AsFd) -> io::Result<(u32, bool)> {
    let uid = sockopt::socket_peercred(fd)?.uid;
    Ok((uid.as_raw(), uid == rustix::process::geteuid()))
}
