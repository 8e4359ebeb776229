//! A part in its temporary file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use ring::digest::{Context, SHA256};
use tokio::task::JoinHandle;

use super::disk::Taken;
use crate::answer::now_ms;
use crate::body::{Fault, Pieces};
use crate::dialect::{S3Error, S3Result};

/// Bytes that are read from a part at once.
const READ_BYTES: usize = 1 << 20;
/// What is held of a part that comes is written when it is so many bytes, or so many pieces.
const HELD_BYTES: usize = 64 << 10;
const HELD_PIECES: usize = 64;

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
        let failed = |error: io::Error| {
            tracing::warn!(%error, "a part can't be kept");
            S3Error::slow_down()
        };
        let mut writing = forebay_runtime::spawn_blocking(tempfile::tempfile);
        let (mut hash, mut held, mut held_bytes) = (Context::new(&SHA256), Vec::new(), 0);
        while let Some(piece) = pieces.try_next().await.map_err(|_| S3Error::incomplete_body())? {
            hash.update(&piece);
            held_bytes += piece.len();
            held.push(piece);
            if held_bytes >= HELD_BYTES || held.len() >= HELD_PIECES {
                // More comes meanwhile.
                let file = done(writing).await.map_err(failed)?;
                writing = write(file, std::mem::take(&mut held));
                held_bytes = 0;
            }
        }
        let file = done(writing).await.map_err(failed)?;
        let file = done(write(file, held)).await.map_err(failed)?;
        let hash = forebay_types::hex(&hash.finish().as_ref()[..16]);
        let kept = Arc::new(Kept { file, _room: room });
        // No MD5, and not to be taken for one.
        Ok(Self { kept, bytes, etag: format!("\"{hash}-p\""), modified_ms: now_ms() })
    }
}

/// Begins to write what has come behind what came before it.
fn write(mut file: File, pieces: Vec<Bytes>) -> JoinHandle<io::Result<File>> {
    forebay_runtime::spawn_blocking(move || -> io::Result<File> {
        pieces.iter().try_for_each(|piece| file.write_all(piece))?;
        Ok(file)
    })
}

/// What was done with a file, once it is.
async fn done<T>(work: JoinHandle<io::Result<T>>) -> io::Result<T> {
    work.await.unwrap_or_else(|error| Err(error.into()))
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
            let read = move || -> io::Result<Bytes> {
                let mut piece = vec![0; (end - start) as usize];
                kept.file.read_exact_at(&mut piece, start)?;
                Ok(piece.into())
            };
            async move {
                let read = done(forebay_runtime::spawn_blocking(read)).await;
                read.map_err(|error| {
                    tracing::warn!(%error, "a part can't be read");
                    fault.set(S3Error::internal())
                })
            }
        })
        .boxed()
}
