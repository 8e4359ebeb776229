//! Which version of an object counts.

use std::fmt;

use forebay_types::{ForebayPath, ObjectInfo, OperationId};
use object_store::PutResult;

use super::Objects;

/// Which version of an object a store reads.
pub trait Versions: Clone + fmt::Display + Send + Sync + 'static {
    /// Where it reads and writes.
    fn objects(&self) -> &Objects;

    /// The operation that reads carry.
    fn operation(&self) -> OperationId;

    /// The version that must be read, if one is pinned.
    fn pinned(&self, path: &ForebayPath) -> Option<ObjectInfo>;

    /// A version was seen; gives the one that counts.
    fn seen(&self, path: &ForebayPath, info: ObjectInfo) -> ObjectInfo;

    /// An object was written, or deleted.
    fn written(&self, path: &ForebayPath, info: Option<&ObjectInfo>);
}

/// What the trait returns for a written object.
pub(super) fn put_result(info: &ObjectInfo) -> PutResult {
    PutResult { e_tag: Some(info.version.tag.as_str().to_string()), version: None }
}
