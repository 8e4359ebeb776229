//! Frames on their way out, many with one call of the system.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use forebay_protocol::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, LEFT_BYTES, LEFT_SINCE, Left, META_BYTES_MAX, PAYLOAD_BYTES_MAX,
};
use forebay_types::{Error, Result};

use crate::Sent;

/// Slices handed to the system at once.
const SLICES_MAX: usize = 64;

/// A frame on its way out: header, message and payload stay where they are until the system takes them.
pub(crate) struct OutFrame {
    header: FrameHeader,
    head: [u8; FRAME_HEADER_BYTES],
    /// How long the answer is waited for: the first bytes of the message, where a request says so.
    left: Option<[u8; LEFT_BYTES]>,
    meta: Bytes,
    payload: Vec<Bytes>,
    descriptor: Option<OwnedFd>,
    /// Bytes of the whole frame.
    pub(crate) bytes: usize,
    sent: Option<Box<dyn Sent>>,
}

impl OutFrame {
    /// `Invalid` when message or payload are longer than a frame may be.
    pub(crate) fn new(
        version: u16,
        kind: FrameKind,
        tag: u64,
        meta: Bytes,
        payload: Vec<Bytes>,
        descriptor: Option<OwnedFd>,
    ) -> Result<Self> {
        Self::with(None, version, kind, tag, meta, payload, descriptor)
    }

    /// A request to a peer of `version`, which is told how long its answer is waited for if it knows what that means.
    pub(crate) fn request(version: u16, tag: u64, left: Left, meta: Bytes, payload: Vec<Bytes>) -> Result<Self> {
        match left.to_bytes().filter(|_| version >= LEFT_SINCE) {
            None => Self::new(version, FrameKind::Request, tag, meta, payload, None),
            left => Self::with(left, version, FrameKind::Timed, tag, meta, payload, None),
        }
    }

    fn with(
        left: Option<[u8; LEFT_BYTES]>,
        version: u16,
        kind: FrameKind,
        tag: u64,
        meta: Bytes,
        payload: Vec<Bytes>,
        descriptor: Option<OwnedFd>,
    ) -> Result<Self> {
        debug_assert_eq!(left.is_some(), kind == FrameKind::Timed, "one kind of frame says how long it is waited for");
        let payload_bytes: usize = payload.iter().map(Bytes::len).sum();
        let meta_bytes = left.map_or(0, |left| left.len()) + meta.len();
        if meta_bytes > META_BYTES_MAX as usize || payload_bytes > PAYLOAD_BYTES_MAX as usize {
            return Err(Error::invalid(format!(
                "a frame of {meta_bytes} + {payload_bytes} bytes exceeds the limits of {META_BYTES_MAX} + {PAYLOAD_BYTES_MAX} bytes"
            )));
        }
        let mut header = FrameHeader {
            meta_len: meta_bytes as u32,
            payload_len: payload_bytes as u32,
            tag,
            kind,
            descriptors: descriptor.is_some().into(),
            version,
            payload_crc: 0,
            crc: 0,
        };
        header.crc = forebay_types::crc32c_append(checksum(&header, said(&left)), &meta);
        let bytes = FRAME_HEADER_BYTES + meta_bytes + payload_bytes;
        Ok(Self { header, head: header.to_bytes(), left, meta, payload, descriptor, bytes, sent: None })
    }

    /// The same, with its payload's checksum for who receives it by a network that does not check what it carries.
    pub(crate) fn checked(mut self) -> Self {
        if self.header.payload_len > 0 {
            let mut sum = PayloadSum::default();
            self.payload.iter().for_each(|chunk| sum.add(chunk));
            self.header.payload_crc = sum.said();
            self.header.crc = forebay_types::crc32c_append(checksum(&self.header, said(&self.left)), &self.meta);
            self.head = self.header.to_bytes();
        }
        self
    }

