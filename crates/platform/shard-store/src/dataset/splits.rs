//! The split points of a dataset whose keys are in ranges, as a manifest says them: numbers as such, bytes in hex.

use std::sync::Arc;

use forebay_shard::{Key, SPLIT_BYTES_MAX};
use forebay_types::hex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::literal::parse_hex;

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Split {
    Number(u64),
    Bytes(String),
}

impl Split {
    fn of(key: &Key) -> Self {
        match key {
            Key::U64(number) => Self::Number(*number),
            Key::Bytes(bytes) => Self::Bytes(hex(bytes)),
        }
    }

    fn read(self) -> Option<Key> {
        match self {
            Self::Number(number) => Some(Key::U64(number)),
            Self::Bytes(digits) if digits.len() <= 2 * SPLIT_BYTES_MAX => parse_hex(&digits).ok().map(Key::Bytes),
            Self::Bytes(_) => None,
        }
    }
}

pub(super) fn serialize<S: Serializer>(splits: &Option<Arc<[Key]>>, serializer: S) -> Result<S::Ok, S::Error> {
    splits.as_ref().map(|splits| splits.iter().map(Split::of).collect::<Vec<_>>()).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<[Key]>>, D::Error> {
    let Some(splits) = Option::<Vec<Split>>::deserialize(deserializer)? else { return Ok(None) };
    let keys: Option<Arc<[Key]>> = splits.into_iter().map(Split::read).collect();
    keys.map(Some).ok_or_else(|| D::Error::custom("a split point is no key"))
}
