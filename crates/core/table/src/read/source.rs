//! Where bytes come from when nobody has to wait for them.

use std::ops::Range;

use bytes::Bytes;
use forebay_types::{Error, Result};

/// Bytes of one file that can be had by a function call: a mapping, a pinned extent, memory.
///
/// Where bytes come later, ask for the ranges of a [`crate::Plan`] and hand them to [`crate::Plan::open`].
pub trait Source {
    /// Bytes of the file.
    ///
    /// # Errors
    /// The source's own.
    fn length(&self) -> Result<u64>;

    /// Bytes of a range; without a copy where the source is in memory.
    /// `Corrupt` for a range that the file does not have, and the source's own.
    fn bytes(&self, range: Range<u64>) -> Result<Bytes>;
}

impl Source for Bytes {
    fn length(&self) -> Result<u64> {
        Ok(self.len() as u64)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.len() as u64 {
            return Err(Error::corrupt(format!("bytes {range:?} of a file of {}; it was cut off", self.len())));
        }
        Ok(self.slice(range.start as usize..range.end as usize))
    }
}
