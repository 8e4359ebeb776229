//! Frames as they come, taken no faster than there is room for them and their answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{FrameHeader, FrameKind, LEFT_BYTES, Left, META_BYTES_MAX};
use forebay_runtime::time::timeout;
use forebay_types::{Error, Result};
use tracing::error;

use super::live::Inner;
use crate::caught::caught;
use crate::frames::frame_reader::{FrameReader, Incoming};
use crate::ring::MESSAGE_BYTES_MAX;
use crate::{Place, ServerLimits, Session, Spent};

/// When answers of all connections together wait for more than half of the server's memory for requests, a connection has so many calls
/// in flight, and so many bytes of answers waiting, before it is read further: who takes its answers has them all the same.
const CALLS_WHEN_FULL: usize = 16;
const ANSWER_BYTES_WHEN_FULL: usize = 1 << 20;
/// A frame that was begun must come within so long: it holds memory that others wait for.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
/// A request waits so long for its memory. What has it may wait for other servers, whose requests wait here: somebody has to end that.
const MEMORY_WITHIN: Duration = Duration::from_secs(60);
/// Answers are sent at the latest when so many bytes wait.
const FLUSH_BYTES: usize = 256 << 10;

impl<S: Session> Inner<S> {
    /// Takes frames until the connection ends.
    pub(super) async fn read(self: &Arc<Self>, reader: &mut FrameReader) -> Result<()> {
        let most = self.limits.payload_bytes;
        loop {
            let (in_flight, payload_bytes) = self.may_have();
            if !self.in_flight.is_below(in_flight, most) {
                self.outbox.flush();
                self.in_flight.below(in_flight, most).await;
            }
            match self.outbox.bytes() {
                waiting if waiting > payload_bytes => {
                    self.outbox.flush();
                    self.outbox.drained_to(payload_bytes).await;
                }
                waiting if waiting > FLUSH_BYTES => self.outbox.flush(),
                _ => {}
            }
            let Some((header, spent)) = self.announced(reader).await? else { return Ok(()) };
            let here = reader.has(u64::from(header.meta_len) + u64::from(header.payload_len));
            let arriving = async {
                let frame = reader.rest(header).await?;
                self.take(frame, spent, reader).await
            };
            match here {
                true => arriving.await?,
                false => match timeout(ARRIVES_WITHIN, arriving).await {
                    Ok(taken) => taken?,
                    Err(_) => return Err(Error::invalid("a frame that was begun does not come")),
                },
            }
        }
    }

    /// Calls in flight, and bytes of answers that wait to be sent, with which the connection is read further.
    fn may_have(&self) -> (usize, usize) {
        let ServerLimits { in_flight, payload_bytes, .. } = self.limits;
        match self.memory.is_full_of_answers() {
            true => (in_flight.min(CALLS_WHEN_FULL), payload_bytes.min(ANSWER_BYTES_WHEN_FULL)),
            false => (in_flight, payload_bytes),
        }
    }

    /// The header of the next frame, with the memory for all of it; waits for both. None at the end.
    async fn announced(self: &Arc<Self>, reader: &mut FrameReader) -> Result<Option<(FrameHeader, Spent)>> {
        let Some(header) = reader.header(META_BYTES_MAX).await? else { return Ok(None) };
        let bytes = u64::from(header.meta_len) + u64::from(header.payload_len);
        let spent = match self.memory.budget.try_take(bytes) {
            Some(spent) => spent,
            None => {
                self.outbox.flush();
                let late = |_| Error::retry("requests have had all of the server's memory for them for too long");
                timeout(MEMORY_WITHIN, self.memory.budget.take(bytes)).await.map_err(late)?
            }
        };
        Ok(Some((header, spent)))
    }

    async fn take(self: &Arc<Self>, frame: Incoming, spent: Spent, reader: &mut FrameReader) -> Result<()> {
        let (header, mut meta) = (frame.header, frame.meta);
        let is_request = matches!(header.kind, FrameKind::Request | FrameKind::Timed);
        if header.descriptors > 0 || (header.payload_len > 0 && !is_request) {
            return Err(Error::invalid("a frame has a descriptor or a payload that its kind has not"));
        }
        match header.kind {
            FrameKind::Request | FrameKind::Timed if self.in_flight.contains(header.tag) => {
                Err(Error::invalid(format!("request {} is in flight already", header.tag)))
            }
            FrameKind::Request | FrameKind::Timed => {
                let left = match header.kind {
                    FrameKind::Timed => said(&mut meta)?,
                    _ => Left::default(),
                };
                if let Some(mut place) = self.place(&meta, header.payload_len) {
                    match place.memory() {
                        Some(memory) => reader.payload_into(&header, memory).await?,
                        None => reader.payload_in_pieces(&header, |piece| place.put(piece)).await?,
                    }
                    let response = caught(|| place.filled()).unwrap_or_else(|| self.failed(&meta));
                    if let Some(frame) = self.reply(header.tag, response) {
                        self.outbox.push(frame);
                    }
                    return Ok(());
                }
                let payload = reader.payload(&header).await?;
                if let Some(seat) = self.seat.get()
                    && meta.len() + payload.len() <= MESSAGE_BYTES_MAX
                {
                    seat.came_by_socket();
                }
                self.call(header.tag, left, meta, payload, spent);
                Ok(())
            }
            FrameKind::Cancel => {
                self.in_flight.cancel(header.tag);
                Ok(())
            }
            FrameKind::Notice => {
                if caught(|| self.session.notice(meta)).is_none() {
                    error!(peer = %self.peer.address, "a notice was lost by a defect");
                }
                Ok(())
            }
            FrameKind::Reply | FrameKind::Hello => Err(Error::invalid("a client sends no replies")),
        }
    }

    /// The service's own place for the payload of a request, if it has one of just its size.
    fn place(&self, meta: &Bytes, payload_len: u32) -> Option<Box<dyn Place>> {
        if payload_len == 0 {
            return None;
        }
        caught(|| {
            let place = self.session.place(meta, payload_len)?;
            (place.bytes() == payload_len as usize).then_some(place)
        })?
    }
}

/// How long a request is waited for, which stands before its message.
fn said(meta: &mut Bytes) -> Result<Left> {
    match meta.first_chunk::<LEFT_BYTES>() {
        Some(said) => {
            let left = Left::from_bytes(*said);
            *meta = meta.slice(LEFT_BYTES..);
            Ok(left)
        }
        None => Err(Error::invalid("a request does not say how long it is waited for, as its kind does")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_of_its_time_stands_before_its_message() {
        let mut meta = Bytes::from_static(&[0xd0, 7, 0, 0, b'a']);
        assert_eq!(said(&mut meta).unwrap().known(), Some(Duration::from_secs(2)));
        assert_eq!(meta, "a");
        assert!(said(&mut meta).is_err(), "it says less than a time");
    }
}
