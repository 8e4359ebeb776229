//! Questions and answers within one process.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_types::{Attributes, Key, MountId, ObjectInfo, OperationId};

use crate::objects::RangeSpec;

/// What a gateway asks the worker of its own process, which answers at once or not at all. It never leaves the process, and
/// so has no encoding.
#[derive(Clone, Debug)]
pub struct AtHand {
    /// Who reads.
    pub operation: OperationId,
    /// The mount.
    pub mount: MountId,
    /// The object.
    pub key: Key,
    /// Which bytes are wanted; none for what is known of the object beside.
    pub range: Option<RangeSpec>,
    /// Most bytes that are wanted at once.
    pub bytes_max: u32,
    /// The attributes must be complete, as `Attributes::complete` says.
    pub complete: bool,
}

/// The current version of an object, as fresh as its mount's rule wants it, and bytes of it.
#[derive(Clone, Debug)]
pub struct Handed {
    /// The version.
    pub info: ObjectInfo,
    /// What the store says beside: the same allocation until it was asked again.
    pub attributes: Arc<Attributes>,
    /// Which bytes of the object these are: all that were wanted.
    pub range: Range<u64>,
    /// They lie in the tier, under a pin that ends with the last clone.
    pub bytes: Bytes,
}
