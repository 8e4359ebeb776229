//! What callers show.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use tonic::Status;
use tonic::codegen::http::HeaderMap;

/// What a caller shows: a token as a bearer token, or as the password of any user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shown(pub(crate) Arc<str>);

/// What comes with a call; `Unauthenticated` without.
pub(crate) fn shown(headers: &HeaderMap) -> Result<Shown, Status> {
    let header = headers.get("authorization").ok_or_else(nothing)?;
    let secret = header.to_str().ok().and_then(secret).filter(|secret| !secret.is_empty());
    secret.map(|secret| Shown(secret.into())).ok_or_else(|| Status::unauthenticated("this is no token"))
}

pub(crate) fn nothing() -> Status {
    Status::unauthenticated(
        "no credentials: send a token, as `forebay token add` makes them, as `authorization: Bearer TOKEN`, or as password",
    )
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
    use tonic::codegen::http;

    use super::*;

    fn with(header: &str) -> HeaderMap {
        [(http::header::AUTHORIZATION, header.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_token_is_taken_as_bearer_and_as_password() {
        for header in ["Bearer a secret: yes".to_string(), format!("Basic {}", STANDARD.encode("someone:a secret: yes"))] {
            assert_eq!(&*shown(&with(&header)).unwrap().0, "a secret: yes");
        }
        for wrong in ["Bearer", "Bearer ", "Basic !", "Digest a secret: yes", "a secret: yes"] {
            assert_eq!(shown(&with(wrong)).err().unwrap().code(), tonic::Code::Unauthenticated, "{wrong}");
        }
        assert!(shown(&HeaderMap::new()).is_err());
    }
}
