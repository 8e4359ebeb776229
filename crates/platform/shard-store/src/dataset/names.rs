//! How the objects of a dataset are named.

use forebay_types::digest;

/// Digits of a log's name.
const LOG_DIGITS: usize = 16;

/// What names a manifest by its bytes.
pub fn manifest_tag(bytes: &[u8]) -> u128 {
    digest(&[bytes])
}

/// The key of a manifest below a dataset's folder.
pub fn manifest_key(number: u64) -> String {
    format!("manifest-{number:010}")
}

/// The number in such a key.
pub fn manifest_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("manifest-")?;
    (digits.len() == 10 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The key of an object below a dataset's folder.
pub fn data_key(object: &str) -> String {
    format!("data/{object}")
}

/// Whether this may be a log's name: digits in hex, drawn by chance.
pub(super) fn is_log(name: &str) -> bool {
    name.len() == LOG_DIGITS && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether this may be the name of an object below `data/`.
pub(super) fn is_hash(object: &str) -> bool {
    object.len() == 32 && object.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_names_of_manifests_only() {
        assert_eq!(manifest_number(&manifest_key(12)), Some(12));
        for name in ["manifest-1", "manifest-", "manifest-+000000001", "manifest-00000000x1", "data"] {
            assert_eq!(manifest_number(name), None, "{name}");
        }
    }
}
