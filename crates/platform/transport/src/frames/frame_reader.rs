//! Frames as they come: many small ones with one read, large payloads straight to their place.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{FRAME_HEADER_BYTES, FrameHeader, PROTOCOL_VERSION};
use forebay_runtime::time::timeout;
use forebay_types::{Error, Result};

use crate::frames::Source;
use crate::frames::batch::{PayloadSum, checksum};
use crate::frames::buffers::Buffers;
use crate::frames::outbox::Outbox;
use crate::frames::turns::{TURN_BYTES, give_way, in_turn};

/// Bytes of the buffer that small frames are read through. What of a payload comes with its header is copied once
/// more, so the buffer is not larger than pays.
const BUFFER_BYTES: usize = 16 << 10;
/// A connection that has been silent for so long holds no memory for the next payload.
const SILENCE: Duration = Duration::from_secs(5);

/// A frame without its payload, which is to be taken from the reader next.
pub(crate) struct Incoming {
    pub(crate) header: FrameHeader,
    pub(crate) meta: Bytes,
    pub(crate) descriptor: Option<OwnedFd>,
}

/// Takes frames from a connection: many small ones with one read, large payloads straight into a buffer of their own.
pub(crate) struct FrameReader {
    source: Source,
    /// What all frames are of, once both sides have said what they speak.
    version: Option<u16>,
    buffer: Box<[u8]>,
    /// What of the buffer is filled and not taken yet.
    start: usize,
    end: usize,
    descriptors: VecDeque<OwnedFd>,
    /// Sent before the reader waits for input, since what it waits for may be the answer.
    outbox: Option<Arc<Outbox>>,
    /// Where large payloads come into, since the first one and until the connection is silent.
    payloads: Option<Arc<Buffers>>,
    /// Bytes of payloads since others had their turn.
    turn: usize,
}

