//! Errors of the two kinds as one another.

use std::error::Error as StdError;

use forebay_types::{Error, ErrorKind};

/// The name under which errors without a better variant come.
pub(super) const STORE: &str = "Forebay";

/// Forebay's error as `object_store` says it; the original is its source, so nothing is lost. `Conflict` becomes
/// `Precondition`, for an engine to plan again.
pub fn to_store_error(path: impl Into<String>, error: Error) -> object_store::Error {
    let path = path.into();
    match error.kind() {
        ErrorKind::NotFound => object_store::Error::NotFound { path, source: error.into() },
        ErrorKind::Conflict => object_store::Error::Precondition { path, source: error.into() },
        ErrorKind::Denied => object_store::Error::PermissionDenied { path, source: error.into() },
        _ => object_store::Error::Generic { store: STORE, source: error.into() },
    }
}

/// The error of a store as Forebay's: the one that [`to_store_error`] was given, wherever it stands among the sources,
/// else one of the fitting kind.
pub fn from_store_error(error: object_store::Error) -> Error {
    use object_store::Error as Store;
    let mut next: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(error) = next {
        if let Some(known) = error.downcast_ref::<Error>() {
            return known.clone();
        }
        next = error.source();
    }
    let kind = match &error {
        Store::NotFound { .. } => ErrorKind::NotFound,
        Store::Precondition { .. } | Store::AlreadyExists { .. } | Store::NotModified { .. } => ErrorKind::Conflict,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => ErrorKind::Denied,
        Store::InvalidPath { .. } | Store::NotSupported { .. } | Store::NotImplemented { .. } => ErrorKind::Invalid,
        Store::UnknownConfigurationKey { .. } => ErrorKind::Invalid,
        Store::Generic { .. } => ErrorKind::Retry,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string()).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_back_as_they_went() {
        for kind in [ErrorKind::Retry, ErrorKind::Conflict, ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::DataLost] {
            let error = from_store_error(to_store_error("m/k", Error::new(kind, "what happened")));
            assert_eq!((error.kind(), error.message()), (kind, "what happened"));
        }
        let conflict = to_store_error("m/k", Error::conflict("changed"));
        assert!(matches!(conflict, object_store::Error::Precondition { path, .. } if path == "m/k"));
    }
}
