//! A request to S3 is addressed, signed, sent, counted and tried again, and its refusal sorted.

use std::sync::Arc;

use bytes::Bytes;
use forebay_types::{Error, Result};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;
use ring::digest::{Context, SHA256};

use super::call::Call;
use super::refusal::refusal;
use super::{Inner, S3};
use crate::counters::{count, count_by};
use crate::http::{Payload, SendError};
use crate::request::Class;
use crate::retry::{Answered, Failure, Tries};

/// Most bytes of an answer that is text: a page of 1,000 keys of 1 KiB, encoded, fits twice.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Said of credentials that have run out by the clock of who handed them out, whatever this machine's says.
const RUN_OUT: [&str; 2] = ["ExpiredToken", "TokenRefreshRequired"];
/// Payloads from this size are hashed aside, so that others aren't held up.
const HASH_ASIDE_BYTES: u64 = 256 << 10;

impl S3 {
    /// Sends a request until it succeeds or is refused for good.
    pub(super) async fn call(&self, call: &Call, class: Class) -> Result<Response<Incoming>> {
        let mut tries = Tries::new(self.common.policy, &self.common.tally);
        loop {
            match self.attempt(call, class).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }

    /// As [`Self::call`], for answers that are text: it arrives whole.
    pub(super) async fn call_text(&self, call: &Call) -> Result<Vec<u8>> {
        let mut tries = Tries::new(self.common.policy, &self.common.tally);
        loop {
            match self.attempt_text(call).await {
                Ok((text, _)) => return Ok(text),
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }

    /// One try of [`Self::call_text`]; the headers come along.
    pub(super) async fn attempt_text(&self, call: &Call) -> Result<(Vec<u8>, HeaderMap), Failure> {
        let answer = self.attempt(call, Class::Demand).await?;
        let headers = answer.headers().clone();
        let text = self.common.http.collect(answer, TEXT_BYTES_MAX).await;
        Ok((text.map_err(|error| self.unanswered(call, error))?, headers))
    }

    /// One try: any answer but a success is a failure, sorted by what it says.
    pub(super) async fn attempt(&self, call: &Call, class: Class) -> Result<Response<Incoming>, Failure> {
        let (request, signed) = self.sign(call).await?;
        count(call.kind.counter(&self.common.tally));
        count_by(&self.common.tally.bytes_out, call.payload_bytes());
        let answer = self.common.http.send(request, class).await.map_err(|error| self.unanswered(call, error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (status, headers) = (answer.status(), answer.headers().clone());
        // What the server says beside the status is worth having, but not worth failing for.
        let text = match call.method == Method::HEAD || status == StatusCode::NOT_MODIFIED {
            true => Vec::new(),
            false => self.common.http.collect(answer, 64 << 10).await.unwrap_or_default(),
        };
        let failure = refusal(self, call, status, &headers, &text);
        let has_run_out = failure.answered.as_ref().is_some_and(|said| may_have_run_out(&call.method, said));
        let again = has_run_out && signed.is_some_and(|signed| self.credentials.ran_out(&signed));
        Err(Failure { transient: failure.transient || again, ..failure })
    }

    /// The request, and what it is signed with.
    async fn sign(&self, call: &Call) -> Result<(Request<Payload>, Option<Arc<AwsCredential>>)> {
        let uri = self.address.uri(call.key.as_deref(), &call.query)?;
        let mut headers = call.headers.clone();
        if call.payload_bytes() > 0 && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        }
        let signed = self.credentials.get().await.map_err(|error| error.context(self.path(&call.about)))?;
        if let Some(credential) = &signed {
            let mut unsigned = http::Request::new(HttpRequestBody::empty());
            *unsigned.method_mut() = call.method.clone();
            *unsigned.uri_mut() = uri.clone();
            *unsigned.headers_mut() = headers;
            // TLS protects a payload on its way; without it the signature must cover it.
            let sign_payload = !self.address.is_https();
            let hash = if sign_payload { Some(hash(&call.payload).await?) } else { None };
            AwsAuthorizer::new(credential, "s3", &self.region)
                .with_sign_payload(sign_payload)
                .authorize(&mut unsigned, hash.as_deref());
            headers = std::mem::take(unsigned.headers_mut());
            if let Some(value) = headers.get_mut(AUTHORIZATION) {
                value.set_sensitive(true);
            }
        }
        // The client writes it, as the URI says.
        headers.remove(HOST);
        let mut request = Request::new(Payload::from(call.payload.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok((request, signed))
    }

    /// The failure of a request that got no answer.
    pub(super) fn unanswered(&self, call: &Call, error: SendError) -> Failure {
        let remedy = remedy(&error);
        let path = self.path(&call.about);
        Failure::transient(Error::retry(format!("{path}: {} gave no answer: {error}{remedy}", self.address.endpoint)))
    }
}

impl Inner {
    pub(super) fn signer(&self) -> &str {
        &self.credentials.origin
    }
}

/// Whether a refusal is of credentials that have run out, or may be: of a HEAD, of which there is no word, it is the one that says 400.
fn may_have_run_out(method: &Method, said: &Answered) -> bool {
    RUN_OUT.contains(&said.code.as_str()) || (*method == Method::HEAD && said.status == 400 && said.code.is_empty())
}

/// What may be wrong where there was no answer.
fn remedy(error: &SendError) -> &'static str {
    match error {
        SendError::Refused => ": nothing listens there; is the endpoint right and the server up?",
        SendError::Timeout(_) => ": is it reachable from here?",
        SendError::Broken(words) if words.contains("InvalidContentType") => {
            ": it speaks no TLS there; is it http:// and not https://?"
        }
        SendError::Broken(words) if words.contains("dns error") => ": is the host's name right?",
        SendError::Broken(_) => "",
    }
}

async fn hash(payload: &[Bytes]) -> Result<Vec<u8>> {
    let digest = |payload: &[Bytes]| {
        let mut context = Context::new(&SHA256);
        payload.iter().for_each(|piece| context.update(piece));
        context.finish().as_ref().to_vec()
    };
    if payload.iter().map(|piece| piece.len() as u64).sum::<u64>() < HASH_ASIDE_BYTES {
        return Ok(digest(payload));
    }
    let payload = payload.to_vec();
    let hashed = forebay_runtime::spawn_blocking(move || digest(&payload)).await;
    hashed.map_err(|error| Error::internal("hashing a payload was broken off").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_does_not_say_that_credentials_have_run_out_and_may_mean_it() {
        let may = |method: Method, status, code: &str| may_have_run_out(&method, &Answered { status, code: code.into() });
        assert!(may(Method::GET, 400, "ExpiredToken") && may(Method::PUT, 403, "TokenRefreshRequired"));
        assert!(may(Method::HEAD, 400, ""));
        assert!(!may(Method::HEAD, 403, "") && !may(Method::HEAD, 404, "") && !may(Method::GET, 400, ""));
        assert!(!may(Method::GET, 403, "AccessDenied"));
    }

    #[test]
    fn what_got_no_answer_says_what_may_be_wrong() {
        let broken = |words: &str| remedy(&SendError::Broken(words.to_string()));
        assert!(broken("client error (Connect): received corrupt message of type InvalidContentType").contains("http://"));
        assert!(broken("client error (Connect): dns error: failed to lookup address information").contains("name"));
        assert_eq!(broken("connection closed before message completed"), "");
        assert!(remedy(&SendError::Refused).contains("endpoint"));
    }
}
