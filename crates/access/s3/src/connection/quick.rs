//! Requests of which all that they want is at hand.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use forebay_runtime::time::{Sleep, sleep};
use forebay_transport::caught;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use super::general::HEAD_WITHIN;
use crate::context::Context;
use crate::warm;

/// Bytes that are received at once. A head that does not come in one piece of this is hyper's.
const RECEIVE_BYTES: usize = 8 << 10;

/// Answers requests as long as all that they want is at hand. Gives what came of the first one that wants more; nothing at the
/// connection's end, or when told to stop.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    begun: Bytes,
    context: &Arc<Context>,
    stopped: &mut watch::Receiver<bool>,
) -> io::Result<Option<Bytes>> {
    let (mut came, mut head) = (Vec::from(begun), Vec::new());
    let mut idle = Idle::new();
    let stop = stopped.changed();
    tokio::pin!(stop);
    loop {
        let mut taken = 0;
        while taken < came.len() {
            // What fails by a defect is no answer: the other way says so.
            let Some(answer) = caught(|| warm::answer(context, &came[taken..], &mut head)).flatten() else {
                came.drain(..taken);
                return Ok(Some(came.into()));
            };
            taken += answer.taken;
            assert!(answer.taken > 0 && taken <= came.len(), "{taken} bytes of {} were answered", came.len());
            send(socket, &head, &answer.body).await?;
        }
        came.clear();
        let received = poll_fn(|cx| {
            if let Poll::Ready(received) = receive(socket, cx, &mut came) {
                return Poll::Ready(received);
            }
            if stop.as_mut().poll(cx).is_ready() || idle.poll(cx).is_ready() { Poll::Ready(Ok(0)) } else { Poll::Pending }
        });
        if received.await? == 0 {
            return Ok(None);
        }
        idle.heard = forebay_runtime::now();
    }
}

/// Receives by way of the stack: idle connections hold no buffer.
fn receive<S: AsyncRead + Unpin>(socket: &mut S, cx: &mut TaskContext<'_>, into: &mut Vec<u8>) -> Poll<io::Result<usize>> {
    let mut room = [MaybeUninit::uninit(); RECEIVE_BYTES];
    let mut buffer = ReadBuf::uninit(&mut room);
    ready!(Pin::new(socket).poll_read(cx, &mut buffer))?;
    into.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Sends head and body from where they are.
async fn send<S: AsyncWrite + Unpin>(socket: &mut S, head: &[u8], body: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    poll_fn(|cx| {
        while sent < head.len() + body.len() {
            let left = [IoSlice::new(&head[sent.min(head.len())..]), IoSlice::new(&body[sent.saturating_sub(head.len())..])];
            let left = if sent < head.len() { &left[..] } else { &left[1..] };
            match ready!(Pin::new(&mut *socket).poll_write_vectored(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => sent += more,
            }
        }
        Pin::new(&mut *socket).poll_flush(cx)
    })
    .await
}

/// How long nothing came.
struct Idle {
    heard: Instant,
    /// Set anew when it ends, not with each request.
    alarm: Pin<Box<Sleep>>,
}

impl Idle {
    fn new() -> Self {
        Self { heard: forebay_runtime::now(), alarm: Box::pin(sleep(HEAD_WITHIN)) }
    }

    /// Ready when that is too long.
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            if self.heard.elapsed() >= HEAD_WITHIN {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset((self.heard + HEAD_WITHIN).into());
        }
    }
}
