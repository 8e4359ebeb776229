//! What a bucket's name stands for: a mount whose store speaks S3 or not, or temporary data.

use forebay_types::{Mount, MountId, MountName, MountOptions};

/// The bucket of temporary data.
pub(crate) const TEMPORARY: &str = "tmp";

/// What stands for the mount that the bucket of temporary data would be.
pub(crate) fn temporary_mount() -> Mount {
    let options = MountOptions::default();
    Mount { id: MountId::TEMPORARY, name: MountName::temporary(), url: "tmp:".into(), options }
}

/// Whether a mount's store does not speak S3, so that S3's ways are made here.
pub(crate) fn is_local(mount: &Mount) -> bool {
    !mount.url.starts_with("s3://") && !mount.url.starts_with("s3a://")
}

/// Whether a mount is all of a bucket, whose configuration is then nobody else's.
pub(crate) fn is_whole(mount: &Mount) -> bool {
    let bucket = mount.url.strip_prefix("s3://").or_else(|| mount.url.strip_prefix("s3a://"));
    bucket.is_some_and(|bucket| !bucket.trim_end_matches('/').contains('/'))
}
