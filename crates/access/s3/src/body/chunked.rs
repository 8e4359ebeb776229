//! `aws-chunked`: `SIZE;chunk-signature=..\r\n DATA \r\n`, an empty chunk at the end, then headers with checksums.

use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;
use hyper::body::Incoming;
use ring::digest::{Context, SHA256};

use super::reencode::Trailer;
use super::{BodyError, Coming, Fault, Pieces};
use crate::auth::ChunkSigning;
use crate::dialect::{S3Error, S3Result};

/// Longest line between chunks.
const LINE_BYTES_MAX: usize = 4096;

/// The bytes within the chunks, of which there must be `bytes`. Each piece is kept back until the next one is there, so
/// that the last one comes only when all signatures are right.
pub(super) fn pieces(
    incoming: Incoming,
    bytes: u64,
    signing: Option<Box<ChunkSigning>>,
    trailer: Option<Trailer>,
    fault: Fault,
) -> Pieces {
    let decoder = Decoder {
        coming: Coming::new(incoming, fault.clone()),
        buffer: BytesMut::new(),
        state: State::Size,
        left: bytes,
        signing,
        hash: Context::new(&SHA256),
        signature: String::new(),
        trailer,
        fault,
    };
    futures::stream::unfold(Some((decoder, None)), |state| async move {
        let (mut decoder, mut held): (Decoder, Option<Bytes>) = state?;
        loop {
            match decoder.next().await {
                Ok(Some(piece)) => match held.replace(piece) {
                    Some(before) => return Some((Ok(before), Some((decoder, held)))),
                    None => continue,
                },
                Ok(None) => return held.map(|last| (Ok(last), None)),
                Err(error) => return Some((Err(error), None)),
            }
        }
    })
    .boxed()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Ended,
}

struct Decoder {
    coming: Coming,
    buffer: BytesMut,
    state: State,
    left: u64,
    signing: Option<Box<ChunkSigning>>,
    hash: Context,
    signature: String,
    trailer: Option<Trailer>,
    fault: Fault,
}

impl Decoder {
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            match self.state {
                State::Size => {
                    let line = self.line().await?;
                    let size = self.size(&line).map_err(|error| self.fault.set(error))?;
                    if size > self.left {
                        return Err(self.fault.set(S3Error::incomplete_body()));
                    }
                    if size == 0 {
                        if self.left > 0 {
                            return Err(self.fault.set(S3Error::incomplete_body()));
                        }
                        self.chunk_ends()?;
                        self.ends().await?;
                        self.state = State::Ended;
                        return Ok(None);
                    }
                    self.state = State::Data(size);
                }
                State::Data(size) => {
                    while self.buffer.is_empty() {
                        self.more().await?;
                    }
                    let take = size.min(self.buffer.len() as u64);
                    let piece = self.buffer.split_to(take as usize).freeze();
                    if self.signing.is_some() {
                        self.hash.update(&piece);
                    }
                    assert!(size <= self.left, "{size} bytes of a chunk are among the {} that are to come", self.left);
                    self.left -= take;
                    self.state = if take == size { State::DataEnd } else { State::Data(size - take) };
                    return Ok(Some(piece));
                }
                State::DataEnd => {
                    while self.buffer.len() < 2 {
                        self.more().await?;
                    }
                    if &self.buffer[..2] != b"\r\n" {
                        return Err(self.fault.set(S3Error::incomplete_body()));
                    }
                    self.buffer.advance(2);
                    self.chunk_ends()?;
                    self.state = State::Size;
                }
                State::Ended => return Ok(None),
            }
        }
    }

    /// Reads `1f4;chunk-signature=..`.
    fn size(&mut self, line: &[u8]) -> S3Result<u64> {
        let bad = || S3Error::invalid_request("The chunk header is malformed.");
        let line = std::str::from_utf8(line).map_err(|_| bad())?;
        let (size, extension) = line.split_once(';').unwrap_or((line, ""));
        let size = size.trim();
        if size.is_empty() || size.len() > 16 || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad());
        }
        if self.signing.is_some() {
            let signature = extension.trim().strip_prefix("chunk-signature=").ok_or_else(S3Error::signature_mismatch)?;
            self.signature = signature.trim().into();
        }
        u64::from_str_radix(size, 16).map_err(|_| bad())
    }

    /// All bytes of a chunk are here: is it what was signed?
    fn chunk_ends(&mut self) -> Result<(), BodyError> {
        if let Some(signing) = &mut self.signing {
            let hash = std::mem::replace(&mut self.hash, Context::new(&SHA256)).finish();
            signing.check_chunk(hash.as_ref(), &self.signature).map_err(|error| self.fault.set(error))?;
        }
        Ok(())
    }

    /// What follows the last chunk.
    async fn ends(&mut self) -> Result<(), BodyError> {
        let (mut canonical, mut signature, mut found) = (String::new(), None, false);
        loop {
            let line = match self.line_or_end().await? {
                Some(line) if !line.is_empty() => line,
                _ => break,
            };
            let bad = || S3Error::invalid_request("The trailing headers are malformed.");
            let line = std::str::from_utf8(&line).map_err(|_| self.fault.set(bad()))?;
            let (name, value) = line.split_once(':').ok_or_else(|| self.fault.set(bad()))?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            if name == "x-amz-trailer-signature" {
                signature = Some(value.to_string());
                continue;
            }
            canonical.push_str(&format!("{name}:{value}\n"));
            if let Some(trailer) = &self.trailer
                && trailer.name() == name
            {
                found = trailer.arrived(value);
                if !found {
                    let message = format!("Value for {name} trailing header is invalid.");
                    return Err(self.fault.set(S3Error::invalid_request(message)));
                }
            }
        }
        if let Some(trailer) = self.trailer.as_ref().filter(|_| !found) {
            let message = format!("The trailing header {} was announced and did not come.", trailer.name());
            return Err(self.fault.set(S3Error::new(http::StatusCode::BAD_REQUEST, "MalformedTrailerError", message)));
        }
        if let Some(signing) = self.signing.as_mut().filter(|_| self.trailer.is_some()) {
            let signature = signature.ok_or_else(|| self.fault.set(S3Error::signature_mismatch()))?;
            signing.check_trailer(canonical.as_bytes(), &signature).map_err(|error| self.fault.set(error))?;
        }
        // Nothing may follow.
        if !self.buffer.is_empty() || self.coming.next().await?.is_some_and(|more| !more.is_empty()) {
            return Err(self.fault.set(S3Error::incomplete_body()));
        }
        Ok(())
    }

    async fn line(&mut self) -> Result<Bytes, BodyError> {
        if let Some(line) = self.line_or_end().await? { Ok(line) } else { Err(self.fault.set(S3Error::incomplete_body())) }
    }

    /// The next line without its end; none when the body ends before one begins.
    async fn line_or_end(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut seen = 0;
        loop {
            if let Some(at) = self.buffer[seen..].windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.split_to(seen + at).freeze();
                self.buffer.advance(2);
                return Ok(Some(line));
            }
            seen = self.buffer.len().saturating_sub(1);
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(self.fault.set(S3Error::invalid_request("The chunk header is malformed.")));
            }
            match self.coming.next().await? {
                Some(more) => self.buffer.extend_from_slice(&more),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(self.fault.set(S3Error::incomplete_body())),
            }
        }
    }

    async fn more(&mut self) -> Result<(), BodyError> {
        match self.coming.next().await? {
            Some(more) => {
                self.buffer.extend_from_slice(&more);
                Ok(())
            }
            None => Err(self.fault.set(S3Error::incomplete_body())),
        }
    }
}
