//! What a request is about: bucket, key and query, byte for byte.

use forebay_types::Key;
use http::Request;
use http::header::HOST;
use percent_encoding::percent_decode_str;

use super::error::{S3Error, S3Result};

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// None for the service itself.
    pub(crate) bucket: Option<String>,
    /// None for the bucket itself.
    pub(crate) key: Option<Key>,
    pub(crate) query: Query,
}

/// A query's names and values, decoded, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(pub(crate) Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> S3Result<Self> {
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8().map(Into::into).map_err(|_| S3Error::invalid_uri())
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        pairs.collect::<S3Result<Vec<_>>>().map(Self)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// What says what is asked for: not who asks, nor how clients name it for themselves.
    pub(crate) fn of_the_request(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter().filter(|(name, _)| !name.starts_with("X-Amz-") && name != "x-id")
    }
}

impl Target {
    /// Reads bucket and key byte for byte: decoded once, nothing resolved, nothing joined.
    pub(crate) fn of<B>(request: &Request<B>, domains: &[String]) -> S3Result<Self> {
        let uri = request.uri();
        let query = Query::parse(uri.query().unwrap_or(""))?;
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| uri.authority().map(|authority| authority.as_str())).unwrap_or("");
        let path = uri.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, key) = match bucket_in_host(host, domains) {
            Some(bucket) => (bucket, path),
            None => path.split_once('/').unwrap_or((path, "")),
        };
        if bucket.is_empty() {
            return if path.is_empty() { Ok(Self { bucket: None, key: None, query }) } else { Err(S3Error::invalid_uri()) };
        }
        let decode = |text| percent_decode_str(text).decode_utf8().map_err(|_| S3Error::invalid_uri());
        let (bucket, key) = (decode(bucket)?.into_owned(), decode(key)?);
        if key.is_empty() {
            return Ok(Self { bucket: Some(bucket), key: None, query });
        }
        Ok(Self { bucket: Some(bucket), key: Some(key_of(&key)?), query })
    }
}

/// A key as Forebay has it. Refuses what a file system or a proxy on the way would resolve.
pub(crate) fn key_of(text: &str) -> S3Result<Key> {
    if text.len() > Key::BYTES_MAX {
        return Err(S3Error::key_too_long());
    }
    let key = Key::new(text).map_err(|_| S3Error::invalid_uri())?;
    match key.has_dot_segment() {
        true => Err(S3Error::invalid_uri().saying("A key with \".\" or \"..\" between slashes can't be reached.")),
        false => Ok(key),
    }
}

/// The bucket, where a host says it.
pub(crate) fn bucket_in_host<'a>(host: &'a str, domains: &[String]) -> Option<&'a str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let of = |domain: &String| name.strip_suffix(domain.as_str())?.strip_suffix('.').filter(|bucket| !bucket.is_empty());
    domains.iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str, uri: &str) -> S3Result<Target> {
        let request = Request::builder().uri(uri).header(HOST, host).body(()).unwrap();
        Target::of(&request, &["s3.local".into()])
    }

    fn names(host: &str, uri: &str) -> (Option<String>, Option<String>) {
        let target = target(host, uri).unwrap();
        (target.bucket, target.key.map(|key| key.as_str().to_string()))
    }

    #[test]
    fn keys_are_byte_exact() {
        let some = |bucket: &str, key: &str| (Some(bucket.to_string()), Some(key.to_string()));
        assert_eq!(names("h:1", "/lake/a//b%20c/"), some("lake", "a//b c/"));
        assert_eq!(names("h:1", "/lake//x+y%2Fz"), some("lake", "/x+y/z"));
        assert_eq!(names("lake.s3.local:9000", "/a%C3%A9"), some("lake", "aé"));
        assert_eq!(names("h", "/lake"), (Some("lake".into()), None));
        assert_eq!(names("h", "/lake/"), (Some("lake".into()), None));
        assert_eq!(names("s3.local", "/"), (None, None));
    }

    #[test]
    fn what_would_be_resolved_is_refused() {
        for uri in ["/lake/../etc", "/lake/a/%2e%2E/b", "/lake/.", "/lake/a%2F..%2Fb", "/lake/%00", "/lake/%ff", "//x", "//"] {
            let error = target("h", uri).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "InvalidURI"), "{uri}");
        }
        assert_eq!(target("h", &format!("/lake/{}", "x".repeat(1025))).unwrap_err().code, "KeyTooLongError");
        let query = target("h", "/lake?prefix=a%2Fb+c&delimiter=&list-type=2").unwrap().query;
        assert_eq!((query.get("prefix"), query.get("delimiter"), query.get("marker")), (Some("a/b c"), Some(""), None));
    }
}
