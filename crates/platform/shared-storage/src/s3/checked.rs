//! Whole objects are held to the checksum that the store has of them: it may answer with bytes of two versions, or with damaged ones.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use forebay_metrics::table;
use forebay_types::{Attributes, Error, Key, MountName, Result};

use crate::backend::Source;

/// Checksums that take next to nothing to count: their headers, and how many bytes they have.
const KINDS: [(&str, CrcAlgorithm, usize); 3] = [
    ("x-amz-checksum-crc64nvme", CrcAlgorithm::Crc64Nvme, 8),
    ("x-amz-checksum-crc32c", CrcAlgorithm::Crc32Iscsi, 4),
    ("x-amz-checksum-crc32", CrcAlgorithm::Crc32IsoHdlc, 4),
];

/// Says of what a checksum is, where the store tells that.
const TYPE: &str = "x-amz-checksum-type";

/// What the bytes of an object add up to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sum {
    header: &'static str,
    algorithm: CrcAlgorithm,
    value: u64,
}

impl Sum {
    /// The checksum of all bytes that the store tells of an object; none where it tells none of these kinds, or only that of its parts'
    /// checksums, which ends in their number, but not with every store.
    pub(super) fn told(attributes: &Attributes) -> Option<Self> {
        let is_of_parts = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"COMPOSITE");
        if attributes.headers.iter().any(|(name, value)| name == TYPE && is_of_parts(value)) {
            return None;
        }
        KINDS.into_iter().find_map(|(header, algorithm, bytes)| {
            let (_, text) = attributes.headers.iter().find(|(name, _)| name == header)?;
            let sum = STANDARD.decode(text.trim_ascii()).ok().filter(|sum| sum.len() == bytes)?;
            let value = sum.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
            Some(Self { header, algorithm, value })
        })
    }
}

/// A whole object as it comes. Its last bytes are not handed on where all of them together are not what the store says.
pub(super) struct Checked {
    source: Box<dyn Source>,
    told: Sum,
    come: Digest,
    /// Bytes that are to come.
    left: u64,
    mount: MountName,
    key: Key,
}

impl Checked {
    pub(super) fn new(source: Box<dyn Source>, told: Sum, bytes: u64, mount: &MountName, key: &Key) -> Self {
        Self { source, told, come: Digest::new(told.algorithm), left: bytes, mount: mount.clone(), key: key.clone() }
    }

    fn mismatch(&self, come: u64) -> Error {
        let Self { told, mount, key, .. } = self;
        table::STORAGE_MISMATCHES.with([mount.as_str()]).add(1);
        let error = Error::corrupt(format!(
            "/{mount}/{key}: shared storage says {} {:x} of the object, and its bytes have {come:x}: the store has mixed two versions of \
             it, or bytes were damaged; read it again, and write it anew if that goes on",
            told.header, told.value
        ));
        tracing::warn!(%mount, %key, %error, "an object is not what shared storage says of it");
        error
    }
}

#[async_trait]
impl Source for Checked {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        let bytes = match self.source.next().await? {
            Ok(bytes) => bytes,
            failed => return Some(failed),
        };
        self.come.update(&bytes);
        self.left = self.left.saturating_sub(bytes.len() as u64);
        let come = self.come.finalize();
        match self.left == 0 && come != self.told.value {
            true => Some(Err(self.mismatch(come))),
            false => Some(Ok(bytes)),
        }
    }

    fn is_checked(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(headers: &[(&str, &str)]) -> Option<Sum> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_string(), value.as_bytes().to_vec())).collect();
        Sum::told(&Attributes { headers, complete: true })
    }

    #[test]
    fn checksums_are_those_of_s3() {
        // Of the nine digits, as the catalogue of CRCs has them, in the store's words.
        let all = [
            ("x-amz-checksum-crc32", "y/Q5Jg=="),
            ("x-amz-checksum-crc32c", "4waSgw=="),
            ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
        ];
        for one in all {
            let sum = told(&[one]).unwrap();
            let mut digest = Digest::new(sum.algorithm);
            digest.update(b"1234");
            digest.update(b"56789");
            assert_eq!((sum.header, digest.finalize()), (one.0, sum.value));
        }
        assert_eq!(told(&all), told(&all[2..]), "the strongest of several");
    }

    #[test]
    fn what_is_no_checksum_of_all_bytes_is_none() {
        assert_eq!(told(&[("x-amz-checksum-crc32c", "4waSgw==-3")]), None, "of the checksums of three parts");
        let of = |kind| told(&[("x-amz-checksum-crc32c", "4waSgw=="), ("x-amz-checksum-type", kind)]);
        assert!(of("COMPOSITE").is_none() && of("FULL_OBJECT").is_some(), "the same by another header");
        assert_eq!(told(&[("x-amz-checksum-crc32c", "rosUhgp5mIg=")]), None);
        assert_eq!(told(&[("x-amz-checksum-crc64nvme", "soon")]), None);
        assert_eq!(told(&[("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=")]), None, "costs too much");
    }
}
