//! The part of what a store says about an object that Forebay only passes on.

use serde::{Deserialize, Serialize};

/// What a store says of an object beside its version: content type, user metadata, checksums, storage class. Kept as the
/// HTTP headers that said it, so that a gateway can say it again as it was said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Names in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Checksums of the whole object are among them where the store has any: not every answer tells them.
    pub complete: bool,
}

impl Attributes {
    /// Memory that they take, in bytes, about.
    pub fn bytes(&self) -> usize {
        self.headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum()
    }
}
