//! The objects that a dataset's records came from: one object of its folder says so, which each refresh overwrites.

use std::collections::HashSet;

use forebay_types::{Error, ForebayPath, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::manifest::Dataset;
use super::names::is_hash;

const WORD: &str = "forebay-sources";
const VERSION: u32 = 1;
/// Bytes of such an object at most: it is read whole.
pub const SOURCES_BYTES_MAX: usize = 16 << 20;
/// Objects that a dataset follows at most.
pub const SOURCES_MAX: usize = 16_384;
/// Entries at most: reading an object may have been cut short several times.
const ENTRIES_MAX: usize = 4 * SOURCES_MAX;
/// Bytes of a version's name at most.
const TAG_BYTES_MAX: usize = 1024;

/// One object that records came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetSource {
    /// Its path.
    pub path: String,
    /// The version that was read; empty where some of its records may be missing still, or deleted already.
    pub tag: String,
    /// Its length.
    pub bytes: u64,
    /// How many keys its records have.
    pub records: u64,
    /// The object in the dataset's folder that has these.
    pub keys: String,
}

/// The name of an object that has keys: chance, so that no two ever have the same one, and a hash of its bytes.
pub fn keys_name(chance: u64, bytes: &[u8]) -> String {
    format!("{chance:016x}{:016x}", xxh3_64(bytes))
}

/// Whether an object of this name has these bytes.
pub fn has_keys(name: &str, bytes: &[u8]) -> bool {
    name.get(16..) == Some(format!("{:016x}", xxh3_64(bytes)).as_str())
}

impl Dataset {
    /// The key, below its folder, of the object that says where its records came from; none where it follows nothing. A dataset that
    /// takes its place has another one.
    pub fn sources_key(&self) -> Option<String> {
        Some(format!("sources-{}", self.following.as_ref()?.name))
    }
}

/// Sources as they are stored, in the order in which they were read: of several with the same key the last one counts. `Invalid` where
/// they are too many.
pub fn encode_sources(sources: &[DatasetSource]) -> Result<Vec<u8>> {
    check(sources)?;
    let body = serde_json::to_vec(sources).map_err(|error| Error::internal(format!("sources can't be written: {error}")))?;
    let mut bytes = format!("{WORD} {VERSION} {:08x}\n", forebay_types::crc32c(&body)).into_bytes();
    bytes.extend(body);
    let much = || {
        Error::invalid(format!("what a dataset follows takes more than {} MiB: follow fewer objects", SOURCES_BYTES_MAX >> 20))
    };
    if bytes.len() > SOURCES_BYTES_MAX { Err(much()) } else { Ok(bytes) }
}

/// Reads what [`encode_sources`] wrote, from whoever it comes. `what` names it in errors.
pub fn decode_sources(bytes: &[u8], what: &str) -> Result<Vec<DatasetSource>> {
    let damaged = || Error::corrupt(format!("{what}: what the dataset follows is damaged: create it again with --replace"));
    if bytes.len() > SOURCES_BYTES_MAX {
        return Err(damaged());
    }
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged())?;
    let [WORD, version, sum] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(damaged()) };
    let version: u32 = version.parse().map_err(|_| damaged())?;
    if version > VERSION {
        return Err(Error::invalid(format!("{what}: it is of a newer version of Forebay: use that one")));
    }
    let body = &bytes[end + 1..];
    if version < VERSION || u32::from_str_radix(sum, 16) != Ok(forebay_types::crc32c(body)) {
        return Err(damaged());
    }
    let sources: Vec<DatasetSource> = serde_json::from_slice(body).map_err(|_| damaged())?;
    check(&sources).map_err(|error| error.context(what))?;
    Ok(sources)
}

fn check(sources: &[DatasetSource]) -> Result<()> {
    let objects = sources.iter().map(|source| source.path.as_str()).collect::<HashSet<_>>().len();
    if objects > SOURCES_MAX {
        return Err(too_many_sources(objects));
    }
    if sources.len() > ENTRIES_MAX {
        return Err(Error::invalid("reading the objects of a dataset was cut short too often: create it again with --replace"));
    }
    let is_source = |source: &DatasetSource| {
        source.path.parse::<ForebayPath>().is_ok() && source.tag.len() <= TAG_BYTES_MAX && is_hash(&source.keys)
    };
    if sources.iter().all(is_source) { Ok(()) } else { Err(Error::corrupt("what a dataset follows is not named as objects are")) }
}

/// Why so many objects are not followed.
pub fn too_many_sources(objects: usize) -> Error {
    Error::invalid(format!("a dataset follows {SOURCES_MAX} objects at most, and these are {objects}: make fewer, larger ones"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str) -> DatasetSource {
        let (path, keys) = (path.to_string(), keys_name(9, b"keys"));
        DatasetSource { path, tag: "\"e1\"".into(), bytes: 7, records: 1, keys }
    }

    #[test]
    fn sources_come_back_and_no_flipped_bit_passes() {
        let sources = vec![source("/lake/orders/a.parquet"), DatasetSource { tag: String::new(), ..source("/lake/b") }];
        let bytes = encode_sources(&sources).unwrap();
        assert_eq!(decode_sources(&bytes, "sources").unwrap(), sources);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(decode_sources(&damaged, "sources").is_err(), "byte {at}");
            assert!(decode_sources(&bytes[..at], "sources").is_err(), "cut at {at}");
        }
        assert!(decode_sources(&encode_sources(&[]).unwrap(), "sources").unwrap().is_empty());
    }

    #[test]
    fn what_no_sources_could_be_is_refused() {
        let wrong = [
            DatasetSource { keys: "../../secret".into(), ..source("/lake/a") },
            DatasetSource { tag: "x".repeat(2000), ..source("/lake/a") },
            source("no path"),
        ];
        for wrong in wrong {
            assert!(encode_sources(&[wrong]).is_err());
        }
        let newer = [b"forebay-sources 2 00000000\n".to_vec(), b"[]".to_vec()].concat();
        assert!(decode_sources(&newer, "sources").unwrap_err().message().contains("newer version"));
    }

    #[test]
    fn objects_are_counted_and_not_how_often_they_were_read() {
        let all: Vec<DatasetSource> = (0..SOURCES_MAX).map(|number| source(&format!("/lake/in/{number}"))).collect();
        let again = [&all[..], &[source("/lake/in/7")]].concat();
        assert!(encode_sources(&again).is_ok(), "one of them is being replaced");
        let more = [&all[..], &[source("/lake/in/one more")]].concat();
        assert!(encode_sources(&more).is_err());
        assert!(encode_sources(&vec![source("/lake/in/7"); ENTRIES_MAX + 1]).is_err());
    }

    #[test]
    fn a_name_says_which_keys_an_object_has() {
        let name = keys_name(1, b"keys");
        assert!(is_hash(&name) && has_keys(&name, b"keys") && has_keys(&keys_name(2, b"keys"), b"keys"));
        assert!(!has_keys(&name, b"others") && !has_keys("", b"keys"));
    }
}
