//! Errors of `object_store` by what the caller must do, with no signed URL in their words.

use std::fmt;

use forebay_types::Error;

use super::Inner;

/// Whose store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Gcs,
    Azure,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gcs => "Google Cloud Storage",
            Self::Azure => "Azure Blob Storage",
        })
    }
}

impl Service {
    /// Where credentials are looked for.
    fn credentials(self) -> &'static str {
        match self {
            Self::Gcs => "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT (a file), or this machine's service account",
            Self::Azure => {
                "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, or AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET"
            }
        }
    }

    /// The error of a mount that can't even be set up.
    pub(super) fn unusable(self, error: &object_store::Error) -> Error {
        let words = without_queries(&error.to_string());
        Error::invalid(format!("{self} can't be used: {words}; credentials are looked for in {}", self.credentials()))
    }
}

/// Sorts an error of `object_store` by what the caller must do.
pub(super) fn refusal(objects: &Inner, key: &str, error: object_store::Error) -> Error {
    use object_store::Error as Store;
    let (path, service) = (objects.path(key), objects.service);
    let words = without_queries(&error.to_string());
    match error {
        Store::NotFound { .. } => Error::not_found(format!("{path}: there is no such object")),
        Store::Precondition { .. } | Store::NotModified { .. } => {
            Error::conflict(format!("{path}: the object has another version now"))
        }
        Store::AlreadyExists { .. } => Error::conflict(format!("{path}: it is there already")),
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => Error::denied(format!(
            "{path}: {service} denies access: check the credentials, which are looked for in {} ({words})",
            service.credentials()
        )),
        Store::NotSupported { .. } | Store::NotImplemented { .. } | Store::InvalidPath { .. } => {
            Error::invalid(format!("{path}: {service} can't do that: {words}"))
        }
        // What may be tried again `object_store` has tried.
        _ => Error::retry(format!("{path}: {service} did not answer as it should: try later ({words})")).in_vain(),
    }
}

/// The words of an error without the queries of the URLs in them, which may be signed.
fn without_queries(words: &str) -> String {
    let mut kept = String::with_capacity(words.len());
    let mut in_query = false;
    for character in words.chars() {
        match character {
            '?' => in_query = true,
            c if c.is_whitespace() || matches!(c, '"' | '\'' | ')' | ',') => in_query = false,
            _ => {}
        }
        if !in_query {
            kept.push(character);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_queries_are_not_shown() {
        let words = "error sending \"https://a.blob/c/k?sv=1&sig=SECRET\": 500 (https://x/?sig=SECRET) at last";
        assert_eq!(without_queries(words), "error sending \"https://a.blob/c/k\": 500 (https://x/) at last");
    }
}
