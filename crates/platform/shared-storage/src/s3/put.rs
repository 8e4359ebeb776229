//! Writes to S3 under a condition, and whether a conflict is with another's write or with an own one whose answer was lost.

use bytes::Bytes;
use forebay_types::{Error, ErrorKind, Key, ObjectInfo, Result};
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, Method};

use super::S3;
use super::answer::{info_of, is_etag};
use super::call::{Call, Kind};
use crate::backend::Backend;
use crate::request::{Class, PutCondition};
use crate::retry::Tries;

impl S3 {
    pub(super) async fn put_object(&self, key: &Key, payload: Vec<Bytes>, condition: &PutCondition) -> Result<ObjectInfo> {
        let mut call = Call::object(Method::PUT, Kind::Put, self.bucket.full_key(key.as_str()), key.as_str());
        call.payload = payload;
        self.condition(&mut call, condition)?;
        let mut tries = Tries::new(self.common.policy, &self.common.tally);
        let answer = loop {
            match self.attempt(&call, Class::Demand).await {
                Ok(answer) => break answer,
                Err(failure) => {
                    let error = tries_error(&failure.error, tries.is_again());
                    tries.pause(failure).await.map_err(|last| error.unwrap_or(last))?;
                }
            }
        };
        self.written(key, answer.headers(), call.payload_bytes()).await
    }

    /// What a write made, from the answer where it says enough.
    pub(super) async fn written(&self, key: &Key, headers: &HeaderMap, size: u64) -> Result<ObjectInfo> {
        match headers.contains_key(ETAG) {
            true => info_of(self, key, headers, Some(size)),
            // It is written, whatever is said here.
            false => self.head(key).await.map(|(info, _)| info).map_err(Error::in_vain),
        }
    }

    /// Puts a write's condition on its request. `Invalid` for a version that the store did not name.
    pub(super) fn condition(&self, call: &mut Call, condition: &PutCondition) -> Result<()> {
        match condition {
            PutCondition::Any => Ok(()),
            PutCondition::Absent => call.header(IF_NONE_MATCH, "*"),
            PutCondition::Version(tag) if is_etag(tag) => call.header(IF_MATCH, tag.as_str()),
            PutCondition::Version(tag) => Err(Error::invalid(format!(
                "{}: the store gives no ETags, so a write can't be made to depend on version {tag}",
                self.path(&call.about)
            ))),
        }
    }
}

/// A conflict on a later try may be with what an earlier one wrote without its answer arriving.
fn tries_error(error: &Error, is_again: bool) -> Option<Error> {
    let doubtful = is_again && error.kind() == ErrorKind::Conflict;
    let may_be_own = "an earlier try got no answer and may have written it: look before writing again";
    doubtful.then(|| error.clone().context(may_be_own).in_vain())
}
