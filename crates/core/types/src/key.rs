//! Keys of objects, which nothing between the door and the store may normalise.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The name of an object below its mount, byte for byte: `a//b`, a trailing `/`, spaces, `%` and any UTF-8 are what
/// they are. Never normalised. At most 1024 bytes, as in S3.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Arc<str>")]
pub struct Key(Arc<str>);

impl Key {
    /// Longest key in bytes.
    pub const BYTES_MAX: usize = 1024;

    /// A key of exactly these bytes. `Invalid` when longer than [`Self::BYTES_MAX`] or when it holds a NUL.
    pub fn new(key: impl AsRef<str>) -> Result<Self> {
        let key = key.as_ref();
        Self::check(key)?;
        Ok(Self(key.into()))
    }

    fn check(key: &str) -> Result<()> {
        if key.len() > Self::BYTES_MAX {
            return Err(Error::invalid(format!("key of {} bytes is longer than {} bytes", key.len(), Self::BYTES_MAX)));
        }
        if key.contains('\0') { Err(Error::invalid(format!("key {key:?} holds a NUL byte"))) } else { Ok(()) }
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether some part between slashes is `.` or `..`, which file systems and HTTP clients would resolve.
    pub fn has_dot_segment(&self) -> bool {
        self.0.split('/').any(|part| part == "." || part == "..")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Keys in messages are checked as any other.
impl TryFrom<Arc<str>> for Key {
    type Error = Error;

    fn try_from(key: Arc<str>) -> Result<Self> {
        Self::check(&key)?;
        Ok(Self(key))
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}
