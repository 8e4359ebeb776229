//! Where connections come in.

use std::io::{self, ErrorKind as Io};
use std::os::fd::OwnedFd;

use forebay_protocol::PROTOCOL_VERSION;
use forebay_rights::{Caller, Who};
use forebay_runtime::is_simulated;
use forebay_runtime::net::{self, Stream};
use forebay_types::{Error, Result};
use tokio::net::UnixListener;

use crate::sockets;
use crate::sockets::unix_file::{self, UnixFile};
use crate::{Address, Peer};

/// A place where connections come in, before a [`crate::Server`] takes them.
pub struct Listener {
    socket: ListenerSocket,
    address: Address,
}

enum ListenerSocket {
    Tcp(net::Listener),
    // The file goes when the listener does.
    Unix(UnixListener, #[allow(dead_code, reason = "kept to be dropped")] UnixFile),
    /// In a simulation: who is in the same process comes by its door ([`crate::local`]), and nobody else is on the host.
    Nobody,
}

pub(crate) struct Accepted {
    pub(crate) connection: Incoming,
    pub(crate) peer: Peer,
}

/// A connection on which nothing was said yet.
pub(crate) enum Incoming {
    Remote(Stream),
    Unix(OwnedFd),
}

impl Listener {
    /// Listens at `address`; port 0 takes any free one. `Invalid` when the port or socket is in use, or no such
    /// address is this machine's.
    ///
    /// The file of a Unix socket is for the same user only; one that a dead process left behind is replaced.
    pub async fn bind(address: &Address) -> Result<Self> {
        match address {
            Address::Tcp(host_port) => {
                let failed = |error: io::Error| {
                    let remedy = match error.kind() {
                        Io::AddrInUse => "stop the process that uses it or choose another port",
                        Io::PermissionDenied => "choose a port above 1023",
                        _ => "name an address of this machine, as in 127.0.0.1:7411",
                    };
                    Error::invalid(format!("can't listen at {address}: {error}; {remedy}")).with_source(error)
                };
                let listener = net::Listener::bind(host_port).await.map_err(failed)?;
                let address = Address::Tcp(listener.local_address().map_err(failed)?);
                Ok(Self { socket: ListenerSocket::Tcp(listener), address })
            }
            Address::Unix(_) if is_simulated() => Ok(Self { socket: ListenerSocket::Nobody, address: address.clone() }),
            Address::Unix(path) => {
                let (listener, file) = unix_file::listen(path)?;
                let listener = UnixListener::from_std(listener)?;
                Ok(Self { socket: ListenerSocket::Unix(listener, file), address: address.clone() })
            }
        }
    }

    /// Where it listens, with the port that it got.
    pub fn local_address(&self) -> Address {
        self.address.clone()
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.socket, ListenerSocket::Tcp(_))
    }

    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                if let Stream::Tcp(tcp) = &stream {
                    sockets::set_tcp_options(tcp)?;
                }
                let peer = unknown(address, false, false);
                Ok(Accepted { connection: Incoming::Remote(stream), peer })
            }
            ListenerSocket::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let (uid, same_user) = sockets::unix_peer(&stream)?;
                let peer = unknown(format!("unix:uid={uid}"), true, same_user);
                Ok(Accepted { connection: Incoming::Unix(stream.into_std()?.into()), peer })
            }
            ListenerSocket::Nobody => std::future::pending().await,
        }
    }
}

/// Until the handshake has said who it is, and what it speaks.
fn unknown(address: String, unix: bool, same_user: bool) -> Peer {
    Peer { caller: Caller::new(Who::Anonymous(None)), address, unix, same_user, version: PROTOCOL_VERSION }
}
