//! Why the store says no, once for S3's answers and once for callers in process.

use std::io;

use forebay_types::Error;

/// Why the store refuses.
#[derive(Debug)]
pub(crate) enum StoreError {
    NoBucket(String),
    BadBucketName(String),
    BucketNotEmpty(String),
    NoKey,
    NoUpload,
    BadPart,
    PartTooSmall,
    Precondition,
    Io(io::Error),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoBucket(bucket) => Error::not_found(format!("the S3 server has no bucket {bucket:?}")),
            StoreError::BadBucketName(bucket) => Error::invalid(format!("{bucket:?} is not a bucket's name")),
            StoreError::BucketNotEmpty(bucket) => Error::invalid(format!("bucket {bucket:?} is not empty")),
            StoreError::NoKey => Error::not_found("no such key"),
            StoreError::NoUpload => Error::not_found("no such upload"),
            StoreError::BadPart => Error::invalid("the upload has no such part"),
            StoreError::PartTooSmall => Error::invalid("a part that isn't the last is smaller than 5 MiB"),
            StoreError::Precondition => Error::conflict("the object is another version"),
            StoreError::Io(error) => error.into(),
        }
    }
}
