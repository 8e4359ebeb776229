//! The two kinds of keys that records have, and what of them counts as input.

use std::fmt;

/// The type of a shard's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// Eight bytes, ordered as a number.
    U64,
    /// Any bytes, in their order.
    Bytes,
}

/// The key of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// For [`KeyType::U64`].
    U64(u64),
    /// For [`KeyType::Bytes`].
    Bytes(Vec<u8>),
}

impl Key {
    /// The type of this key.
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::U64(_) => KeyType::U64,
            Self::Bytes(_) => KeyType::Bytes,
        }
    }

    /// The bytes it counts for in the size of the input.
    pub fn len(&self) -> usize {
        match self {
            Self::U64(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether it is a key of no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U64(key) => write!(f, "{key}"),
            Self::Bytes(key) => f.write_str(&String::from_utf8_lossy(key)),
        }
    }
}

impl From<u64> for Key {
    fn from(key: u64) -> Self {
        Self::U64(key)
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Self::Bytes(key.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Self {
        Self::Bytes(key.to_vec())
    }
}
