//! Files of a shard as bytes, mapped: the system brings in what is looked at, and keeps it while somebody does.

#![allow(unsafe_code, reason = "files are mapped, and their room given back, with calls that the compiler can't check")]

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use forebay_types::{Error, ErrorKind, Result, ResultExt};
use memmap2::Mmap;

use super::manifest::FileEntry;

/// Maps a file of the shard: bytes that live as long as anyone looks at them, also when the file's name is gone.
pub(crate) fn map(path: &Path) -> Result<Bytes> {
    let file = File::open(path).context(|| path.display())?;
    if file.metadata().context(|| path.display())?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: files of a shard are written under another name, moved to theirs once, and never changed after that; they are
    // only ever unlinked, which leaves a mapping whole.
    let map = unsafe { Mmap::map(&file) }.context(|| path.display())?;
    Ok(Bytes::from_owner(map))
}

/// Maps a file that the manifest names.
pub(crate) fn map_part(folder: &Path, entry: &FileEntry) -> Result<Bytes> {
    let path = folder.join(&entry.file);
    let remedy = "restore it from a copy, or build the shard again";
    let mapped = map(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::corrupt(format!("{}: a file of the shard is missing: {remedy}", path.display())),
        _ => error,
    })?;
    if mapped.len() as u64 != entry.bytes {
        let (is, was) = (mapped.len(), entry.bytes);
        return Err(Error::corrupt(format!("{}: the file has {is} bytes, not {was}: {remedy}", path.display())));
    }
    Ok(mapped)
}
