//! The answering side of one connection: its handshake, its frames and calls, its ring, its end.

mod call;
mod kept;
mod live;
mod read;
mod ring;
mod shared;

use std::sync::Arc;

use forebay_runtime::time::timeout;
use forebay_types::{Error, ErrorKind, Result};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::asking::dial::HANDSHAKE_TIMEOUT;
use crate::credentials::audit;
use crate::entrance::Place;
use crate::frames::frame_reader::FrameReader;
use crate::frames::{Hangup, Link, Sink};
use crate::listener::{Accepted, Incoming};
use crate::{Peer, Service, handshake};
use live::{FAREWELL_TIMEOUT, Live};

pub(crate) use shared::{Memory, Shared};

/// Serves one connection until it ends or `stop` is set and its running calls are done.
pub(crate) async fn serve<S: Service>(shared: Arc<Shared<S>>, accepted: Accepted, place: Place, stop: watch::Receiver<bool>) {
    let peer = accepted.peer.clone();
    let received = tokio::select! {
        received = timeout(HANDSHAKE_TIMEOUT, receive(&shared, accepted)) => received,
        () = place.gives_way() => {
            return tell_silent(&shared, &peer.address, "others wait for its place");
        }
    };
    drop(place);
    match received {
        Ok(Ok((live, reader, sink))) => live.run(reader, sink, stop).await,
        // As who looks whether the port is there, again and again: a balancer of load, say.
        Ok(Err(error)) if error.kind() == ErrorKind::Closed => debug!(peer = %peer.address, reason = %error, "connection ended"),
        Ok(Err(error)) => {
            warn!(peer = %peer.address, reason = %error, "connection refused");
            audit::tell_stranger(&peer.address, &error);
        }
        Err(_) => tell_silent(&shared, &peer.address, "no handshake in time"),
    }
}

fn tell_silent<S>(shared: &Shared<S>, peer: &str, reason: &str) {
    if let Some(times) = shared.silent.lock().happens(forebay_runtime::now()) {
        warn!(peer, reason, times, "connections refused that say nothing: this is the last of them");
    }
}

async fn refuse(mut reader: FrameReader, mut sink: Sink, hangup: &Hangup, error: &Error) {
    // The peer may be gone, or no forebay.
    let _ = handshake::refuse(&mut sink, reader.version(), error).await;
    hangup.finish();
    let _ = timeout(FAREWELL_TIMEOUT, reader.skip_all()).await;
}

async fn receive<S: Service>(shared: &Shared<S>, accepted: Accepted) -> Result<(Live<S::Session>, FrameReader, Sink)> {
    let Accepted { connection, peer } = accepted;
    let link = match (connection, &shared.acceptor) {
        (Incoming::Unix(fd), _) => Link::plain(fd, true)?,
        (Incoming::Remote(stream), None) => Link::remote(stream)?,
        (Incoming::Remote(stream), Some(acceptor)) => {
            let hangup = Hangup::below(&stream)?;
            Link::stream(Box::new(acceptor.accept(stream).await?), hangup)
        }
    };
    let Link { source, mut sink, hangup } = link;
    let mut reader = FrameReader::new(source);
    let trusted = peer.unix && peer.same_user;
    let opened = match handshake::receive(&mut reader, &mut sink, &shared.security, trusted).await {
        Ok(caller) => match Arc::clone(&shared.admitted).try_acquire_owned() {
            Ok(admitted) => {
                let peer = Peer { caller, version: reader.version(), ..peer };
                shared.service.open(peer.clone()).map(|session| (session, peer, admitted))
            }
            Err(_) => Err(Error::retry(format!("the server has its limit of {} connections", shared.limits.connections))),
        },
        Err(error) => Err(error),
    };
    match opened {
        Ok((session, peer, admitted)) => {
            let live = Live::new(shared, session, peer, &sink, hangup, admitted);
            handshake::welcome(&mut sink, reader.version()).await?;
            Ok((live, reader, sink))
        }
        Err(error) => {
            if error.kind() != ErrorKind::Closed {
                refuse(reader, sink, &hangup, &error).await;
            }
            Err(error)
        }
    }
}
