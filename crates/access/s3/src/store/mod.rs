//! The one door to stores that speak S3: what goes through it unread says who may, and as what.

mod changing;

use bytes::Bytes;
use forebay_shared_storage::{Forward, ForwardBody, Forwarded, PayloadHash, Place, Storage};
use forebay_types::{Error, Key};
use futures::TryStreamExt;
use http::{HeaderMap, Method};

use crate::body::Pieces;
use crate::context::Context;
use crate::dialect::{S3Error, S3Result};
use crate::request::Reading;
use crate::rights::{MayMake, MayRead, MayWrite};

pub(crate) use changing::Changing;

/// Longest document that is read of an answer.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// What is sent, beside the method.
pub(crate) struct Sending {
    /// None for the bucket itself.
    pub(crate) key: Option<Key>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) hash: PayloadHash,
    pub(crate) body: Option<(Pieces, u64)>,
}

impl Sending {
    fn by(self, method: Method) -> Forward {
        let Self { key, query, headers, hash, body } = self;
        Forward { method, key, query, headers, hash, body }
    }
}

/// Where a mount is at its store.
pub(crate) fn place(storage: &Storage) -> S3Result<Place> {
    storage.s3().ok_or_else(|| S3Error::not_implemented("this mount's shared storage does not speak S3"))
}

/// Asks the store of a mount for something.
pub(crate) async fn read(context: &Context, may: &MayRead, reading: Reading, sending: Sending) -> S3Result<Forwarded> {
    let storage = context.client.storage(may.mount()).await?;
    pass(&storage, sending.by(reading.method())).await
}

/// Has the store of a mount change something.
pub(crate) async fn write(context: &Context, may: &MayWrite, method: Method, sending: Sending) -> S3Result<Forwarded> {
    let storage = context.client.storage(may.mount()).await?;
    pass(&storage, sending.by(method)).await
}

/// Makes, looks for or removes a bucket of a store.
pub(crate) async fn make(_may: &MayMake, storage: &Storage, method: Method, sending: Sending) -> S3Result<Forwarded> {
    pass(storage, sending.by(method)).await
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
async fn pass(storage: &Storage, forward: Forward) -> S3Result<Forwarded> {
    Ok(storage.forward(forward).await?)
}

/// All of an answer that is a document.
pub(crate) async fn collect(stream: ForwardBody) -> S3Result<Bytes> {
    let all = stream.try_fold(Vec::new(), |mut all, piece| async move {
        all.extend_from_slice(&piece);
        if all.len() > DOCUMENT_BYTES_MAX {
            return Err(Error::internal("shared storage answers with a document that does not end"));
        }
        Ok(all)
    });
    Ok(all.await?.into())
}
