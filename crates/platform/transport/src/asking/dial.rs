//! Connecting: socket, TLS, handshake, each within its time.

use std::os::fd::OwnedFd;
use std::time::Duration;

use forebay_runtime::is_simulated;
use forebay_runtime::net::{self, Stream};
use forebay_runtime::time::{sleep, timeout};
use forebay_types::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::UnixStream;

use crate::frames::frame_reader::FrameReader;
use crate::frames::{Hangup, Link, Sink};
use crate::sockets;
use crate::{Address, Security, handshake, tls};

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For the handshake, TLS's included; the same on both sides.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// One of several places is tried so long alone before the next one is tried beside it.
const NEXT_PLACE_AFTER: Duration = Duration::from_millis(250);

/// A connection that has passed the handshake.
pub(crate) type Dialled = (FrameReader, Sink, Hangup);

/// Connects and passes the handshake: with the first that does, where the address has several places.
pub(crate) async fn dial(address: &Address, security: &Security) -> Result<Dialled> {
    let places = address.places();
    if let [place] = places.as_slice() {
        return dial_place(place, security).await;
    }
    let mut dialling: FuturesUnordered<_> = places
        .iter()
        .zip(0..)
        .map(|(place, nth)| async move {
            sleep(NEXT_PLACE_AFTER * nth).await;
            dial_place(place, security).await
        })
        .collect();
    let mut refused: Option<Error> = None;
    while let Some(dialled) = dialling.next().await {
        match dialled {
            Ok(connection) => return Ok(connection),
            // What says more than that nobody is there is told first.
            Err(error) if refused.as_ref().is_none_or(|before| before.kind() == ErrorKind::Retry) => refused = Some(error),
            Err(_) => {}
        }
    }
    let none = || Error::invalid(format!("{address} has no place to connect to"));
    Err(refused.unwrap_or_else(none).context(format!("none of {address} lets in")))
}

async fn dial_place(address: &Address, security: &Security) -> Result<Dialled> {
    let connected = match timeout(CONNECT_TIMEOUT, connect(address)).await {
        Ok(connected) => connected?,
        Err(_) => return Err(Error::retry(format!("{address} does not answer: is a forebay running there?"))),
    };
    match timeout(HANDSHAKE_TIMEOUT, shake_hands(address, security, connected)).await {
        Ok(Ok(connection)) => Ok(connection),
        // A connection that ends during the handshake never was one.
        Ok(Err(error)) if error.kind() == ErrorKind::Closed => Err(Error::retry(format!("{address}: {}", error.message()))),
        Ok(Err(error)) => Err(error.context(address)),
        Err(_) => Err(Error::retry(format!("{address} does not finish the handshake: is it a forebay, and is it alive?"))),
    }
}

/// A connection on which nothing was said yet.
enum Connected {
    Remote(Stream),
    Unix(OwnedFd, bool),
}

async fn connect(address: &Address) -> Result<Connected> {
    let unreachable = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound => ": is a forebay running there?",
            _ => "",
        };
        let kind = match error.kind() {
            std::io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            std::io::ErrorKind::InvalidInput => ErrorKind::Invalid,
            _ => ErrorKind::Retry,
        };
        Error::new(kind, format!("{address} can't be reached: {error}{hint}")).with_source(error)
    };
    match address {
        Address::Tcp(host_port) => {
            let stream = net::connect(host_port).await.map_err(unreachable)?;
            if let Stream::Tcp(tcp) = &stream {
                sockets::set_tcp_options(tcp).map_err(unreachable)?;
            }
            Ok(Connected::Remote(stream))
        }
        // Its server is of another process, or not there yet.
        Address::Unix(_) if is_simulated() => Err(unreachable(std::io::ErrorKind::NotFound.into())),
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(unreachable)?;
            let (_, same_user) = sockets::unix_peer(&stream).map_err(unreachable)?;
            Ok(Connected::Unix(stream.into_std().map_err(unreachable)?.into(), same_user))
        }
    }
}

async fn shake_hands(address: &Address, security: &Security, connected: Connected) -> Result<Dialled> {
    let (link, trusted) = match (connected, &security.tls) {
        (Connected::Unix(fd, same_user), _) => (Link::plain(fd, true)?, same_user),
        (Connected::Remote(stream), None) => (Link::remote(stream)?, false),
        (Connected::Remote(stream), Some(settings)) => {
            let connector = tls::connector(settings)?;
            let hangup = Hangup::below(&stream)?;
            let stream = connector.connect(tls::server_name(address)?, stream).await.map_err(|error| {
                let untrusted = error.kind() == std::io::ErrorKind::InvalidData;
                let kind = if untrusted { ErrorKind::Denied } else { ErrorKind::Retry };
                Error::new(
                    kind,
                    format!("TLS failed: {error}; is TLS on at both ends, and the certificate of the CA named here?"),
                )
            })?;
            (Link::stream(Box::new(stream), hangup), false)
        }
    };
    let (mut reader, mut sink) = (FrameReader::new(link.source), link.sink);
    let greeted = handshake::greet(&mut reader, &mut sink, security, trusted).await;
    greeted.map_err(|error| tls::refused_certificate(&error).unwrap_or(error))?;
    Ok((reader, sink, link.hangup))
}
