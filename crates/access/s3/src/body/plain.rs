//! Bodies as they are.

use bytes::Bytes;
use forebay_types::hex;
use futures::StreamExt;
use hyper::body::Incoming;
use ring::digest::{Context, SHA256};

use super::{BodyError, Coming, Fault, Pieces};
use crate::dialect::{S3Error, S3Result};

/// A body as it is, of `bytes` bytes; its last piece comes only when the hash is right.
pub(super) fn pieces(incoming: Incoming, bytes: u64, sha256: Option<String>, fault: Fault) -> S3Result<Pieces> {
    let hash = sha256.map(|wanted| (Context::new(&SHA256), wanted));
    if bytes == 0 {
        if let Some((context, wanted)) = hash
            && hex(context.finish().as_ref()) != wanted
        {
            return Err(S3Error::content_sha256_mismatch());
        }
        return Ok(futures::stream::empty().boxed());
    }
    let state = Plain { coming: Coming::new(incoming, fault.clone()), left: bytes, hash, fault };
    Ok(futures::stream::unfold(Some(state), |state| async move {
        let mut state = state?;
        match state.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(state))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed())
}

struct Plain {
    coming: Coming,
    left: u64,
    hash: Option<(Context, String)>,
    fault: Fault,
}

impl Plain {
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(piece) = self.coming.next().await? else { return Err(self.fault.set(S3Error::incomplete_body())) };
        self.left = self.left.checked_sub(piece.len() as u64).ok_or_else(|| self.fault.set(S3Error::incomplete_body()))?;
        if let Some((context, wanted)) = &mut self.hash {
            context.update(&piece);
            if self.left == 0 && hex(context.clone().finish().as_ref()) != *wanted {
                return Err(self.fault.set(S3Error::content_sha256_mismatch()));
            }
        }
        Ok(Some(piece))
    }
}