impl FrameReader {
    pub(crate) fn new(source: Source) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into();
        let descriptors = VecDeque::new();
        Self { source, version: None, buffer, start: 0, end: 0, descriptors, outbox: None, payloads: None, turn: 0 }
    }

    /// From now on frames of this version of the protocol are taken, and no others.
    pub(crate) fn speaks(&mut self, version: u16) {
        self.version = Some(version);
    }

    /// The version of the connection; this build's until it is known.
    pub(crate) fn version(&self) -> u16 {
        self.version.unwrap_or(PROTOCOL_VERSION)
    }

    /// From now on `outbox` is flushed before the reader waits.
    pub(crate) fn flush_before_waiting(&mut self, outbox: Arc<Outbox>) {
        self.outbox = Some(outbox);
    }

    /// The next frame, whose message has at most `meta_max` bytes; none when the peer has ended the connection.
    pub(crate) async fn next(&mut self, meta_max: u32) -> Result<Option<Incoming>> {
        if let Some(header) = self.header(meta_max).await? { self.rest(header).await.map(Some) } else { Ok(None) }
    }

    /// The header of the next frame, as [`Self::next`]; then comes [`Self::rest`].
    pub(crate) async fn header(&mut self, meta_max: u32) -> Result<Option<FrameHeader>> {
        if !self.first_bytes().await? {
            return match &self.buffer[self.start..self.end] {
                [] => Ok(None),
                // The alert that TLS ends with.
                [21, 3, ..] if self.version.is_none() => Err(Error::denied(
                    "the other end speaks TLS, and this one does not: name the authority of its certificate with tls-ca",
                )),
                _ => Err(cut_off()),
            };
        }
        let head = self.buffer[self.start..][..FRAME_HEADER_BYTES].try_into().expect("a header's bytes");
        let header = FrameHeader::from_bytes(&head)?;
        if self.version.is_some_and(|version| header.version != version) {
            let (came, spoken) = (header.version, self.version());
            return Err(Error::invalid(format!("a frame of protocol {came} came where both sides speak {spoken}")));
        }
        if header.meta_len > meta_max {
            return Err(Error::invalid(format!("message of {} bytes exceeds the limit of {meta_max}", header.meta_len)));
        }
        self.start += FRAME_HEADER_BYTES;
        Ok(Some(header))
    }

    /// Whether the next bytes have been received, so many of them.
    pub(crate) fn has(&self, bytes: u64) -> bool {
        (self.end - self.start) as u64 >= bytes
    }

    /// The frame of a header, without its payload.
    pub(crate) async fn rest(&mut self, header: FrameHeader) -> Result<Incoming> {
        let meta_len = header.meta_len as usize;
        let meta = if meta_len <= self.buffer.len() {
            if !self.fill(meta_len).await? {
                return Err(cut_off());
            }
            self.start += meta_len;
            Bytes::copy_from_slice(&self.buffer[self.start - meta_len..self.start])
        } else {
            self.long(header.meta_len, &mut None).await?
        };
        if checksum(&header, &meta) != header.crc {
            return Err(Error::invalid("a frame's checksum is wrong: the peer is no forebay, or the network changes bytes"));
        }
        let descriptor = match header.descriptors {
            0 => None,
            _ => Some(self.descriptors.pop_front().ok_or_else(|| Error::invalid("a frame came without its descriptor"))?),
        };
        // Those of frames that are in the buffer behind this one; a frame has one at most.
        if self.descriptors.len() > 1 + (self.end - self.start) / FRAME_HEADER_BYTES {
            return Err(Error::invalid("more descriptors came than frames"));
        }
        Ok(Incoming { header, meta, descriptor })
    }

    /// The payload of a frame, in a buffer of its own.
    pub(crate) async fn payload(&mut self, header: &FrameHeader) -> Result<Bytes> {
        let mut sum = sum(header);
        let payload = self.long(header.payload_len, &mut sum).await?;
        checked(header, &sum)?;
        Ok(payload)
    }

    /// The next `len` bytes in a buffer of their own.
    async fn long(&mut self, len: u32, sum: &mut Option<PayloadSum>) -> Result<Bytes> {
        let len = len as usize;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let buffers = Buffers::suit(len).then(|| self.payloads.get_or_insert_with(Buffers::shared).clone());
        let mut payload = buffers.as_ref().map_or_else(|| Vec::with_capacity(len), |buffers| buffers.take(len));
        let buffered = len.min(self.end - self.start);
        payload.extend_from_slice(&self.buffer[self.start..self.start + buffered]);
        self.start += buffered;
        add(sum, &payload);
        while payload.len() < len {
            let (outbox, before) = (&self.outbox, payload.len());
            let end = len.min(before + TURN_BYTES);
            let (received, turn) = in_turn(self.source.receive_to(&mut payload, end, || flush(outbox))).await;
            let received = received.map_err(lost)?;
            if received == 0 {
                return Err(cut_off());
            }
            add(sum, &payload[before..]);
            give_way(&mut self.turn, received).await;
            drop(turn);
        }
        Ok(if let Some(buffers) = buffers { buffers.lend(payload) } else { payload.into() })
    }

    /// The payload of a frame, which has as many bytes as `into`, where it is to lie.
    pub(crate) async fn payload_into(&mut self, header: &FrameHeader, into: &mut [u8]) -> Result<()> {
        let mut sum = sum(header);
        let buffered = into.len().min(self.end - self.start);
        into[..buffered].copy_from_slice(&self.buffer[self.start..self.start + buffered]);
        self.start += buffered;
        add(&mut sum, &into[..buffered]);
        let mut done = buffered;
        while done < into.len() {
            let (outbox, end) = (&self.outbox, into.len().min(done + TURN_BYTES));
            let (received, turn) = in_turn(self.source.receive_into(&mut into[done..end], || flush(outbox))).await;
            let received = received.map_err(lost)?;
            if received == 0 {
                return Err(cut_off());
            }
            add(&mut sum, &into[done..done + received]);
            done += received;
            give_way(&mut self.turn, received).await;
            drop(turn);
        }
        checked(header, &sum)
    }

    /// The payload of a frame, piece by piece: each is in a buffer that all have, and taken over before the next one comes.
    pub(crate) async fn payload_in_pieces(&mut self, header: &FrameHeader, mut put: impl FnMut(&[u8])) -> Result<()> {
        let mut sum = sum(header);
        let mut left = header.payload_len as usize;
        let buffers = self.payloads.get_or_insert_with(Buffers::shared).clone();
        let mut piece = buffers.borrow(TURN_BYTES);
        while left > 0 {
            piece.clear();
            let buffered = left.min(self.end - self.start);
            piece.extend_from_slice(&self.buffer[self.start..self.start + buffered]);
            self.start += buffered;
            let end = left.min(TURN_BYTES);
            let mut turn = None;
            if piece.len() < end {
                let outbox = &self.outbox;
                let (received, taken) = in_turn(self.source.receive_to(&mut piece, end, || flush(outbox))).await;
                if received.map_err(lost)? == 0 {
                    return Err(cut_off());
                }
                turn = Some(taken);
            }
            add(&mut sum, &piece);
            put(&piece);
            left -= piece.len();
            give_way(&mut self.turn, piece.len()).await;
            drop(turn);
        }
        checked(header, &sum)
    }

    pub(crate) async fn skip(&mut self, len: u32) -> Result<()> {
        let mut left = len as usize;
        loop {
            let step = left.min(self.end - self.start);
            self.start += step;
            left -= step;
            if left == 0 {
                return Ok(());
            }
            if !self.fill(1).await? {
                return Err(cut_off());
            }
        }
    }

    /// Leaves out everything until the peer ends the connection.
    pub(crate) async fn skip_all(&mut self) {
        loop {
            self.start = self.end;
            self.descriptors.clear();
            if !matches!(self.fill(1).await, Ok(true)) {
                return;
            }
        }
    }

    /// Receives the header of the next frame, however long that takes; false when the connection ends before.
    async fn first_bytes(&mut self) -> Result<bool> {
        if self.payloads.is_some() {
            match timeout(SILENCE, self.fill(FRAME_HEADER_BYTES)).await {
                Ok(filled) => return filled,
                // What has been received is in the buffer.
                Err(_) => self.payloads = None,
            }
        }
        self.fill(FRAME_HEADER_BYTES).await
    }

    /// Receives until the buffer holds `wanted` bytes; false when the connection ends before.
    async fn fill(&mut self, wanted: usize) -> Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        while self.end - self.start < wanted {
            if self.start + wanted > self.buffer.len() || self.end == self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let outbox = &self.outbox;
            let into = &mut self.buffer[self.end..];
            let received = self.source.receive(into, &mut self.descriptors, || flush(outbox)).await.map_err(lost)?;
            if received == 0 {
                return Ok(false);
            }
            self.end += received;
        }
        Ok(true)
    }
}

