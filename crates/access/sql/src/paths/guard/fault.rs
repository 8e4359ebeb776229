//! What is wrong with a file, and how it is told.

use std::panic::AssertUnwindSafe;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use forebay_types::Error;
use object_store::ObjectMeta;

use crate::error::{external, said};
use crate::location::shown;

/// Why a file can't be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is at odds with itself or with its format.
    Damage(String),
    /// One message or block of it takes more bytes than SQL has; it may be damaged, or large.
    TooLarge { bytes: u64, most: u64 },
    /// The rows of a column that are decoded together take more bytes than SQL has, wherever in it they are if it `is_scattered`.
    LargeColumn { column: String, bytes: u64, most: u64, is_scattered: bool },
    /// Nulls of a column that it lacks take more bytes in a batch than SQL has.
    Lacking { column: String, bytes: u64, most: u64 },
    /// Nothing is wrong with it, but it isn't read.
    Unsupported(String),
    /// What is below, or the engine.
    Other(DataFusionError),
}

pub(super) type Result<T, E = Fault> = std::result::Result<T, E>;

/// A fault of the file.
pub(super) fn damage<T>(why: impl Into<String>) -> Result<T> {
    Err(Fault::Damage(why.into()))
}

impl Fault {
    /// As an error that names the file and the remedy.
    pub(super) fn of(self, file: &ObjectMeta) -> DataFusionError {
        let name = format!("'{}' ({} bytes)", shown(file.location.as_ref()), file.size);
        external(match self {
            Self::Damage(why) => Error::corrupt(format!("{name} is damaged or cut short: {why}; write it again")),
            Self::TooLarge { bytes, most } => Error::invalid(format!(
                "{name} says that a part of it takes {bytes} bytes of memory, and SQL has {most}: write it again, in smaller batches, \
                 or allow SQL more (`sql-memory`)"
            )),
            Self::LargeColumn { column, bytes, most, is_scattered } => {
                let whole = match is_scattered {
                    true => {
                        "leave no rows out while it is read (`set datafusion.execution.parquet.pushdown_filters = false`, and \
                             `enable_page_index` there), "
                    }
                    false => "",
                };
                Error::invalid(format!(
                    "{name} says that what is decoded at once of its column '{column}' takes {bytes} bytes of memory, and SQL has {most}: \
                     {whole}read fewer rows at a time (`set datafusion.execution.batch_size`), allow SQL more (`sql-memory`), or write it \
                     again, with smaller pages"
                ))
            }
            Self::Lacking { column, bytes, most } => Error::invalid(format!(
                "{name} lacks the column '{column}' of other files, whose nulls take {bytes} bytes of memory at once, and SQL has {most}: \
                 read fewer rows at a time (`set datafusion.execution.batch_size`), allow SQL more (`sql-memory`), or leave the file out"
            )),
            Self::Unsupported(why) => Error::invalid(format!("{name} can't be read: {why}; write it in another form")),
            Self::Other(error) => return error,
        })
    }
}

impl From<object_store::Error> for Fault {
    fn from(error: object_store::Error) -> Self {
        Self::Other(DataFusionError::ObjectStore(Box::new(error)))
    }
}

/// What a decoder says of bytes in memory is a word about the file.
impl From<ArrowError> for Fault {
    fn from(error: ArrowError) -> Self {
        Self::Damage(error.to_string())
    }
}

impl From<DataFusionError> for Fault {
    fn from(error: DataFusionError) -> Self {
        Self::Other(error)
    }
}

/// Runs a decoder that may panic at what the checks before it have missed.
pub(super) fn caught<T, E: Into<Fault>>(decode: impl FnOnce() -> Result<T, E>) -> Result<T> {
    // What panicked is not used again: the file is given up.
    match std::panic::catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(Into::into),
        Err(panic) => damage(format!("its decoder gave up ({})", said(panic.as_ref()))),
    }
}
