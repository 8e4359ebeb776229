//! Turns errors of DataFusion and of stores below it into kinds that say what the caller must do, in readable words.

use std::any::Any;
use std::io;

use datafusion::error::DataFusionError;
use forebay_types::{Error, ErrorKind};

/// Sorts the engine's error by what the caller must do. What Forebay or the object store said below it decides; else
/// the engine's own kind does.
pub(crate) fn from_engine(error: DataFusionError) -> Error {
    let message = readable(&error);
    let kind = match exhausted(&error) {
        Some(_) => ErrorKind::Retry,
        None => kind_below(&error).unwrap_or_else(|| kind_of(error.find_root())),
    };
    Error::new(kind, message).with_source(error)
}

/// An error of ours on its way through the engine.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What who waits is told when the process ends, or what it waits for has panicked.
pub(crate) fn ended_early() -> Error {
    Error::internal("the work on a statement ended early: run it again")
}

/// What a panic says.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_string())
}

/// The kind of what an object store says.
pub(crate) fn kind_of_store_error(error: &object_store::Error) -> ErrorKind {
    kind_of_store(error).or_else(|| kind_below(error)).unwrap_or(ErrorKind::Retry)
}

/// The first error with a kind on the way down to the cause.
fn kind_below(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let (mut next, mut of_a_store) = (Some(error), false);
    while let Some(error) = next {
        if let Some(known) = error.downcast_ref::<Error>() {
            return Some(known.kind());
        }
        if let Some(store) = error.downcast_ref::<object_store::Error>() {
            if let Some(kind) = kind_of_store(store) {
                return Some(kind);
            }
            // A connection that breaks says the same as a file that does, TLS among it.
            of_a_store |= !matches!(store, object_store::Error::Generic { store: "read to delimited chunks", .. });
        }
        if let Some(io) = error.downcast_ref::<io::Error>()
            && !of_a_store
            && matches!(io.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof)
        {
            return Some(ErrorKind::Corrupt);
        }
        // The Parquet reader boxes its causes without naming them as sources.
        if let Some(datafusion::parquet::errors::ParquetError::External(inner)) =
            error.downcast_ref::<datafusion::parquet::errors::ParquetError>()
        {
            return kind_below(inner.as_ref());
        }
        next = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ObjectStore(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ParquetError(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ArrowError(inner, _)) => Some(inner.as_ref()),
            _ => error.source(),
        };
    }
    None
}

fn kind_of_store(error: &object_store::Error) -> Option<ErrorKind> {
    use object_store::Error as Store;
    match error {
        Store::NotFound { .. } => Some(ErrorKind::NotFound),
        Store::Precondition { .. } => Some(ErrorKind::Conflict),
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => Some(ErrorKind::Denied),
        Store::InvalidPath { .. } | Store::NotSupported { .. } | Store::NotImplemented { .. } => Some(ErrorKind::Invalid),
        _ => None,
    }
}

fn kind_of(error: &DataFusionError) -> ErrorKind {
    match error {
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::Configuration(_)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Execution(_)
        | DataFusionError::ArrowError(..) => ErrorKind::Invalid,
        DataFusionError::ParquetError(_) => ErrorKind::Corrupt,
        DataFusionError::ResourcesExhausted(_) => ErrorKind::Retry,
        _ => ErrorKind::Internal,
    }
}

/// What memory or disk was not enough for. That of the disk comes as an error of writing.
fn exhausted(error: &DataFusionError) -> Option<String> {
    if let DataFusionError::ResourcesExhausted(text) = error.find_root() {
        return Some(text.clone());
    }
    let text = error.strip_backtrace();
    let at = text.find("The used disk space during the spilling process has exceeded")?;
    // The engine's own advice names a setting that is not one here.
    Some(text[at..].split(". Please").next().unwrap_or_default().to_string())
}

/// The message without the engine's back trace and its prefixes for wrapped errors.
fn readable(error: &DataFusionError) -> String {
    if let Some(text) = exhausted(error) {
        return format!("out of memory: {text}; allow SQL more (`sql-memory`, `sql-spill`), or read less at once");
    }
    if let DataFusionError::SQL(parser, _) = error.find_root() {
        // The engine shows its parser's error as a value in Rust, not by its words.
        let said = parser.to_string();
        return format!("SQL error: {}", said.strip_prefix("sql parser error: ").unwrap_or(&said));
    }
    let text = error.strip_backtrace();
    ["Parquet error: External: ", "External error: ", "Error during planning: ", "Execution error: ", "Object Store error: "]
        .iter()
        .fold(text.as_str(), |text, prefix| text.strip_prefix(prefix).unwrap_or(text))
        .to_string()
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::ParserError;

    use super::*;

    #[test]
    fn what_can_not_be_parsed_is_told_in_words() {
        let parser = ParserError::ParserError("Expected: an SQL statement, found: selec".to_string());
        let error = from_engine(DataFusionError::SQL(Box::new(parser), None));
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, "SQL error: Expected: an SQL statement, found: selec"));
    }

    #[test]
    fn a_connection_that_breaks_is_no_damaged_file() {
        let broken = || Box::new(io::Error::from(io::ErrorKind::UnexpectedEof));
        let of = |store: &'static str| object_store::Error::Generic { store, source: broken() };
        assert_eq!(kind_of_store_error(&of("S3")), ErrorKind::Retry);
        let engine = |error| from_engine(DataFusionError::ObjectStore(Box::new(error))).kind();
        assert_ne!(engine(of("S3")), ErrorKind::Corrupt);
        assert_eq!(engine(of("read to delimited chunks")), ErrorKind::Corrupt);
        assert_eq!(from_engine(DataFusionError::IoError(*broken())).kind(), ErrorKind::Corrupt);
    }
}
