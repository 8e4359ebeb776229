//! Bodies with checksums behind them, on their way to a store.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::HeaderMap;
use parking_lot::Mutex;

use super::{BodyError, Pieces};
use crate::dialect::{S3Error, S3Result};

/// Bytes of a chunk towards the store.
const CHUNK_BYTES: u64 = 128 << 10;
/// Checksums that may follow a body, with the length of their values.
const CHECKSUMS: [(&str, usize); 5] = [
    ("x-amz-checksum-crc32", 8),
    ("x-amz-checksum-crc32c", 8),
    ("x-amz-checksum-crc64nvme", 12),
    ("x-amz-checksum-sha1", 28),
    ("x-amz-checksum-sha256", 44),
];

/// A checksum that follows a body: announced by its head, known when its end has come.
#[derive(Clone, Debug)]
pub(crate) struct Trailer {
    name: &'static str,
    value_bytes: usize,
    value: Arc<Mutex<Option<String>>>,
}

impl Trailer {
    /// What the head announces.
    pub(super) fn announced(headers: &HeaderMap) -> S3Result<Option<Self>> {
        let Some(names) = headers.get("x-amz-trailer").and_then(|names| names.to_str().ok()) else { return Ok(None) };
        let names: Vec<String> = names.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
        match &names[..] {
            [name] => match CHECKSUMS.iter().find(|(known, _)| known == name) {
                Some((name, value_bytes)) => Ok(Some(Self { name, value_bytes: *value_bytes, value: Arc::default() })),
                None => Err(S3Error::invalid_request("The value specified in the x-amz-trailer header is not supported")),
            },
            _ => Err(S3Error::invalid_request("Expecting a single x-amz-checksum- header")),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the value could be one.
    pub(super) fn arrived(&self, value: &str) -> bool {
        let fits = value.len() == self.value_bytes && value.bytes().all(|byte| byte.is_ascii_graphic());
        *self.value.lock() = fits.then(|| value.into());
        fits
    }

    /// The value, once the body has ended.
    pub(crate) fn value(&self) -> Option<String> {
        self.value.lock().clone()
    }

    /// A body of `bytes` bytes in chunks with this behind them, and how long that is.
    pub(crate) fn chunked(self, pieces: Pieces, bytes: u64) -> (Pieces, u64) {
        let (whole, rest) = (bytes / CHUNK_BYTES, bytes % CHUNK_BYTES);
        let framed = |size: u64| format!("{size:x}").len() as u64 + 2 + size + 2;
        let data = whole * framed(CHUNK_BYTES) + if rest > 0 { framed(rest) } else { 0 };
        let end = 3 + self.name.len() as u64 + 1 + self.value_bytes as u64 + 2 + 2;
        let frames = Frames { pieces, trailer: self, left: bytes, in_chunk: 0, ready: VecDeque::new(), ended: false };
        let stream = futures::stream::unfold(Some(frames), |frames| async move {
            let mut frames = frames?;
            match frames.next().await {
                Ok(Some(piece)) => Some((Ok(piece), Some(frames))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        (stream.boxed(), data + end)
    }
}

struct Frames {
    pieces: Pieces,
    trailer: Trailer,
    left: u64,
    in_chunk: u64,
    ready: VecDeque<Bytes>,
    ended: bool,
}

impl Frames {
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.ended {
                return Ok(None);
            }
            match self.pieces.next().await.transpose()? {
                Some(piece) => self.frame(piece),
                None => {
                    let value = self.trailer.value().ok_or("the trailing checksum did not come")?;
                    self.ready.push_back(format!("0\r\n{}:{value}\r\n\r\n", self.trailer.name).into());
                    self.ended = true;
                }
            }
        }
    }

    fn frame(&mut self, mut piece: Bytes) {
        while !piece.is_empty() {
            if self.in_chunk == 0 {
                self.in_chunk = self.left.min(CHUNK_BYTES).max(piece.len().min(1) as u64);
                self.ready.push_back(format!("{:x}\r\n", self.in_chunk).into());
            }
            let part = piece.split_to((piece.len() as u64).min(self.in_chunk) as usize);
            assert!(self.in_chunk <= CHUNK_BYTES, "{} bytes are left of a chunk", self.in_chunk);
            self.in_chunk -= part.len() as u64;
            self.left = self.left.saturating_sub(part.len() as u64);
            self.ready.push_back(part);
            if self.in_chunk == 0 {
                self.ready.push_back(Bytes::from_static(b"\r\n"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn chunks_are_as_long_as_was_said() {
        for bytes in [0usize, 1, 127, CHUNK_BYTES as usize, 3 * CHUNK_BYTES as usize + 5] {
            let trailer = Trailer { name: "x-amz-checksum-crc32", value_bytes: 8, value: Arc::default() };
            assert!(trailer.arrived("AAAAAA==") && !trailer.clone().arrived("short"));
            assert!(trailer.arrived("AAAAAA=="));
            let data = Bytes::from(vec![7; bytes]);
            let pieces: Vec<Result<Bytes, BodyError>> =
                data.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let (stream, length) = trailer.chunked(futures::stream::iter(pieces).boxed(), bytes as u64);
            let all: Vec<Bytes> = stream.map(|piece| piece.unwrap()).collect().await;
            let all = all.concat();
            assert_eq!(all.len() as u64, length);
            assert!(all.ends_with(b"0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"));
            assert_eq!(all.iter().filter(|byte| **byte == 7).count(), bytes);
        }
    }
}
