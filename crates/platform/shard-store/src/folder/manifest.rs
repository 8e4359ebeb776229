//! Which files make a shard: one file that is replaced whole, so that a change shows at once or not at all.

use std::path::Path;

use forebay_shard::LayerId;
use forebay_types::{Error, ErrorKind, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::publish::publish;
use crate::columns::Columns;

/// The file that says what belongs to a shard: replacing it is how a change becomes visible.
pub(crate) const MANIFEST: &str = "manifest";
/// The version that is written; a newer one is refused.
const VERSION: u32 = 1;
/// That of a shard with times of nanoseconds: who does not know these takes it for damaged.
const VERSION_NANOSECONDS: u32 = 2;
const WORD: &str = "forebay-shard";

/// What a shard's folder holds. docs/specs/shard-files.md has the bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The columns as they were in the input; none for flat text.
    pub(crate) columns: Option<Columns>,
    /// The size that the layers are kept at, as a part of the input.
    pub(crate) size: f64,
    /// Compressed shards, the oldest first: a record of a later one takes the place of an earlier one's.
    pub(crate) shards: Vec<ShardFiles>,
    /// The number of the first entry of the log that none of the above holds.
    pub(crate) log_from: u64,
    /// The number in the name of the newest file.
    pub(crate) next_file: u64,
    /// All records again as a cold file, where a merge is to keep one; it need not be in this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cold: Option<ColdEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ColdEntry {
    #[serde(flatten)]
    pub(crate) entry: FileEntry,
    /// How many of its bytes, at the end, are its tail.
    pub(crate) tail_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShardFiles {
    /// psi, the alphabet and the keys: what every answer needs.
    pub(crate) base: FileEntry,
    pub(crate) layers: Vec<FileEntry>,
}

/// A file, by its name in the folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) file: String,
    pub(crate) bytes: u64,
}

impl FileEntry {
    /// The layer in the file, by its name.
    pub(crate) fn layer(&self) -> Option<LayerId> {
        self.file.splitn(3, '-').nth(2)?.parse().ok()
    }
}

impl ShardFiles {
    pub(crate) fn layer_ids(&self) -> impl Iterator<Item = LayerId> {
        self.layers.iter().filter_map(FileEntry::layer)
    }
}

impl Manifest {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let bytes = std::fs::read(&path).map_err(|error| {
            let error = Error::from(error);
            match error.kind() {
                ErrorKind::NotFound if folder.is_dir() => not_a_shard(folder, "it has no manifest"),
                ErrorKind::NotFound if folder.exists() => not_a_shard(folder, "it is a file, not a folder"),
                ErrorKind::NotFound => Error::not_found(format!("{}: there is no such shard", folder.display())),
                _ if folder.is_file() => not_a_shard(folder, "it is a file, not a folder"),
                _ => error.context(path.display()),
            }
        })?;
        Self::decode(&bytes, folder)
    }

    fn decode(bytes: &[u8], folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let damaged = || {
            let remedy = "restore the shard from a copy, or build it again";
            Error::corrupt(format!("{}: the manifest is damaged: {remedy}", path.display()))
        };
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged())?;
        let [WORD, version, checksum] = head.split(' ').collect::<Vec<_>>()[..] else {
            return Err(if head.starts_with(WORD) { damaged() } else { not_a_shard(folder, "its manifest is something else") });
        };
        let body = &bytes[end + 1..];
        if u32::from_str_radix(checksum, 16) != Ok(forebay_types::crc32c_append(forebay_types::crc32c(version.as_bytes()), body))
        {
            return Err(damaged());
        }
        match version.parse::<u32>() {
            Ok(VERSION | VERSION_NANOSECONDS) => {
                let manifest: Self = serde_json::from_slice(body).map_err(|_| damaged())?;
                // Names of the folder's own files: whoever wrote this may not choose others of the disk.
                let is_name = |file: &str| Path::new(file).file_name().is_some_and(|name| name == file);
                let cold = manifest.cold.iter().map(|cold| &cold.entry);
                let names = manifest.files().chain(cold).all(|entry| is_name(&entry.file));
                if names { Ok(manifest) } else { Err(damaged()) }
            }
            Ok(newer) if newer > VERSION_NANOSECONDS => Err(Error::invalid(format!(
                "{}: the shard has version {newer}, this program reads up to {VERSION_NANOSECONDS}: use a newer Forebay",
                folder.display()
            ))),
            _ => Err(damaged()),
        }
    }

    /// Puts it in place, so that it is what the next reader finds, and what a crash leaves.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let body = serde_json::to_vec_pretty(self).map_err(|error| Error::internal(format!("manifest: {error}")))?;
        let has_nanoseconds = self.columns.as_ref().is_some_and(Columns::have_nanoseconds);
        let version = if has_nanoseconds { VERSION_NANOSECONDS } else { VERSION };
        let version = version.to_string();
        let checksum = forebay_types::crc32c_append(forebay_types::crc32c(version.as_bytes()), &body);
        let mut bytes = format!("{WORD} {version} {checksum:08x}\n").into_bytes();
        bytes.extend_from_slice(&body);
        publish(&folder.join(MANIFEST), &bytes).context(|| "the shard's manifest can't be replaced")
    }

    /// All files that answers are read from.
    pub(crate) fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.shards.iter().flat_map(|shard| std::iter::once(&shard.base).chain(&shard.layers))
    }
}

fn not_a_shard(folder: &Path, why: &str) -> Error {
    Error::invalid(format!("{} is not a shard: {why}; `forebay shard build` makes one", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Column, ColumnKind};

    #[test]
    fn a_shard_with_times_of_nanoseconds_is_of_a_version_that_refuses_who_knows_none() {
        for (kind, head) in [(ColumnKind::Timestamp, "forebay-shard 1 "), (ColumnKind::TimestampNanosUtc, "forebay-shard 2 ")] {
            let columns = Columns::new(vec![Column::new("k", ColumnKind::Int), Column::new("at", kind)], "k").unwrap();
            let (folder, manifest) = (tempfile::tempdir().unwrap(), Manifest { columns: Some(columns), ..Manifest::default() });
            manifest.write(folder.path()).unwrap();
            assert!(std::fs::read(folder.path().join(MANIFEST)).unwrap().starts_with(head.as_bytes()), "{kind:?}");
            assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
        }
    }
}
