//! Turns errors of DataFusion and of stores below it into kinds that say what the caller must do, in readable words.

use std::any::Any;
use std::collections::HashSet;
use std::io;

use datafusion::arrow::datatypes::Fields;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
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

/// `Invalid` where two columns have one name: who reads rows by names gets one of them.
pub(crate) fn check_distinct(fields: &Fields) -> Result<(), Error> {
    match twice(fields.iter().map(|field| field.name().as_str())) {
        None => Ok(()),
        Some(twice) => Err(Error::invalid(format!(
            "column `{twice}` is there twice, and what is written has one of a name; give each column a name of its own (`as`)"
        ))),
    }
}

/// The first name that two columns have.
pub(crate) fn twice<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
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

/// What the engine says above the reason why a regular expression is none.
const UNREAD_REGEX: &str = "Invalid regex";

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
        // What is wrong with a regular expression the optimizer says in a box of a type that is not known here.
        if let Some(DataFusionError::Context(step, _)) = error.downcast_ref::<DataFusionError>()
            && step == UNREAD_REGEX
        {
            return Some(ErrorKind::Invalid);
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

/// What to write instead of a `?`.
pub(crate) const PARAMETERS: &str = "a parameter is written $1, $2 or $name, not ?";

/// The message without the engine's back trace and its prefixes for wrapped errors.
fn readable(error: &DataFusionError) -> String {
    if let Some(text) = exhausted(error) {
        return format!("out of memory: {text}; allow SQL more (`sql-memory`, `sql-spill`), or read less at once");
    }
    let text = error.strip_backtrace();
    // What the engine makes of a `?`.
    if text.ends_with("Failed to parse placeholder id: cannot parse integer from empty string") {
        return PARAMETERS.to_string();
    }
    let text = match error.find_root() {
        DataFusionError::SQL(unread, _) => return format!("the statement can't be read: {}", said_by_parser(unread)),
        // A defect is told with all that is known of it.
        DataFusionError::Internal(_) => text.as_str(),
        _ => without_steps(&text),
    };
    // What a store of ours says is told by itself.
    let text = text.split_once("Generic forebay error: ").map_or(text, |(_, said)| said);
    let prefixes =
        ["Parquet error: External: ", "External error: ", "Error during planning: ", "Execution error: ", "Object Store error: "];
    let text = prefixes.iter().fold(text, |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    if text.contains("represented as nanoseconds have to be between") {
        return format!("{text}: a timestamp is nanoseconds, cast('9999-12-31' as timestamp(6)) microseconds");
    }
    match MARKED_JSON.iter().any(|marked| text.contains(marked)) {
        true => {
            format!(
                "{text} (if the file begins with a byte-order mark, which some editors put before all else, write it without one)"
            )
        }
        false => text.to_string(),
    }
}

/// What the engine says of JSON that begins with a byte-order mark, and of a line that is no JSON at all.
const MARKED_JSON: [&str; 2] =
    ["Json error: Not valid JSON: expected value at line 1 column 1", "Json error: Encountered unexpected '\u{ef}'"];

/// What the engine says of JSON whose fields are of several types: where it looks for these, and where it reads values of one that was found or
/// declared.
const MIXED_JSON: [&str; 7] = [
    "Incompatible type found during schema inference",
    "Expected scalar or scalar array JSON type",
    "Expected array json type",
    "Expected object json type",
    "Expected scalar value for scalar array",
    "Got non array element in nested array",
    "whilst decoding field '",
];

/// What to do about such a field, if that is what an error is about.
pub(crate) fn remedy_of_mixed_json(error: &Error) -> Option<&'static str> {
    let is_mixed = error.message().contains("Json error: ") && MIXED_JSON.iter().any(|said| error.message().contains(said));
    is_mixed.then_some(
        "give the field one type in each line, or read the columns beside it: CREATE EXTERNAL TABLE name (column type, ..) STORED AS JSON \
         LOCATION '..' without it",
    )
}

fn said_by_parser(unread: &ParserError) -> &str {
    match unread {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => {
            "more than 20 queries, 40 parentheses, or 20 times `is distinct from` without parentheses stand within each other: give the inner \
             queries names by WITH, and each comparison its parentheses"
        }
    }
}

/// The message without the step of planning that came upon it, which names no path as it is written, and without what the engine takes
/// for a bug of its own, where a function was given what it does not take.
fn without_steps(mut text: &str) -> &str {
    let is_step = |step: &str| {
        let named =
            step.starts_with("Optimizer rule '") || step.starts_with("Error when processing CSV file ") || step == UNREAD_REGEX;
        // A rule of the analyzer, as `type_coercion`.
        named || step.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    while let Some((step, below)) = text.split_once("\ncaused by\n")
        && is_step(step)
    {
        text = below;
    }
    match text.find("No function matches the given name and argument types") {
        Some(at) if text[..at].contains("likely caused by a bug") => &text[at..],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_told_what_is_wrong_and_not_how_the_engine_found_it() {
        let parser = |error: ParserError| from_engine(DataFusionError::from(error)).message().to_string();
        let unread = parser(ParserError::ParserError("Expected: a statement, found: selec".to_string()));
        assert_eq!(unread, "the statement can't be read: Expected: a statement, found: selec");
        assert!(parser(ParserError::RecursionLimitExceeded).contains("by WITH"));
        let planned = DataFusionError::Plan("LIMIT must be >= 0".to_string());
        let found = planned.context("Optimizer rule 'eliminate_limit' failed");
        assert_eq!(from_engine(found).message(), "LIMIT must be >= 0");
        let tried = "Internal error: Function 'sum' failed to match any signature.\nThis issue was likely caused by a bug in \
                     DataFusion's code. No function matches the given name and argument types 'sum(Utf8)'.";
        let matched = from_engine(DataFusionError::Plan(tried.to_string()));
        assert_eq!(matched.message(), "No function matches the given name and argument types 'sum(Utf8)'.");
        let regex = DataFusionError::External("regex parse error: unclosed group".into()).context("Invalid regex");
        let regex = from_engine(regex.context("Optimizer rule 'simplify_expressions' failed"));
        assert_eq!((regex.kind(), regex.message()), (ErrorKind::Invalid, "regex parse error: unclosed group"));
        let late = DataFusionError::Execution("dates represented as nanoseconds have to be between 1677 and 2262".to_string());
        assert!(from_engine(late).message().ends_with("as timestamp(6)) microseconds"));
        let defect = DataFusionError::Internal("lost".to_string()).context("Optimizer rule 'x' failed");
        assert!(from_engine(defect).message().contains("rule 'x'"));
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
        let damaged = Box::new(Error::corrupt("'/lake/x.csv.gz' is damaged"));
        let damaged = DataFusionError::from(object_store::Error::Generic { store: "forebay", source: damaged });
        let damaged =
            from_engine(DataFusionError::from(datafusion::arrow::error::ArrowError::from_external_error(Box::new(damaged))));
        assert_eq!((damaged.kind(), damaged.message()), (ErrorKind::Corrupt, "'/lake/x.csv.gz' is damaged"));
    }
}
