use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// Who may call: whoever shows the cluster's token, as a bearer token or as the password of any user.
#[derive(Clone)]
pub(crate) struct Auth(Option<Arc<Expected>>);

struct Expected {
    token: Arc<str>,
    /// Comparing MACs under a random key takes the same time wherever two tokens differ.
    key: hmac::Key,
}

impl Auth {
    /// Everyone may call when there is no token, which is only so on loopback.
    pub(crate) fn new(token: Option<Arc<str>>) -> forebay_types::Result<Self> {
        let expected = |token| {
            let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
            let key = key.map_err(|_| forebay_types::Error::internal("the system gives no random numbers"))?;
            Ok::<_, forebay_types::Error>(Arc::new(Expected { token, key }))
        };
        Ok(Self(token.map(expected).transpose()?))
    }

    /// What clients that logged in with a password send from then on.
    pub(crate) fn bearer(&self) -> Option<String> {
        self.0.as_ref().map(|expected| format!("Bearer {}", expected.token))
    }

    fn check(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let Some(expected) = &self.0 else { return Ok(()) };
        let header = metadata.get("authorization").ok_or_else(|| {
            Status::unauthenticated("no credentials: send the cluster's token as `authorization: Bearer TOKEN`, or as password")
        })?;
        let shown = header.to_str().ok().and_then(secret);
        let tag = hmac::sign(&expected.key, expected.token.as_bytes());
        match shown {
            Some(shown) if hmac::verify(&expected.key, shown.as_bytes(), tag.as_ref()).is_ok() => Ok(()),
            _ => Err(Status::unauthenticated("this is not the cluster's token")),
        }
    }
}

impl Interceptor for Auth {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        self.check(request.metadata())?;
        Ok(request)
    }
}

/// The token in a header: a bearer token, or the password of a user and password.
fn secret(header: &str) -> Option<String> {
    let (scheme, value) = header.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_string());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let value = value.trim();
    let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value)).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(header: &str) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", header.parse().unwrap());
        metadata
    }

    #[test]
    fn the_token_is_taken_as_bearer_and_as_password() {
        let auth = Auth::new(Some("a secret: yes".into())).unwrap();
        assert!(auth.check(&with("Bearer a secret: yes")).is_ok());
        assert!(auth.check(&with(&format!("Basic {}", STANDARD.encode("someone:a secret: yes")))).is_ok());
        for wrong in ["Bearer a secret: no", "Bearer", "Basic !", "Digest a secret: yes", "a secret: yes"] {
            assert_eq!(auth.check(&with(wrong)).unwrap_err().code(), tonic::Code::Unauthenticated, "{wrong}");
        }
        assert!(auth.check(&MetadataMap::new()).is_err());
    }

    #[test]
    fn without_a_token_everyone_may_call() {
        assert!(Auth::new(None).unwrap().check(&MetadataMap::new()).is_ok());
    }
}
