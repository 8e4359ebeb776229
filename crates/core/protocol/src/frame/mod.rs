//! The header that each message has before it.

mod left;

use forebay_types::{Error, Result};

pub use left::{LEFT_BYTES, LEFT_MS_MAX, Left};

use crate::version::{LEFT_SINCE, PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, Spoken};

/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 28;
/// Longest message in bytes.
pub const META_BYTES_MAX: u32 = 16 << 20;
/// Longest payload in bytes: a segment.
pub const PAYLOAD_BYTES_MAX: u32 = forebay_types::SEGMENT_BYTES as u32;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Asks; answered by one `Reply` with the same tag.
    Request,
    /// Answers.
    Reply,
    /// Gives a request up: the peer drops what it does for it. Not answered, and there may be no reply any more.
    Cancel,
    /// Tells; not answered.
    Notice,
    /// Opens a connection: the handshake.
    Hello,
    /// Asks as `Request`, and says before its message how long the answer is waited for ([`Left`]).
    Timed,
}

/// The 28 bytes before every frame, little endian:
/// `meta_len u32 | payload_len u32 | tag u64 | kind u8 | descriptors u8 | version u16 | payload_crc u32 | crc u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the message.
    pub meta_len: u32,
    /// Bytes of raw payload after it.
    pub payload_len: u32,
    /// Pairs a reply with its request; chosen by who asks, not in use by another request of the connection.
    pub tag: u64,
    /// What the frame is.
    pub kind: FrameKind,
    /// File descriptors that come with the frame's first byte (Unix sockets only).
    pub descriptors: u8,
    /// The version that its connection speaks; in the first frame of one the oldest that its sender does, as [`Spoken::of_first`] says.
    pub version: u16,
    /// CRC-32C of the payload, where it goes by a network that does not check it itself; 0 elsewhere.
    pub payload_crc: u32,
    /// CRC-32C of the first 24 bytes of the header followed by the message.
    pub crc: u32,
}

impl FrameHeader {
    /// The first 24 bytes, which the checksum covers.
    pub fn covered(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&self.meta_len.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.tag.to_le_bytes());
        bytes[16] = match self.kind {
            FrameKind::Request => 0,
            FrameKind::Reply => 1,
            FrameKind::Cancel => 2,
            FrameKind::Notice => 3,
            FrameKind::Hello => 4,
            FrameKind::Timed => 5,
        };
        bytes[17] = self.descriptors;
        bytes[18..20].copy_from_slice(&self.version.to_le_bytes());
        bytes[20..].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[..24].copy_from_slice(&self.covered());
        bytes[24..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// Reads a header. `Invalid` when it is of another protocol, or of a version that this build does not speak, or exceeds a limit.
    pub fn from_bytes(bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Self> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let version = u16::from_le_bytes([bytes[18], bytes[19]]);
        if !(PROTOCOL_VERSION_OLDEST..=PROTOCOL_VERSION).contains(&version) {
            let theirs = Spoken { oldest: version, newest: version };
            return Err(Spoken::up_to(PROTOCOL_VERSION).differs(theirs));
        }
        let kind = match bytes[16] {
            0 => FrameKind::Request,
            1 => FrameKind::Reply,
            2 => FrameKind::Cancel,
            3 => FrameKind::Notice,
            4 => FrameKind::Hello,
            5 if version >= LEFT_SINCE => FrameKind::Timed,
            other => return Err(Error::invalid(format!("frame of unknown kind {other}"))),
        };
        let header = Self {
            meta_len: u32_at(0),
            payload_len: u32_at(4),
            tag: u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")),
            kind,
            descriptors: bytes[17],
            version,
            payload_crc: u32_at(20),
            crc: u32_at(24),
        };
        if header.meta_len > META_BYTES_MAX || header.payload_len > PAYLOAD_BYTES_MAX || header.descriptors > 1 {
            return Err(Error::invalid(format!(
                "frame of {} + {} bytes and {} descriptors exceeds the limits",
                header.meta_len, header.payload_len, header.descriptors
            )));
        }
        Ok(header)
    }
}
