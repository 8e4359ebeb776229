//! What one version of an object is, for stores with ETags, stores without, and files.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Key, MountId};

/// Between an object's tag and a form's id. No header of HTTP can have it, so that no ETag does.
const FORM: char = '\u{1f}';

/// What tells two versions of an object apart: its ETag as the store gave it (with its quotes), or size and
/// modification time (of files more than that) where the store has none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionTag(Arc<str>);

impl VersionTag {
    /// The tag of a store that has ETags.
    pub fn etag(etag: &str) -> Self {
        Self(etag.into())
    }

    /// The tag of a file: its inode, size in bytes, and the times in nanoseconds when its bytes were modified, as whoever
    /// wrote them may set it, and when anything of it was changed, as only the file system does. Starts with `m`, which
    /// no ETag does.
    pub fn file(inode: u64, size: u64, modified_ns: i128, changed_ns: i128) -> Self {
        Self(format!("m{inode:x}-{size:x}-{modified_ns:x}-{changed_ns:x}").into())
    }

    /// The tag of an object of a store without ETags: its size in bytes and modification time in nanoseconds.
    pub fn modified(size: u64, modified_ns: i128) -> Self {
        Self(format!("m0-{size:x}-{modified_ns:x}").into())
    }

    /// The tag's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VersionTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for VersionTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One key of one mount at one version: what a reader that has opened an object reads, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectVersion {
    /// The mount, by its never reused id.
    pub mount: MountId,
    /// The key below the mount.
    pub key: Key,
    /// Which version of it.
    pub tag: VersionTag,
    /// Size of the object in bytes.
    pub size: u64,
}

/// What the lines of a text file are taken for ([`TextForm`](crate::TextForm)), as a hash of all that it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FormId(pub u128);

impl ObjectVersion {
    /// Whether the object's name says that it may have cells without a form: those of Parquet files are made.
    pub fn has_cells(&self) -> bool {
        let key = self.key.as_str();
        let ends = |ending: &str| {
            key.len() > ending.len() && key.as_bytes()[key.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
        };
        ends(".parquet") || ends(".parq")
    }

    /// The version under which cells that a form makes of this one go: another form makes other segments.
    pub fn in_form(&self, form: FormId) -> Self {
        let tag = VersionTag::etag(&format!("{}{FORM}{:032x}", self.tag, form.0));
        Self { tag, ..self.clone() }
    }

    /// The version of the object, and the form, of one that [`Self::in_form`] has made.
    pub fn form(&self) -> Option<(Self, FormId)> {
        let (tag, form) = self.tag.as_str().rsplit_once(FORM)?;
        let form = FormId(u128::from_str_radix(form, 16).ok()?);
        let version = Self { tag: VersionTag::etag(tag), ..self.clone() };
        Some((version, form))
    }
}

/// An object version with what a listing shows beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// The version.
    pub version: ObjectVersion,
    /// Last modification, in milliseconds since the Unix epoch.
    pub modified_ms: i64,
}

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