    pub(crate) fn is_request(&self) -> bool {
        matches!(self.header.kind, FrameKind::Request | FrameKind::Timed)
    }

    pub(crate) fn tag(&self) -> u64 {
        self.header.tag
    }

    /// The same, with who is told when it is through.
    pub(crate) fn telling(self, sent: Option<Box<dyn Sent>>) -> Self {
        Self { sent, ..self }
    }

    fn chunk(&self, index: usize) -> Option<&[u8]> {
        match index {
            0 => Some(&self.head),
            1 => Some(said(&self.left)),
            2 => Some(&self.meta),
            _ => self.payload.get(index - 3).map(|chunk| &chunk[..]),
        }
    }
}

/// What a request says before its message.
fn said(left: &Option<[u8; LEFT_BYTES]>) -> &[u8] {
    left.as_ref().map_or(&[][..], |left| &left[..])
}

pub(crate) fn checksum(header: &FrameHeader, meta: &[u8]) -> u32 {
    forebay_types::crc32c_append(forebay_types::crc32c(&header.covered()), meta)
}

/// The checksum of a payload, chunk by chunk.
#[derive(Default)]
pub(crate) struct PayloadSum(u32);

impl PayloadSum {
    pub(crate) fn add(&mut self, chunk: &[u8]) {
        self.0 = forebay_types::crc32c_append(self.0, chunk);
    }

    /// As it stands in a header, where 0 says that there is none.
    pub(crate) fn said(&self) -> u32 {
        self.0.max(1)
    }
}

/// Frames that are being sent, in order, and how far the first one got.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) frames: VecDeque<OutFrame>,
    /// Chunk of the first frame, and bytes of that chunk, that go next.
    at: (usize, usize),
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes that are out of a frame that is not through.
    pub(crate) fn begun(&self) -> usize {
        let (chunk, offset) = self.at;
        let Some(frame) = self.frames.front() else { return 0 };
        (0..chunk).map_while(|chunk| frame.chunk(chunk)).map(<[u8]>::len).sum::<usize>() + offset
    }

    /// Calls `send` once with what goes next; the bytes of the frames that are through now.
    pub(crate) fn send_with(
        &mut self,
        send: impl FnOnce(&[IoSlice<'_>], Option<BorrowedFd<'_>>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        let mut descriptor = None;
        'fill: for (index, frame) in self.frames.iter().enumerate() {
            let (first_chunk, mut offset) = if index == 0 { self.at } else { (0, 0) };
            if let Some(fd) = &frame.descriptor
                && (first_chunk, offset) == (0, 0)
            {
                // A descriptor goes with the first byte of a send, so its frame begins one.
                if index > 0 {
                    break;
                }
                descriptor = Some(fd.as_fd());
            }
            for chunk in (first_chunk..).map_while(|chunk| frame.chunk(chunk)) {
                if count == SLICES_MAX {
                    break 'fill;
                }
                if offset < chunk.len() {
                    slices[count] = IoSlice::new(&chunk[offset..]);
                    count += 1;
                }
                offset = 0;
            }
        }
        let sent = send(&slices[..count], descriptor)?;
        Ok(self.advance(sent))
    }

    fn advance(&mut self, mut sent: usize) -> usize {
        let mut through = 0;
        while let Some(frame) = self.frames.front() {
            let (mut chunk, mut offset) = self.at;
            while let Some(bytes) = frame.chunk(chunk) {
                let step = sent.min(bytes.len() - offset);
                sent -= step;
                offset += step;
                if offset < bytes.len() {
                    self.at = (chunk, offset);
                    return through;
                }
                (chunk, offset) = (chunk + 1, 0);
            }
            through += frame.bytes;
            self.at = (0, 0);
            if let Some(sent) = self.frames.pop_front().and_then(|frame| frame.sent) {
                sent.sent();
            }
        }
        assert!(sent == 0, "no more is sent than was handed over");
        through
    }
}
