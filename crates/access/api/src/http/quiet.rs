//! Connections on which nothing comes or goes for long end: who goes away without a word, or keeps one and asks no more, would have one, and a
//! descriptor of the process, for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_runtime::time::{Sleep, instant, sleep};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::asking::TIMEOUT_MAX;

/// So long: more than any answer takes to its first byte, of which nothing is seen here while it is worked on.
const QUIET_MAX: Duration = Duration::from_secs(600);
const _: () = assert!(QUIET_MAX.as_secs() > TIMEOUT_MAX.as_secs(), "who waits for an answer is no connection that nobody uses");

/// A connection that ends so.
#[derive(Debug)]
pub(crate) struct Quiet<S> {
    socket: S,
    until: Pin<Box<Sleep>>,
}

impl<S> Quiet<S> {
    pub(super) fn new(socket: S) -> Self {
        Self { socket, until: Box::pin(sleep(QUIET_MAX)) }
    }

    /// Something has come or gone, or is waited for.
    fn noted<T>(&mut self, came: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if came.is_ready() {
            self.until.as_mut().reset(instant() + QUIET_MAX);
        }
        self.within(came, context)
    }

    /// What is waited for no longer than there is time.
    fn within<T>(&mut self, came: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if came.is_pending() {
            ready!(self.until.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nothing has come or gone for long")));
        }
        came
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Quiet<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.socket).poll_read(context, into);
        self.noted(came, context)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Quiet<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let gone = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.noted(gone, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let gone = Pin::new(&mut self.socket).poll_write_vectored(context, pieces);
        self.noted(gone, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    // There may have been nothing to send.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.within(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.socket).poll_shutdown(context);
        self.within(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_on_which_nothing_comes_or_goes() {
        let (mut other, socket) = tokio::io::duplex(16);
        let (mut socket, began, nearly) = (Quiet::new(socket), instant(), QUIET_MAX * 9 / 10);
        for _ in 0..3 {
            sleep(nearly).await;
            other.write_all(b"x").await.unwrap();
            assert_eq!(socket.read_u8().await.unwrap(), b'x');
        }
        sleep(nearly).await;
        socket.write_all(b"y").await.unwrap();
        assert_eq!(socket.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut, "nobody asks any more");
        assert!(began.elapsed() >= nearly * 4 + QUIET_MAX, "what came and went before counts");
        assert_eq!(socket.write_all(&[0; 32]).await.unwrap_err().kind(), io::ErrorKind::TimedOut, "nobody reads the answer");
    }
}
