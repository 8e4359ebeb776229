//! Decides which buckets and files of this machine statements may name beside mounts and temporary data, whatever links and `..` say.

use std::path::{Component, Path, PathBuf};

use forebay_data_folder::is_data_folder;
use forebay_types::{Error, ErrorKind, Result};

/// What statements may name beside mounts and temporary data, where the rights of who asks decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Buckets that no mount covers, with the credentials of this process.
    pub direct_stores: bool,
    /// Files of this machine, with the rights of this process.
    pub local_files: LocalFiles,
    /// Temporary data, by plain paths below `/tmp`, where there is a cluster. Else these are files of this machine: for a process whose own
    /// cluster has no temporary data.
    pub temporary: bool,
}

/// Which files of this machine statements may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalFiles {
    /// All that the process may open: for a process that is its user's own.
    All,
    /// Those below some folders, wherever links and `..` lead, that lie in no data folder there; none without a folder.
    Below(Vec<PathBuf>),
}

impl Reach {
    /// Everything that the process may reach: for a process that is its user's own.
    pub fn of_process() -> Self {
        Self { direct_stores: true, local_files: LocalFiles::All, temporary: true }
    }

    /// Mounts and temporary data alone: for processes that run the statements of others.
    pub fn of_mounts() -> Self {
        Self { direct_stores: false, local_files: LocalFiles::Below(Vec::new()), temporary: true }
    }
}

impl LocalFiles {
    /// A path without links and `..`, if it is in reach; it need not be there. Nothing is said of what is out of reach, not even
    /// whether it is there.
    /// `Denied`.
    pub(crate) fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let Self::Below(roots) = self else { return Ok(path.to_path_buf()) };
        let real = real(path);
        let within = |root: &PathBuf| {
            let root = std::fs::canonicalize(root).ok()?;
            real.as_ref().filter(|real| real.starts_with(&root) && !is_own_data(real, &root)).cloned()
        };
        roots.iter().find_map(within).ok_or_else(|| {
            let open = match roots.is_empty() {
                true => "files of this machine are not open to SQL here".to_string(),
                false => format!(
                    "of this machine's files only those below {} are open to SQL here",
                    roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ")
                ),
            };
            let folder = path.parent().unwrap_or(path).display();
            Error::new(
                ErrorKind::Denied,
                format!(
                    "'{}': {open}: mount the folder (`forebay mount add NAME file://{folder}`), or name it in `file-roots` where \
                     this server is started",
                    path.display()
                ),
            )
        })
    }

    /// Whether any file may be in reach.
    /// `Denied`.
    pub(crate) fn check_any(&self) -> Result<()> {
        match self {
            Self::Below(roots) if roots.is_empty() => self.resolve(Path::new("/")).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Whether a path is in reach.
    pub(crate) fn has(&self, path: &Path) -> bool {
        matches!(self, Self::All) || self.resolve(path).is_ok()
    }
}

/// Whether a path below a root is or lies in a data folder of Forebay, whoever's: there are secrets in it.
fn is_own_data(path: &Path, root: &Path) -> bool {
    debug_assert!(path.starts_with(root), "what lies elsewhere is not in reach anyway");
    path.ancestors().take_while(|folder| folder.starts_with(root)).any(is_data_folder)
}

/// The path that the system would open: links are followed as far as there is something, and what is not there yet is below
/// that. None where that can't be told.
fn real(path: &Path) -> Option<PathBuf> {
    let mut there = std::path::absolute(path).ok()?;
    let mut rest = Vec::new();
    // A link that leads nowhere is there: what would be made through it is somewhere else.
    while std::fs::symlink_metadata(&there).is_err() {
        match there.components().next_back()? {
            Component::Normal(name) => rest.push(name.to_os_string()),
            _ => return None,
        }
        there.pop();
    }
    let mut real = std::fs::canonicalize(&there).ok()?;
    real.extend(rest.iter().rev());
    Some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_links_nor_dots_lead_out_of_a_root() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("open/deep")).unwrap();
        std::fs::create_dir_all(at("openly")).unwrap();
        std::fs::write(at("secret"), "x").unwrap();
        std::fs::write(at("open/x"), "x").unwrap();
        for (link, to) in [("out", "../secret"), ("up", ".."), ("nowhere", "../new"), ("within", "deep")] {
            std::os::unix::fs::symlink(to, at("open").join(link)).unwrap();
        }
        std::fs::create_dir_all(at("open/data/tiers")).unwrap();
        std::fs::write(at("open/data/owner.secret"), "x").unwrap();
        let files = LocalFiles::Below(vec![at("none"), at("open")]);
        for path in ["open", "open/x", "open/deep/../x", "open/new/one", "open/within/x", "open/deep/"] {
            assert!(files.has(&at(path)), "{path}");
        }
        let out =
            ["secret", "open/../secret", "open/out", "open/up/secret", "open/nowhere", "openly/x", "open/new/../../secret", ""];
        let data = ["open/data", "open/data/owner.secret", "open/data/tiers/x", "open/deep/../data/new/one"];
        for path in out.into_iter().chain(data) {
            let error = files.resolve(&at(path)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied, "{path}");
            assert!(error.message().contains("file-roots"), "{error}");
        }
        assert_eq!(files.resolve(&at("open/within/new")).unwrap(), std::fs::canonicalize(at("open/deep")).unwrap().join("new"));
        assert!(!LocalFiles::Below(Vec::new()).has(&at("open/x")) && LocalFiles::All.has(&at("secret")));
    }
}