/// Where the checksum of a payload is counted, if it came with one.
fn sum(header: &FrameHeader) -> Option<PayloadSum> {
    (header.payload_crc != 0).then(PayloadSum::default)
}

fn add(sum: &mut Option<PayloadSum>, bytes: &[u8]) {
    if let Some(sum) = sum {
        sum.add(bytes);
    }
}

fn checked(header: &FrameHeader, sum: &Option<PayloadSum>) -> Result<()> {
    match sum {
        Some(sum) if sum.said() != header.payload_crc => {
            Err(Error::invalid("a payload's checksum is wrong: the network changes bytes"))
        }
        _ => Ok(()),
    }
}

fn flush(outbox: &Option<Arc<Outbox>>) {
    if let Some(outbox) = outbox {
        outbox.flush();
    }
}

fn cut_off() -> Error {
    Error::closed("the connection ended within a frame")
}

fn lost(error: std::io::Error) -> Error {
    Error::closed(format!("the connection was lost: {error}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use forebay_protocol::FrameKind;

    use super::*;
    use crate::frames::Link;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut header = FrameHeader {
            meta_len: 0,
            payload_len: payload.len() as u32,
            tag: 1,
            kind: FrameKind::Reply,
            descriptors: 0,
            version: PROTOCOL_VERSION,
            payload_crc: 0,
            crc: 0,
        };
        header.crc = checksum(&header, &[]);
        [&header.to_bytes()[..], payload].concat()
    }

    #[tokio::test]
    async fn silence_gives_memory_up_and_loses_nothing() {
        let (mut peer, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut reader = FrameReader::new(Link::plain(ours.into(), true).unwrap().source);
        let frame = frame(&[7; 64 << 10]);
        // The second one's header comes in two parts with more than the silence between them.
        peer.write_all(&[&frame[..], &frame[..10]].concat()).unwrap();
        let rest = frame[10..].to_vec();
        let late = std::thread::spawn(move || {
            std::thread::sleep(SILENCE + Duration::from_millis(500));
            peer.write_all(&rest).unwrap();
            peer
        });

        let first = reader.next(0).await.unwrap().unwrap();
        let payload = reader.payload(&first.header).await.unwrap();
        let buffers = Arc::downgrade(reader.payloads.as_ref().unwrap());
        let second = reader.next(0).await.unwrap().unwrap();
        assert!(buffers.upgrade().is_none(), "no connection holds memory any more");
        assert_eq!(payload, [7; 64 << 10][..], "a payload in use stays");
        drop(payload);
        assert_eq!(reader.payload(&second.header).await.unwrap(), [7; 64 << 10][..]);
        drop(late.join().unwrap());
        assert!(reader.next(0).await.unwrap().is_none());
    }
}
