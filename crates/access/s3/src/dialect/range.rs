//! Which bytes of an object a request wants.

use std::ops::Range;

use forebay_client::RangeSpec;

use super::error::{S3Error, S3Result};

/// What a Range header asks for; none for all of it, which several ranges and what can't be read are too, as in S3.
pub(crate) fn parse_range(header: Option<&str>) -> S3Result<Option<RangeSpec>> {
    let Some(ranges) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else { return Ok(None) };
    let Some((first, last)) = ranges.trim().split_once('-') else { return Ok(None) };
    let number = |text: &str| {
        let text = text.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More than anything has is as good as the end.
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    Ok(match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => {
            Some(RangeSpec::Bounded { start: first, len: (last - first).saturating_add(1) })
        }
        (Some(first), None) if last.trim().is_empty() => Some(RangeSpec::From { start: first }),
        (None, Some(0)) if first.trim().is_empty() => return Err(S3Error::invalid_range()),
        (None, Some(len)) if first.trim().is_empty() => Some(RangeSpec::Suffix { len }),
        _ => None,
    })
}

/// The bytes that an object of this size has of a range. `InvalidRange` when it has none.
pub(crate) fn resolve_range(range: RangeSpec, size: u64) -> S3Result<Range<u64>> {
    match range.within(size) {
        Ok(bytes) if !bytes.is_empty() => {
            assert!(bytes.end <= size, "bytes {bytes:?} are of {size}");
            Ok(bytes)
        }
        _ => Err(S3Error::invalid_range().with("ActualObjectSize", size.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_s3_reads_them() {
        let bytes = |text: &str, size| {
            parse_range(Some(text)).and_then(|range| range.map(|range| resolve_range(range, size)).transpose())
        };
        assert_eq!(bytes("bytes=0-9", 100).unwrap(), Some(0..10));
        assert_eq!(bytes("bytes=90-", 100).unwrap(), Some(90..100));
        assert_eq!(bytes("bytes=-10", 100).unwrap(), Some(90..100));
        assert_eq!(bytes("bytes=-1000", 100).unwrap(), Some(0..100));
        assert_eq!(bytes("bytes=5-99999999999999999999999", 100).unwrap(), Some(5..100));
        for all in ["bytes=9-5", "bytes=0-1,5-6", "bytes=a-b", "chunks=1-2", "bytes=-", "bytes=+1-2"] {
            assert_eq!(bytes(all, 100).unwrap(), None, "{all}");
        }
        for none in ["bytes=100-", "bytes=100-200", "bytes=-0"] {
            assert_eq!(bytes(none, 100).unwrap_err().status.as_u16(), 416, "{none}");
        }
        assert_eq!(bytes("bytes=0-", 0).unwrap_err().status.as_u16(), 416);
    }
}
