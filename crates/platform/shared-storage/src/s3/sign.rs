//! AWS Signature Version 4 for requests that are passed on: `object_store`'s signer has no bodies with trailing checksums.

use chrono::{DateTime, Utc};
use forebay_types::{Error, Result, hex};
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderValue, Method, Uri};
use object_store::aws::AwsCredential;
use percent_encoding::utf8_percent_encode;
use ring::{digest, hmac};

use super::address::UNRESERVED;

/// With what a request is signed.
pub(super) struct Signing<'a> {
    pub(super) credential: &'a AwsCredential,
    pub(super) region: &'a str,
    /// The payload's SHA-256 in hexadecimal digits, or what stands in its place.
    pub(super) hash: &'a str,
}

/// Adds a signature that covers all headers.
pub(super) fn sign(
    signing: &Signing<'_>,
    now: DateTime<Utc>,
    method: &Method,
    uri: &Uri,
    query: &[(&str, String)],
    headers: &mut HeaderMap,
) -> Result<()> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Error::invalid("what signs the request can't stand in a header".to_string()))
    };
    let time = now.format("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/{}/s3/aws4_request", &time[..8], signing.region);
    headers.insert(HOST, value(uri.authority().map_or("", |authority| authority.as_str()))?);
    headers.insert("x-amz-date", value(&time)?);
    headers.insert("x-amz-content-sha256", value(signing.hash)?);
    if let Some(token) = &signing.credential.token {
        headers.insert("x-amz-security-token", value(token)?);
    }
    let mut names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    let mut canonical = format!("{method}\n{}\n{}\n", uri.path(), canonical_query(query)).into_bytes();
    for name in &names {
        canonical.extend_from_slice(name.as_bytes());
        for (at, value) in headers.get_all(*name).iter().enumerate() {
            canonical.push(if at == 0 { b':' } else { b',' });
            canonical.extend_from_slice(&squeezed(value.as_bytes()));
        }
        canonical.push(b'\n');
    }
    let names = names.join(";");
    canonical.extend_from_slice(format!("\n{names}\n{}", signing.hash).as_bytes());
    let digest = hex(digest::digest(&digest::SHA256, &canonical).as_ref());
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
    let mac = |key: &[u8], data: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data);
    let mut key = mac(format!("AWS4{}", signing.credential.secret_key).as_bytes(), &time.as_bytes()[..8]);
    for part in [signing.region, "s3", "aws4_request", &to_sign] {
        key = mac(key.as_ref(), part.as_bytes());
    }
    let signature = hex(key.as_ref());
    let id = &signing.credential.key_id;
    let authorization = format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    headers.insert(AUTHORIZATION, value(&authorization)?);
    Ok(())
}

fn canonical_query(query: &[(&str, String)]) -> String {
    let encode = |text: &str| utf8_percent_encode(text, UNRESERVED).to_string();
    let mut pairs: Vec<_> = query.iter().map(|(name, value)| (encode(name), encode(value))).collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// Without spaces at the ends, and one where there are several.
fn squeezed(value: &[u8]) -> Vec<u8> {
    let mut squeezed = Vec::with_capacity(value.len());
    for &byte in value.trim_ascii() {
        if byte != b' ' || squeezed.last() != Some(&b' ') {
            squeezed.push(byte);
        }
    }
    squeezed
}
