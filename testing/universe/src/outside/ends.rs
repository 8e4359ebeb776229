//! The two ends of a connection: what is read, written and closed there.

use std::io::{self, IoSlice};
use std::task::{Poll, Waker};

use bytes::Buf;
use tokio::io::ReadBuf;

use super::network::{State, WINDOW_BYTES};
use super::packet::{Packet, PipeId, What, bit};

impl State {
    pub(super) fn read(&mut self, id: PipeId, waker: &Waker, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let now_us = self.now_us;
        let Some(pipe) = self.pipes.get_mut(&id) else { return Poll::Ready(Ok(())) };
        if pipe.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.processes.is_deaf(pipe.to) {
            pipe.reader = Some(waker.clone());
            return Poll::Pending;
        }
        let mut read = 0;
        while let Some(first) = pipe.arrived.front_mut() {
            let part = first.len().min(into.remaining());
            into.put_slice(&first[..part]);
            first.advance(part);
            read += part;
            if !first.is_empty() {
                break;
            }
            pipe.arrived.pop_front();
        }
        if read > 0 {
            pipe.bytes -= read;
            let from = pipe.from;
            if let Some(writer) = pipe.writer.take() {
                writer.wake();
                self.heard |= bit(from);
            }
            match self.reads.last_mut() {
                Some(last) if (last.0, last.1) == (now_us, from) => last.2 += read as u64,
                _ => self.reads.push((now_us, from, read as u64)),
            }
            return Poll::Ready(Ok(()));
        }
        if pipe.is_ended || into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        pipe.reader = Some(waker.clone());
        Poll::Pending
    }

    /// Writes as much of some pieces as there is room for, in one packet.
    pub(super) fn write(&mut self, id: PipeId, waker: &Waker, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let crashing = self.is_crashing();
        let Some(pipe) = self.pipes.get_mut(&id).filter(|pipe| !pipe.is_reset && !pipe.is_finished && !crashing) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let room = WINDOW_BYTES.saturating_sub(pipe.bytes);
        if room == 0 {
            pipe.writer = Some(waker.clone());
            return Poll::Pending;
        }
        let part = room.min(pieces.iter().map(|piece| piece.len()).sum());
        pipe.bytes += part;
        let (from, to) = (pipe.from, pipe.to);
        let mut bytes = Vec::with_capacity(part);
        for piece in pieces {
            bytes.extend_from_slice(&piece[..piece.len().min(part - bytes.len())]);
        }
        self.send(Packet { from, to, what: What::Data(id, bytes.into()) });
        self.processes.has_sent(from);
        Poll::Ready(Ok(part))
    }

    /// The writer says nothing more.
    pub(super) fn finish(&mut self, id: PipeId) {
        let crashing = self.is_crashing();
        let Some(pipe) = self.pipes.get_mut(&id).filter(|pipe| !pipe.is_finished && !pipe.is_reset) else { return };
        pipe.is_finished = true;
        let (from, to) = (pipe.from, pipe.to);
        let what = if crashing { What::Reset(id) } else { What::End(id) };
        self.send(Packet { from, to, what });
    }

    /// The reader finds the end from now on.
    pub(super) fn stop_reading(&mut self, id: PipeId) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.is_ended = true;
            pipe.arrived.clear();
            pipe.wake();
        }
    }

    /// The reader is gone.
    pub(super) fn close(&mut self, id: PipeId) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        pipe.is_closed = true;
        pipe.arrived.clear();
        let (back, has_unread) = (pipe.back, pipe.bytes > 0 && !pipe.is_ended);
        let (from, to) = (pipe.to, pipe.from);
        if has_unread {
            self.send(Packet { from, to, what: What::Reset(id) });
        }
        if self.pipes.get(&back).is_none_or(|back| back.is_closed) {
            self.pipes.remove(&id);
            self.pipes.remove(&back);
        }
    }
}
