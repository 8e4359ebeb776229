//! Files of a shard as bytes, mapped: the system brings in what is looked at, and keeps it while somebody does.

#![allow(unsafe_code, reason = "files are mapped, and their room given back, with calls that the compiler can't check")]

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use forebay_types::{Result, ResultExt};
use memmap2::Mmap;

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
