//! Files in memory.

#![allow(unsafe_code, reason = "a mapping is only as good as the file is left alone")]

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use forebay_types::{Result, ResultExt};
use memmap2::MmapOptions;

/// Maps a file with all of its pages present.
pub fn map(path: &Path) -> Result<Bytes> {
    let file = File::open(path).context(|| path.display())?;
    // SAFETY: the benchmark wrote the file itself and nothing changes it while the benchmark runs.
    let map = unsafe { MmapOptions::new().populate().map(&file) }.context(|| path.display())?;
    Ok(Bytes::from_owner(map))
}
