//! Forebay's errors as those of `object_store`.

use forebay_types::{Error, ErrorKind};

/// The name under which errors without a better variant come.
pub(super) const STORE: &str = "Forebay";

/// Forebay's error as `object_store` says it; the original is its source, so nothing is lost. `Conflict` becomes
/// `Precondition`, for an engine to plan again.
pub(super) fn to_store_error(path: impl Into<String>, error: Error) -> object_store::Error {
    let path = path.into();
    match error.kind() {
        ErrorKind::NotFound => object_store::Error::NotFound { path, source: error.into() },
        ErrorKind::Conflict => object_store::Error::Precondition { path, source: error.into() },
        ErrorKind::Denied => object_store::Error::PermissionDenied { path, source: error.into() },
        _ => object_store::Error::Generic { store: STORE, source: error.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_the_source_of_the_one_that_it_became() {
        for kind in [ErrorKind::Retry, ErrorKind::Conflict, ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::DataLost] {
            let error = to_store_error("m/k", Error::new(kind, "what happened"));
            let original: &Error = std::error::Error::source(&error).unwrap().downcast_ref().unwrap();
            assert_eq!((original.kind(), original.message()), (kind, "what happened"));
        }
        let conflict = to_store_error("m/k", Error::conflict("changed"));
        assert!(matches!(conflict, object_store::Error::Precondition { path, .. } if path == "m/k"));
    }
}
