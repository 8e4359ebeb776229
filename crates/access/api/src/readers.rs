//! Who may read what a cluster says of itself.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use forebay_rights::{Need, needs};
use forebay_transport::{Admission, Credential, Deed, tell, unix_now};
use forebay_types::Error;

/// Those who may, as the ports of the process know them.
#[derive(Clone)]
pub struct Readers(Vec<Arc<Admission>>);

impl Readers {
    /// Whom one of these lets in, and who may read all mounts: what is shown names them.
    pub fn new(admissions: Vec<Arc<Admission>>) -> Self {
        Self(admissions)
    }

    /// Whether a request to `path` has a bearer token of one who may, or needs none. A refusal is written down.
    pub fn let_in(&self, headers: &HeaderMap, what: &'static str, path: &str) -> bool {
        let may = needs::http(path).is_none_or(|need| self.may(headers, &need));
        if !may {
            let refused = Error::denied("no token, or none that may read");
            tell("unknown", "", &Deed { port: "http", what, on: path.to_string() }, Some(&refused));
        }
        may
    }

    fn may(&self, headers: &HeaderMap, need: &Need) -> bool {
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        let Some((scheme, text)) = header.and_then(|header| header.split_once(' ')) else { return false };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return false;
        }
        let candidates = [Credential::token(text), Credential::owner(text)];
        candidates.iter().flatten().any(|credential| {
            let callers = self.0.iter().filter_map(|readers| readers.caller(credential).ok());
            callers.into_iter().any(|caller| caller.may(need, unix_now(), |_| None).is_ok())
        })
    }
}
