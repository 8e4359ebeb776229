//! One end of a connection of the simulated network.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_runtime::simulated;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::network::State;
use super::packet::PipeId;

/// An end: what it reads from, and what it writes to.
pub(super) struct End {
    state: Arc<Mutex<State>>,
    reads: PipeId,
    writes: PipeId,
}

/// An end as the door has it.
pub(super) fn wire(state: &Arc<Mutex<State>>, reads: PipeId, writes: PipeId) -> simulated::Wire {
    let end = End { state: Arc::clone(state), reads, writes };
    let shared = Arc::clone(state);
    let hangup = move |how: std::net::Shutdown| {
        let mut state = shared.lock();
        if how != std::net::Shutdown::Read {
            state.finish(writes);
        }
        if how != std::net::Shutdown::Write {
            state.stop_reading(reads);
        }
    };
    simulated::Wire { bytes: Box::new(end), hangup: Arc::new(hangup) }
}

impl AsyncRead for End {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.state.lock().read(self.reads, context.waker(), into)
    }
}

impl AsyncWrite for End {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.state.lock().write(self.writes, context.waker(), &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(self: Pin<&mut Self>, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.state.lock().write(self.writes, context.waker(), pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.lock().finish(self.writes);
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.finish(self.writes);
        state.close(self.reads);
    }
}
