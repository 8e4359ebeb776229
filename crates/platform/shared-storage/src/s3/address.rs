//! Where a bucket is reached, and keys in URIs byte for byte.

use forebay_types::{Error, Mount, Result};
use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::credentials::{Profile, env};
use crate::location::Bucket;

/// What a signature's URI keeps of a query's text; everything else is percent-encoded.
pub(super) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// As [`UNRESERVED`], for keys, which keep their slashes.
const UNRESERVED_OR_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Where the bucket is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The service's URL, as in `http://127.0.0.1:9000`, for messages.
    pub(super) endpoint: String,
    /// The bucket's URL, without a slash at the end.
    base: String,
}

impl Address {
    /// The mount's endpoint, or the environment's, or the profile's, or AWS's own.
    pub(super) fn of(mount: &Mount, bucket: &Bucket, region: &str, profile: Option<&Profile>) -> Result<Self> {
        let given = mount
            .options
            .endpoint
            .clone()
            .or_else(|| env("AWS_ENDPOINT_URL_S3"))
            .or_else(|| env("AWS_ENDPOINT_URL"))
            .or_else(|| profile?.get("endpoint_url"));
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let is_aws = given.is_none();
        let endpoint = given.unwrap_or_else(|| format!("https://s3.{region}.{domain}"));
        let url = Url::parse(&endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(host) = url.as_ref().and_then(|url| url.host_str()) else {
            return Err(Error::invalid(format!(
                "mount {}: {endpoint:?} is no endpoint: write it as in http://127.0.0.1:9000",
                mount.name
            )));
        };
        let url = url.as_ref().expect("a URL that has a host");
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(Error::invalid(format!(
                "mount {}: the endpoint at {host} holds more than an address: credentials come from the environment or a profile",
                mount.name
            )));
        }
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let path = url.path().trim_end_matches('/');
        // A bucket's name with a dot is in no certificate.
        let in_host = mount.options.virtual_host || (is_aws && !bucket.name.contains('.'));
        let base = match in_host {
            true => format!("{}://{}.{host}{port}{path}", url.scheme(), bucket.name),
            false => format!("{}://{host}{port}{path}/{}", url.scheme(), bucket.name),
        };
        // An address of digits has nothing below it, nor has every name a place in one: what signs takes a URL for granted.
        if Url::parse(&base).is_err() {
            return Err(Error::invalid(format!(
                "mount {}: the bucket {:?} can't stand in a host's name, as in {base}: leave out --virtual-host, or name the \
                 endpoint by a host's name instead of its address",
                mount.name, bucket.name
            )));
        }
        Ok(Self { endpoint: format!("{}://{host}{port}{path}", url.scheme()), base })
    }

    pub(super) fn is_https(&self) -> bool {
        self.base.starts_with("https:")
    }

    /// The URI of a key in the bucket, or of the bucket.
    pub(super) fn uri(&self, key: Option<&str>, query: &[(&str, String)]) -> Result<Uri> {
        let mut uri = self.base.clone();
        uri.push('/');
        if let Some(key) = key {
            uri.extend(utf8_percent_encode(key, UNRESERVED_OR_SLASH));
        } else if self.base.matches('/').count() > 2 {
            uri.pop();
        }
        for (at, (name, value)) in query.iter().enumerate() {
            uri.push(if at == 0 { '?' } else { '&' });
            uri.extend(utf8_percent_encode(name, UNRESERVED));
            uri.push('=');
            uri.extend(utf8_percent_encode(value, UNRESERVED));
        }
        uri.parse().map_err(|error: http::uri::InvalidUri| Error::invalid(format!("{uri:?} is no URI: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{MountId, MountOptions};

    use super::*;

    fn found(bucket: &str, endpoint: Option<&str>, virtual_host: bool) -> Result<Address> {
        let options = MountOptions { endpoint: endpoint.map(Into::into), virtual_host, ..Default::default() };
        let mount = Mount { id: MountId(1), name: "lake".parse().unwrap(), url: format!("s3://{bucket}"), options };
        Address::of(&mount, &Bucket { name: bucket.into(), prefix: String::new() }, "eu-west-1", None)
    }

    fn address(bucket: &str, endpoint: Option<&str>, virtual_host: bool) -> Address {
        found(bucket, endpoint, virtual_host).unwrap()
    }

    #[test]
    fn buckets_stand_in_the_path_or_the_host() {
        let uri = |address: Address| address.uri(Some("k"), &[]).unwrap().to_string();
        assert_eq!(uri(address("b", Some("http://127.0.0.1:9000/"), false)), "http://127.0.0.1:9000/b/k");
        assert_eq!(uri(address("b", Some("http://s3.local:9000/x"), false)), "http://s3.local:9000/x/b/k");
        assert_eq!(uri(address("b", Some("https://s3.local"), true)), "https://b.s3.local/k");
        assert_eq!(uri(address("b", None, false)), "https://b.s3.eu-west-1.amazonaws.com/k");
        assert_eq!(uri(address("b.c", None, false)), "https://s3.eu-west-1.amazonaws.com/b.c/k");
    }

    #[test]
    fn a_bucket_below_an_address_of_digits_is_refused() {
        for endpoint in ["http://127.0.0.1:9000", "http://[::1]:9000"] {
            let error = found("b", Some(endpoint), true).unwrap_err();
            assert!(error.message().contains("mount lake") && error.message().contains("--virtual-host"), "{error}");
        }
        assert_eq!(address("b", Some("http://localhost:9000"), true).base, "http://b.localhost:9000");
    }

    #[test]
    fn keys_are_encoded_byte_for_byte() {
        let address = address("b", Some("http://h"), false);
        let uri = |key| address.uri(Some(key), &[]).unwrap().path().to_string();
        assert_eq!(uri("a//b/"), "/b/a//b/");
        assert_eq!(uri("a b+c%20?#&=~é"), "/b/a%20b%2Bc%2520%3F%23%26%3D~%C3%A9");
        let listed = address.uri(None, &[("list-type", "2".into()), ("prefix", "a/ +".into())]).unwrap();
        assert_eq!(listed.to_string(), "http://h/b?list-type=2&prefix=a%2F%20%2B");
    }
}
