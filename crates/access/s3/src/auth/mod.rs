//! Who asks, and whether it may: AWS Signature Version 4, in a header or in the URL, on every request.

mod canonical;
mod credential;
mod keys;
mod signer;
mod stamp;
mod verify;

pub(crate) use keys::{Caller, Keys, Right};
pub(crate) use signer::{Sent, signer};
pub(crate) use verify::{BodyHash, ChunkSigning, authenticate};
