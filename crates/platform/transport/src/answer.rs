//! What a call is answered, by whichever way it went.

use std::os::fd::OwnedFd;

use bytes::Bytes;

/// An answer to a call.
#[derive(Debug)]
pub struct Answer {
    /// The version of the protocol that the message is of.
    pub version: u16,
    /// The message.
    pub meta: Bytes,
    /// Raw bytes after it, in a buffer of their size.
    pub payload: Bytes,
    /// A descriptor that came with it.
    pub descriptor: Option<OwnedFd>,
}
