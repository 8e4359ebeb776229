//! Compares URLs of shared storage that are spelled differently, so that what a mount covers is always read through it.

use percent_encoding::percent_decode_str;

/// A place of shared storage, however its URL is spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    scheme: String,
    /// The bucket; empty for folders. Hosts that differ in case alone may be one bucket.
    host: String,
    /// Without a `/` before it.
    path: String,
}

impl Place {
    /// None for what is no URL. A mount's folder may be written with escapes, as keys never are.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Some(Self { scheme: scheme_of(scheme), host: host.to_ascii_lowercase(), path: path.to_string() })
    }

    /// The same for the URL of a mount: that of a folder may have escapes.
    pub(crate) fn of_mount(url: &str) -> Option<Self> {
        let place = Self::of(url)?;
        let path = match place.scheme == "file" {
            true => percent_decode_str(&place.path).decode_utf8().ok()?.into_owned(),
            false => place.path,
        };
        Some(Self { path: path.trim_end_matches('/').to_string(), ..place })
    }

    /// What is left of `below`'s path when that is at or below this.
    pub(crate) fn rest<'a>(&self, below: &'a Self) -> Option<&'a str> {
        let same = self.scheme == below.scheme && self.host == below.host;
        let rest = below.path.strip_prefix(self.path.as_str()).filter(|_| same)?;
        if self.path.is_empty() || rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// Bytes of its path: of two places that hold another one the longer is the nearer.
    pub(crate) fn depth(&self) -> usize {
        self.path.len()
    }
}

/// One name for each kind of store.
pub(crate) fn scheme_of(scheme: &str) -> String {
    match scheme.to_ascii_lowercase().as_str() {
        "s3a" => "s3".to_string(),
        "azure" => "az".to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn other_spellings_of_a_place_are_that_place() {
        let rest = |mount: &str, url: &str| {
            let (mount, url) = (Place::of_mount(mount).unwrap(), Place::of(url).unwrap());
            mount.rest(&url).map(str::to_string)
        };
        for url in ["s3://bucket/a/b/x", "s3a://bucket/a/b/x", "S3://bucket/a/b/x", "s3://Bucket/a/b/x"] {
            assert_eq!(rest("s3://bucket/a/b/", url).as_deref(), Some("x"), "{url}");
            assert_eq!(rest("s3a://bucket", url).as_deref(), Some("a/b/x"), "{url}");
        }
        assert_eq!(rest("s3://bucket/a", "s3://bucket/a").as_deref(), Some(""));
        // A key that has an empty part is another key.
        assert_eq!(rest("s3://bucket/a", "s3://bucket/a//x").as_deref(), Some("/x"));
        assert_eq!(rest("s3://bucket/a", "s3://bucket//a/x"), None);
        for (mount, url) in [("s3://bucket/a", "s3://bucket/ab"), ("s3://bucket", "s3://bucket2/x"), ("s3://b/x", "gs://b/x")] {
            assert_eq!(rest(mount, url), None, "{mount} {url}");
        }
        assert_eq!(rest("file:///mnt/a%20b", "file:///mnt/a b/x").as_deref(), Some("x"));
        assert_eq!(rest("azure://c", "az://c/x").as_deref(), Some("x"));
    }
}
