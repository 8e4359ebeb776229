//! Answers that say why there is none.

use axum::Json;
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use forebay_types::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;

/// Seconds after which it makes sense to ask again, where nobody said more.
const RETRY_AFTER_SECS: u64 = 1;

/// The kinds of errors, as they are written.
const KINDS: [&str; 9] = ["retry", "conflict", "invalid", "not found", "denied", "corrupt", "data lost", "closed", "internal"];

/// What is wrong, in the place of an answer. A line of a batch that could not be answered looks the same.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Wrong {
    /// What the caller must do, in a word.
    #[schemars(extend("enum" = KINDS))]
    pub(crate) error: &'static str,
    /// What failed, on which path, and the remedy.
    pub(crate) message: String,
}

impl From<&Error> for Wrong {
    fn from(error: &Error) -> Self {
        Self { error: error.kind().as_str(), message: error.message().to_string() }
    }
}

/// A request that is not answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Error,
}

impl Refusal {
    /// With a status that the error's kind alone does not say.
    pub(crate) fn new(status: StatusCode, error: Error) -> Self {
        assert!(status.is_client_error() || status.is_server_error(), "{status} refuses nothing");
        Self { status, error }
    }

    /// Nobody is known who shows this, or nothing was shown.
    pub(crate) fn unknown() -> Self {
        let how = "send a token that may read, as `authorization: Bearer TOKEN`: make one with `forebay token add NAME --read`";
        Self::new(StatusCode::UNAUTHORIZED, Error::denied(how))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error::invalid(message).into()
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn error(&self) -> &Error {
        &self.error
    }
}

/// By what the caller must do.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Denied => StatusCode::FORBIDDEN,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Retry | ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Corrupt | ErrorKind::DataLost | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, error }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Wrong::from(&self.error))).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, "Bearer".parse().expect("a header"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let told = self.error.retry_after().map_or(0, |after| after.as_secs_f64().ceil() as u64);
                headers.insert(RETRY_AFTER, told.max(RETRY_AFTER_SECS).into());
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn when_to_ask_again_is_told_in_whole_seconds() {
        let after = |error: Error| Refusal::from(error).into_response().headers()[RETRY_AFTER].to_str().unwrap().to_owned();
        assert_eq!(after(Error::retry("x")), "1");
        assert_eq!(after(Error::retry("x").after(Duration::from_millis(300))), "1");
        assert_eq!(after(Error::retry("x").after(Duration::from_millis(2300))), "3");
    }

    #[test]
    fn each_kind_has_its_name_and_its_status() {
        use ErrorKind::*;
        let kinds = [Retry, Conflict, Invalid, NotFound, Denied, Corrupt, DataLost, Closed, Internal];
        assert_eq!(kinds.map(ErrorKind::as_str), KINDS);
        let statuses = kinds.map(|kind| Refusal::from(Error::new(kind, "x")).status().as_u16());
        assert_eq!(statuses, [503, 409, 400, 404, 403, 500, 500, 503, 500]);
    }
}
