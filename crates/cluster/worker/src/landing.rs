//! A file that comes from elsewhere, part after part: it is written, summed up and made durable aside, since who answers waits for no disk.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use forebay_types::{Result, ResultExt};

use crate::background::aside;

/// How errors call it.
const WRITING: &str = "writing a file";

/// A file on its way to the disk.
pub(crate) struct Landing {
    file: File,
    path: PathBuf,
    crc32c: u32,
}

impl Landing {
    /// One of no bytes, in place of what is there.
    pub(crate) async fn begin(path: &Path) -> Result<Self> {
        let path = path.to_path_buf();
        aside(WRITING, move || {
            let file = File::create(&path).context(|| path.display())?;
            Ok(Self { file, path, crc32c: 0 })
        })
        .await
    }

    /// It with the bytes that follow.
    pub(crate) async fn with(mut self, part: Bytes) -> Result<Self> {
        aside(WRITING, move || {
            self.crc32c = forebay_types::crc32c_append(self.crc32c, &part);
            self.file.write_all(&part).context(|| self.path.display())?;
            Ok(self)
        })
        .await
    }

    /// Makes it durable; gives its checksum.
    pub(crate) async fn finish(self) -> Result<u32> {
        aside(WRITING, move || {
            self.file.sync_all().context(|| self.path.display())?;
            Ok(self.crc32c)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_in_parts_is_there_as_a_whole_with_its_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base");
        std::fs::write(&path, b"longer than what comes").unwrap();
        let landing = Landing::begin(&path).await.unwrap();
        let landing = landing.with(Bytes::from_static(b"in ")).await.unwrap().with(Bytes::from_static(b"parts")).await.unwrap();
        assert_eq!(landing.finish().await.unwrap(), forebay_types::crc32c(b"in parts"));
        assert_eq!(std::fs::read(&path).unwrap(), b"in parts");
        let nowhere = Landing::begin(&folder.path().join("none/base")).await.err().unwrap();
        assert!(nowhere.message().contains("none"), "{nowhere}");
    }
}
