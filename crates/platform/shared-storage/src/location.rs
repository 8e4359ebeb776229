//! Mounts' URLs as buckets, containers and folders, byte for byte below them.

use std::path::PathBuf;

use forebay_types::{Error, Result};
use percent_encoding::percent_decode_str;

/// Where a mount's URL points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    S3(Bucket),
    Gcs(Bucket),
    Azure(Bucket),
    Files(PathBuf),
}

/// A bucket (or container) and what stands before every key in it: empty, or ending with `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) prefix: String,
}

impl Bucket {
    /// The key in the bucket of a key below the mount.
    pub(crate) fn full_key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn parse(url: &str, rest: &str) -> Result<Self> {
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c)) {
            return Err(Error::invalid(format!("{url:?} names no bucket: write it as in s3://bucket/prefix")));
        }
        let mut prefix = prefix.to_string();
        if !prefix.is_empty() && !prefix.ends_with('/') {
            prefix.push('/');
        }
        if prefix.split('/').any(|part| part == "." || part == "..") {
            return Err(Error::invalid(format!("{url:?}: \".\" and \"..\" can't stand in a prefix")));
        }
        Ok(Self { name: name.into(), prefix })
    }
}

impl Location {
    /// Reads `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`. Prefixes are taken
    /// byte for byte; a folder is percent-decoded, since it is a URL.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(Error::invalid(format!(
                "{url:?} is no URL: write s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"
            )));
        };
        match scheme {
            "s3" | "s3a" => Bucket::parse(url, rest).map(Self::S3),
            "gs" => Bucket::parse(url, rest).map(Self::Gcs),
            "az" | "azure" => Bucket::parse(url, rest).map(Self::Azure),
            "file" => {
                let folder = percent_decode_str(rest).decode_utf8().ok().filter(|folder| !folder.contains('\0'));
                match folder {
                    Some(folder) if folder.starts_with('/') => Ok(Self::Files(folder.as_ref().into())),
                    _ => Err(Error::invalid(format!("{url:?} names no folder: write an absolute path, as in file:///mnt/nas"))),
                }
            }
            _ => Err(Error::invalid(format!("{url:?}: there is no shared storage {scheme:?}: write s3, gs, az or file"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(name: &str, prefix: &str) -> Bucket {
        Bucket { name: name.into(), prefix: prefix.into() }
    }

    #[test]
    fn urls_name_buckets_prefixes_and_folders() {
        assert_eq!(Location::parse("s3://b").unwrap(), Location::S3(bucket("b", "")));
        assert_eq!(Location::parse("s3://b/a b/c").unwrap(), Location::S3(bucket("b", "a b/c/")));
        assert_eq!(Location::parse("s3://b/c/").unwrap(), Location::S3(bucket("b", "c/")));
        assert_eq!(Location::parse("gs://b/%41").unwrap(), Location::Gcs(bucket("b", "%41/")));
        assert_eq!(Location::parse("file:///mnt/a%20b").unwrap(), Location::Files("/mnt/a b".into()));
    }

    #[test]
    fn what_is_no_location_is_refused() {
        for url in ["lake", "s3://", "s3:///x", "http://b/x", "file://host/x", "file:///a%00", "s3://b/../x", "s3://b?x/"] {
            assert!(Location::parse(url).is_err(), "{url}");
        }
    }
}
