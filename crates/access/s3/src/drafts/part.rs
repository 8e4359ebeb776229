//! A part in its temporary file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use ring::digest::{Context, SHA256};
use tokio::io::AsyncWriteExt;

use super::disk::Taken;
use crate::answer::now_ms;
use crate::body::{Fault, Pieces};
use crate::dialect::{S3Error, S3Result};

/// Bytes that are read from a part at once.
const READ_BYTES: usize = 1 << 20;

/// A part that has come as a whole.
#[derive(Clone)]
pub(crate) struct Part {
    kept: Arc<Kept>,
    pub(crate) bytes: u64,
    pub(crate) etag: String,
    pub(crate) modified_ms: i64,
}

/// The file, which has no name and is gone when nobody reads it, then its room for others.
struct Kept {
    file: File,
    _room: Taken,
}

impl Part {
    /// Takes in `bytes` that come, into room for as many.
    pub(crate) async fn receive(mut pieces: Pieces, bytes: u64, room: Taken) -> S3Result<Self> {
        let failed = |error: std::io::Error| {
            tracing::warn!(%error, "a part can't be kept");
            S3Error::slow_down()
        };
        let file = tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(|_| S3Error::internal())?.map_err(failed)?;
        let mut file = tokio::fs::File::from_std(file);
        let mut hash = Context::new(&SHA256);
        while let Some(piece) = pieces.try_next().await.map_err(|_| S3Error::incomplete_body())? {
            hash.update(&piece);
            file.write_all(&piece).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        let hash = forebay_types::hex(&hash.finish().as_ref()[..16]);
        let kept = Arc::new(Kept { file: file.into_std().await, _room: room });
        // No MD5, and not to be taken for one.
        Ok(Self { kept, bytes, etag: format!("\"{hash}-p\""), modified_ms: now_ms() })
    }
}

/// The parts one after the other. Who else reads them does not move what is read here.
pub(crate) fn join(parts: Vec<Part>, fault: Fault) -> Pieces {
    let places = parts.into_iter().flat_map(|part| {
        let starts = (0..part.bytes).step_by(READ_BYTES);
        starts.map(move |start| (Arc::clone(&part.kept), start, part.bytes.min(start + READ_BYTES as u64)))
    });
    futures::stream::iter(places)
        .then(move |(kept, start, end)| {
            let fault = fault.clone();
            let read = move || -> std::io::Result<Bytes> {
                let mut piece = vec![0; (end - start) as usize];
                kept.file.read_exact_at(&mut piece, start)?;
                Ok(piece.into())
            };
            async move {
                let read = tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.into()));
                read.map_err(|error| {
                    tracing::warn!(%error, "a part can't be read");
                    fault.set(S3Error::internal())
                })
            }
        })
        .boxed()
}
