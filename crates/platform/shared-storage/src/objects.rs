use crate::location::Bucket;
use crate::storage::Common;
use forebay_types::{Error, Mount, Result};
pub(crate) struct Objects;
impl Objects {
    pub(crate) fn gcs(_: &Mount, _: Bucket, _: Common) -> Result<crate::s3::S3> {
        Err(Error::invalid("GCS is not built yet"))
    }
    pub(crate) fn azure(_: &Mount, _: Bucket, _: Common) -> Result<crate::s3::S3> {
        Err(Error::invalid("Azure is not built yet"))
    }
}
