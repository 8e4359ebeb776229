//! A folder of this machine for one piece of work.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use forebay_types::{Result, ResultExt};

/// A folder that only this user can look into, and that goes with this.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one below a folder, which is made as well.
    pub fn below(folder: &Path) -> Result<Self> {
        let own = folder.join(format!("forebay-{:016x}", forebay_runtime::random::<u64>()));
        DirBuilder::new().recursive(true).mode(0o700).create(&own).context(|| own.display())?;
        Ok(Self(own))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(folder = %self.0.display(), %error, "files of a piece of work stay");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_what_lies_in_it() {
        let scratch = Scratch::below(&std::env::temp_dir()).unwrap();
        let path = scratch.path().to_path_buf();
        std::fs::create_dir(path.join("from0")).unwrap();
        std::fs::write(path.join("from0/file"), "bytes").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
