//! Where a shard's log is.

use forebay_types::{Key, Result};

use crate::dataset::names::is_log;

/// The part of a dataset's log that belongs to one shard: what was changed since its files were made, as numbered objects
/// that never change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogPlace {
    /// The dataset's folder, without a slash at its end.
    pub folder: String,
    /// The log's name in the manifest.
    pub log: String,
    /// The shard's number.
    pub shard: u32,
}

impl LogPlace {
    /// The key of the object with a number, from 1.
    pub fn key(&self, number: u64) -> Result<Key> {
        let Self { folder, log, shard } = self;
        let slash = if folder.is_empty() { "" } else { "/" };
        Key::new(format!("{folder}{slash}log/{log}/{shard:04}-{number:010}"))
    }

    /// Which log an object belongs to by its key, and its number; none for any other object.
    pub fn parse(key: &Key) -> Option<(Self, u64)> {
        let (rest, name) = key.as_str().rsplit_once('/')?;
        let (rest, log) = rest.rsplit_once('/')?;
        let folder = rest.strip_suffix("log")?;
        let folder = if folder.is_empty() { folder } else { folder.strip_suffix('/')? };
        let (shard, number) = name.split_once('-')?;
        let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_log(log) || !digits(shard, 4) || !digits(number, 10) {
            return None;
        }
        let place = Self { folder: folder.to_string(), log: log.to_string(), shard: shard.parse().ok()? };
        Some((place, number.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_which_log_it_belongs_to() {
        for folder in ["", "orders.shards", "a/b//log"] {
            let place = LogPlace { folder: folder.into(), log: "0123456789abcdef".into(), shard: 17 };
            let key = place.key(42).unwrap();
            assert_eq!(LogPlace::parse(&key), Some((place, 42)), "{key}");
        }
    }

    #[test]
    fn other_objects_belong_to_none() {
        let names = [
            "log",
            "x/data/0123456789abcdef0123456789abcdef",
            "x/log/0123/0001-0000000001",
            "x/log/0123456789abcdef/1-1",
            "x/log/0123456789abcdef/0001-000000000x",
            "x/log/0123456789abcdef/00+1-0000000001",
            "x/catalog/0123456789abcdef/0001-0000000001",
        ];
        for name in names {
            assert_eq!(LogPlace::parse(&Key::new(name).unwrap()), None, "{name}");
        }
    }
}
