//! The bytes of one batch in the log, under one checksum, so that a torn end can be told from damage.

/// Bytes before a frame's entries: length, checksum, number of the first entry, count of entries.
pub(super) const HEADER_BYTES: usize = 20;
/// No frame is longer, which bounds what a damaged length can ask for.
pub(super) const BODY_BYTES_MAX: usize = 256 << 20;

/// One batch as it is written: a frame has one checksum, and the next one is written when it is durable. So only the last
/// frame of a log can be torn, and a bad frame with a good one behind it is damage.
pub(super) fn encode(first: u64, count: u32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER_BYTES + body.len());
    frame.extend_from_slice(&u32::try_from(body.len()).expect("batches are bounded").to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&first.to_le_bytes());
    frame.extend_from_slice(&count.to_le_bytes());
    frame.extend_from_slice(body);
    let checksum = checksum(&frame);
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    frame
}

fn checksum(frame: &[u8]) -> u32 {
    forebay_types::crc32c_append(forebay_types::crc32c(&frame[..4]), &frame[8..])
}

/// A frame that verifies.
pub(super) struct Frame<'a> {
    pub(super) first: u64,
    pub(super) count: u32,
    body: &'a [u8],
    pub(super) bytes: usize,
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, if a whole one is there and it verifies.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let length = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
        let expected = u32::from_le_bytes(header[4..8].try_into().ok()?);
        let first = u64::from_le_bytes(header[8..16].try_into().ok()?);
        let count = u32::from_le_bytes(header[16..20].try_into().ok()?);
        if length > BODY_BYTES_MAX || count == 0 {
            return None;
        }
        let frame = bytes.get(..HEADER_BYTES + length)?;
        (checksum(frame) == expected).then(|| Self { first, count, body: &frame[HEADER_BYTES..], bytes: frame.len() })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut rest = self.body;
        (self.first..self.first + u64::from(self.count)).map_while(move |number| {
            let length = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
            let entry = rest.get(4..4 + length)?;
            rest = &rest[4 + length..];
            Some((number, entry))
        })
    }
}

pub(super) fn push(body: &mut Vec<u8>, entry: &[u8]) {
    body.extend_from_slice(&u32::try_from(entry.len()).expect("entries are bounded").to_le_bytes());
    body.extend_from_slice(entry);
}
