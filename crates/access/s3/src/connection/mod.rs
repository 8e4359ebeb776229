//! A connection: requests that can be answered at once are, by a loop that does nothing else; each other one goes through
//! hyper, after which the loop takes the connection back.

mod general;
mod quick;
mod stall;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::context::Context;
use stall::Stalling;

/// How long saying goodbye may take.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Serves a connection until it ends, or until told to stop and nothing is under way.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    socket: S,
    from: SocketAddr,
    context: Arc<Context>,
    mut stopped: watch::Receiver<bool>,
) {
    let (mut socket, mut begun) = (Stalling::new(socket), Bytes::new());
    loop {
        match quick::serve(&mut socket, begun, &context, &mut stopped).await {
            Ok(Some(other)) => begun = other,
            Ok(None) => {
                // The other end may be long gone.
                let _ = forebay_runtime::time::timeout(END_WITHIN, socket.shutdown()).await;
                return;
            }
            Err(error) => {
                tracing::debug!(%error, "connection ended");
                return;
            }
        }
        // Large, and nothing that an idle connection should hold.
        match Box::pin(general::serve(socket, from, begun, &context, &mut stopped)).await {
            Some((same, rest)) => (socket, begun) = (same, rest),
            None => return,
        }
    }
}
