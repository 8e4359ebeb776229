//! The digests that clients send along with a body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use md5::{Digest, Md5};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::Upload;
use super::reencode::Trailer;
use crate::dialect::{S3Error, S3Result};

const MD5: &str = "content-md5";
const PREFIX: &str = "x-amz-checksum-";

/// The digests that a client sends along with a body, for bodies that no store checks.
#[derive(Default)]
pub(super) struct Digests(Vec<Sent>);

struct Sent {
    name: &'static str,
    /// None until the body's end has told it.
    wanted: Option<Vec<u8>>,
    sum: Sum,
}

enum Sum {
    Md5(Box<Md5>),
    Crc(Box<crc_fast::Digest>, usize),
    Sha(Box<Context>),
}

impl Sum {
    fn new(name: &str) -> Option<(&'static str, Self)> {
        let crc = |algorithm, bytes| Self::Crc(Box::new(crc_fast::Digest::new(algorithm)), bytes);
        Some(match name {
            MD5 => (MD5, Self::Md5(Box::default())),
            "x-amz-checksum-crc32" => ("x-amz-checksum-crc32", crc(CrcAlgorithm::Crc32IsoHdlc, 4)),
            "x-amz-checksum-crc32c" => ("x-amz-checksum-crc32c", crc(CrcAlgorithm::Crc32Iscsi, 4)),
            "x-amz-checksum-crc64nvme" => ("x-amz-checksum-crc64nvme", crc(CrcAlgorithm::Crc64Nvme, 8)),
            "x-amz-checksum-sha1" => ("x-amz-checksum-sha1", Self::Sha(Box::new(Context::new(&SHA1_FOR_LEGACY_USE_ONLY)))),
            "x-amz-checksum-sha256" => ("x-amz-checksum-sha256", Self::Sha(Box::new(Context::new(&SHA256)))),
            _ => return None,
        })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Md5(_) => 16,
            Self::Crc(_, bytes) => *bytes,
            Self::Sha(context) => context.algorithm().output_len(),
        }
    }

    fn update(&mut self, piece: &[u8]) {
        match self {
            Self::Md5(sum) => sum.update(piece),
            Self::Crc(sum, _) => sum.update(piece),
            Self::Sha(sum) => sum.update(piece),
        }
    }

    fn finish(self) -> Vec<u8> {
        let bytes = self.bytes();
        let sum = match self {
            Self::Md5(sum) => sum.finalize().to_vec(),
            Self::Crc(sum, bytes) => sum.finalize().to_be_bytes()[8 - bytes..].to_vec(),
            Self::Sha(sum) => sum.finish().as_ref().to_vec(),
        };
        assert_eq!(sum.len(), bytes, "what is sent has the length of what is computed");
        sum
    }
}

impl Digests {
    /// Reads what the head says: `Content-MD5`, and one checksum at most.
    fn of(headers: &HeaderMap, trailer: Option<&Trailer>) -> S3Result<Self> {
        let mut sent = Vec::new();
        for (name, value) in headers {
            let Some((name, sum)) = Sum::new(name.as_str()) else { continue };
            let wanted = STANDARD.decode(value).ok().filter(|wanted| wanted.len() == sum.bytes());
            let wanted = wanted.ok_or_else(|| malformed(name))?;
            sent.push(Sent { name, wanted: Some(wanted), sum });
        }
        if let Some((name, sum)) = trailer.and_then(|trailer| Sum::new(trailer.name())) {
            sent.push(Sent { name, wanted: None, sum });
        }
        match sent.iter().filter(|one| one.name != MD5).count() {
            0 | 1 => Ok(Self(sent)),
            _ => Err(S3Error::invalid_request(
                "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
            )),
        }
    }

    fn update(&mut self, piece: &Bytes) {
        self.0.iter_mut().for_each(|one| one.sum.update(piece));
    }

    fn check(self, trailer: Option<&Trailer>) -> S3Result<()> {
        for Sent { name, wanted, sum } in self.0 {
            let told = || STANDARD.decode(trailer?.value()?).ok();
            if wanted.or_else(told).as_deref() != Some(&sum.finish()) {
                return Err(mismatch(name));
            }
        }
        Ok(())
    }
}

fn malformed(name: &str) -> S3Error {
    match name {
        MD5 => S3Error::new(StatusCode::BAD_REQUEST, "InvalidDigest", "The Content-MD5 you specified was invalid."),
        _ => S3Error::invalid_request(format!("Value for {name} header is invalid.")),
    }
}

fn mismatch(name: &str) -> S3Error {
    let message = match name.strip_prefix(PREFIX) {
        None => "The Content-MD5 you specified did not match what we received.".to_string(),
        Some(kind) => format!("The {} you specified did not match the calculated checksum.", kind.to_ascii_uppercase()),
    };
    S3Error::new(StatusCode::BAD_REQUEST, "BadDigest", message)
}

impl Upload {
    /// Checks the digests that came along; a body that isn't what they say ends in `BadDigest` instead of its end.
    pub(crate) fn checked(self, headers: &HeaderMap) -> S3Result<Self> {
        let digests = Digests::of(headers, self.trailer.as_ref())?;
        if digests.0.is_empty() {
            return Ok(self);
        }
        let Self { pieces, bytes, fault, sha256, trailer } = self;
        let state = Some((pieces, digests, trailer.clone(), fault.clone()));
        let pieces = futures::stream::unfold(state, |state| async move {
            let (mut pieces, mut digests, trailer, fault) = state?;
            match pieces.next().await {
                Some(Ok(piece)) => {
                    digests.update(&piece);
                    Some((Ok(piece), Some((pieces, digests, trailer, fault))))
                }
                Some(Err(error)) => Some((Err(error), None)),
                None => digests.check(trailer.as_ref()).err().map(|error| (Err(fault.set(error)), None)),
            }
        });
        Ok(Self { pieces: pieces.boxed(), bytes, fault, sha256, trailer })
    }
}

/// The checksum that a checked body came with, for the answer.
pub(crate) fn checksum_of(headers: &HeaderMap, trailer: Option<&Trailer>) -> Option<(HeaderName, HeaderValue)> {
    let sent = headers.iter().find(|(name, _)| name.as_str() != MD5 && Sum::new(name.as_str()).is_some());
    let told = || {
        let trailer = trailer?;
        Some((HeaderName::from_static(trailer.name()), HeaderValue::from_str(&trailer.value()?).ok()?))
    };
    sent.map(|(name, value)| (name.clone(), value.clone())).or_else(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_others_compute_them() {
        let known = [
            (MD5, "JfnnlDI7RTiF9RgfG2JNCw=="),
            ("x-amz-checksum-crc32", "y/Q5Jg=="),
            ("x-amz-checksum-crc32c", "4waSgw=="),
            ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
            ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
            ("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ];
        for (name, value) in known {
            let check = |value: &str, body: &'static [u8]| {
                let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())]);
                let mut digests = Digests::of(&headers, None)?;
                body.chunks(4).for_each(|piece| digests.update(&Bytes::from_static(piece)));
                digests.check(None)
            };
            assert!(check(value, b"123456789").is_ok(), "{name}");
            assert_eq!(check(value, b"123456780").unwrap_err().code, "BadDigest", "{name}");
            assert!(["InvalidDigest", "InvalidRequest"].contains(&check("AAA=", b"").unwrap_err().code), "{name}");
        }
    }
}
