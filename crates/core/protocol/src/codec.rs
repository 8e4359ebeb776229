//! Messages as bytes.

use bytes::Bytes;
use forebay_types::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A message's bytes.
pub fn encode<T: Serialize>(message: &T) -> Bytes {
    // Messages hold no type that postcard can't encode, so this can't fail on any value.
    postcard::to_stdvec(message).expect("messages are encodable").into()
}

/// The message in `bytes`. `Invalid` when they are not one, or hold more than one.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    read(bytes)
}

/// The same of a message that borrows from them.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(Error::invalid(format!("message has {} bytes too many", rest.len()))),
        Err(error) => Err(Error::invalid(format!("message can't be read: {error}"))),
    }
}
