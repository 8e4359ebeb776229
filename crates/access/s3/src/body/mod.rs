//! What a client sends: taken as it comes, checked against what the request said of it before its last bytes are passed on.

mod chunked;
mod digests;
mod pace;
mod plain;
mod reencode;
mod room;

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use hyper::body::{Body, Incoming};
use parking_lot::Mutex;

use crate::auth::BodyHash;
use crate::dialect::{S3Error, S3Result};
use crate::meters::received;
use pace::{Pace, SILENCE_MAX};

pub(crate) use digests::checksum_of;
pub(crate) use reencode::Trailer;
pub(crate) use room::Room;

pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The bytes of an object, decoded. It fails before its last piece when the body isn't what was said of it.
pub(crate) type Pieces = BoxStream<'static, Result<Bytes, BodyError>>;

/// Largest object that one request may bring, as in S3.
const BYTES_MAX: u64 = 5 << 30;

/// Why a body was given up, for who answers.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<S3Error>>>);

impl Fault {
    /// The refusal, where the client is to blame.
    pub(crate) fn take(&self) -> Option<S3Error> {
        self.0.lock().take()
    }

    pub(crate) fn set(&self, error: S3Error) -> BodyError {
        let text = error.code.into();
        self.0.lock().get_or_insert(error);
        text
    }
}

/// A body that is being received.
pub(crate) struct Upload {
    pub(crate) pieces: Pieces,
    /// Bytes that will come, or it fails.
    pub(crate) bytes: u64,
    pub(crate) fault: Fault,
    /// What the client said of all of it, once that is known to be true of what came.
    pub(crate) sha256: Option<String>,
    /// Checksums that follow.
    pub(crate) trailer: Option<Trailer>,
}

impl Upload {
    /// Begins to receive. `MissingContentLength` when nothing tells how much comes.
    pub(crate) fn begin(headers: &HeaderMap, hash: BodyHash, incoming: Incoming) -> S3Result<Self> {
        let number = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let fault = Fault::default();
        let sent = number(CONTENT_LENGTH.as_str()).or_else(|| incoming.size_hint().exact());
        let bytes = match &hash {
            BodyHash::Chunked { .. } => number("x-amz-decoded-content-length"),
            _ if headers.contains_key(CONTENT_LENGTH) => sent,
            // No body at all.
            _ if incoming.is_end_stream() && !headers.contains_key(http::header::TRANSFER_ENCODING) => Some(0),
            _ => None,
        };
        let bytes = bytes.ok_or_else(S3Error::missing_length)?;
        if bytes > BYTES_MAX {
            return Err(S3Error::entity_too_large());
        }
        Ok(match hash {
            BodyHash::Unsigned => {
                let pieces = plain::pieces(incoming, bytes, None, fault.clone())?;
                Self { pieces, bytes, fault, sha256: None, trailer: None }
            }
            BodyHash::Sha256(hash) => {
                let pieces = plain::pieces(incoming, bytes, Some(hash.clone()), fault.clone())?;
                Self { pieces, bytes, fault, sha256: Some(hash), trailer: None }
            }
            BodyHash::Chunked { signing, trailer } => {
                let trailer = if trailer { Trailer::announced(headers)? } else { None };
                let pieces = chunked::pieces(incoming, bytes, signing, trailer.clone(), fault.clone());
                Self { pieces, bytes, fault, sha256: None, trailer }
            }
        })
    }

    /// All of it, when it is no more than `bytes_max`: documents, not objects.
    pub(crate) async fn collect(self, room: &Room, bytes_max: u64) -> S3Result<Bytes> {
        use futures::TryStreamExt;
        if self.bytes > bytes_max {
            return Err(S3Error::malformed_xml());
        }
        let _held = room.take(self.bytes).await?;
        let all = self.pieces.try_fold(Vec::new(), |mut all, piece| async move {
            all.extend_from_slice(&piece);
            Ok(all)
        });
        let fault = self.fault;
        all.await.map(Into::into).map_err(|_| fault.take().unwrap_or_else(S3Error::incomplete_body))
    }
}

/// Bytes that are there already, as a body that is passed on.
pub(crate) fn body_of(bytes: Bytes) -> (Pieces, u64) {
    let length = bytes.len() as u64;
    (futures::stream::once(async move { Ok(bytes) }).boxed(), length)
}

/// What comes of a client.
struct Coming {
    incoming: Incoming,
    pace: Pace,
    fault: Fault,
}

impl Coming {
    fn new(incoming: Incoming, fault: Fault) -> Self {
        Self { incoming, pace: Pace::default(), fault }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        use http_body_util::BodyExt;
        loop {
            let asked = forebay_runtime::now();
            match forebay_runtime::time::timeout(SILENCE_MAX, self.incoming.frame()).await {
                Err(_) => return Err(self.fault.set(S3Error::request_timeout())),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(self.fault.set(S3Error::incomplete_body())),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        received(data.len());
                        if !self.pace.is_kept(asked.elapsed(), data.len()) {
                            return Err(self.fault.set(S3Error::request_timeout()));
                        }
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}
