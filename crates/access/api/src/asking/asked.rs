//! What stands behind the `?` of a request.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use forebay_types::{format_duration, parse_duration};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::refusal::Refusal;

pub(crate) const TIMEOUT_PATTERN: &str = "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$";
pub(crate) const PATH_PATTERN: &str = "^/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/|$)";
/// How long an answer may take where a request does not say it, and at most.
const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// The parameters of a request; 400 where one is missing, unknown, there twice or not what it has to be.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Self::of(&parts.uri)
    }
}

impl<T: DeserializeOwned> Asked<T> {
    /// Those of a URI.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Refusal> {
        let asked = serde_html_form::from_str(uri.query().unwrap_or_default());
        asked.map(Self).map_err(|error| Refusal::invalid(format!("the parameters of {}: {error}", uri.path())))
    }
}

/// `timeout=`: how long an answer may take, from the request's head to the last byte of the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timeout(Duration);

impl Timeout {
    pub(crate) fn duration(self) -> Duration {
        self.0
    }
}

impl Default for Timeout {
    fn default() -> Self {
        Self(TIMEOUT)
    }
}

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let timeout = parse_duration(text).map_err(|error| error.message().to_string())?;
        match (Duration::from_millis(1)..=TIMEOUT_MAX).contains(&timeout) {
            true => Ok(Self(timeout)),
            false => Err(format!("a timeout is from 1ms to {}, and {text} is not", format_duration(TIMEOUT_MAX))),
        }
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

/// A parameter that is read from its text.
pub(crate) fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_a_unit_and_an_end() {
        assert_eq!("250ms".parse(), Ok(Timeout(Duration::from_millis(250))));
        assert_eq!("5m".parse(), Ok(Timeout(TIMEOUT_MAX)));
        for wrong in ["", "5", "0s", "301s", "-1s", "soon"] {
            assert!(wrong.parse::<Timeout>().is_err(), "{wrong}");
        }
    }
}
