//! The checkout: its commit, and where table, record and pages lie in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What this program writes; a commit is still the one that was measured when these differ from it.
const WRITTEN: [&str; 4] = ["bench/figures.json", "README.md", "docs/benchmarks.md", "docs/limits.md"];

/// A checkout of the project.
#[derive(Clone, Debug)]
pub struct Checkout {
    /// Its folder.
    pub root: PathBuf,
}

impl Checkout {
    /// The one at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The one that this program was compiled in.
    pub fn own() -> Self {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Two folders up.
        Self::at(bench.ancestors().nth(2).unwrap_or(bench))
    }

    /// What is measured.
    pub fn table(&self) -> PathBuf {
        self.root.join("bench/figures.toml")
    }

    /// What came of it.
    pub fn record(&self) -> PathBuf {
        self.root.join(WRITTEN[0])
    }

    /// A file of the checkout.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The commit, and whether anything but what this program writes differs from it; `unknown` where git does not say.
    pub fn commit(&self) -> (String, bool) {
        let Some(commit) = self.git(&["rev-parse", "--short=10", "HEAD"]) else { return ("unknown".to_owned(), true) };
        let written: Vec<String> = WRITTEN.iter().map(|path| format!(":!{path}")).collect();
        let asked: Vec<&str> =
            ["status", "--porcelain", "--", "."].into_iter().chain(written.iter().map(String::as_str)).collect();
        let changed = self.git(&asked).is_none_or(|changes| !changes.is_empty());
        (commit, changed)
    }

    fn git(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new("git").current_dir(&self.root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_checkout_has_no_commit_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkout::at(folder.path().join("none")).commit(), ("unknown".to_owned(), true));
    }

    #[test]
    fn the_table_lies_in_the_checkout_that_this_was_compiled_in() {
        assert!(Checkout::own().table().exists());
    }
}
