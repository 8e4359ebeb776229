//! What an argument of `cp` names: standard input or output, a path below a mount, temporary data, or a file of this machine.

use std::fmt;
use std::path::PathBuf;

use forebay_client::Client;
use forebay_types::{ForebayPath, Key, MountName};

use crate::exit::{Failure, Outcome};

/// What `cp` copies from and to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// The standard input or output.
    Standard,
    /// Below a mount.
    Mounted(ForebayPath),
    /// Temporary data, below `/tmp`.
    Temporary(ForebayPath),
    /// A file or folder of this machine.
    Local(PathBuf),
}

impl Place {
    /// What an argument means: `-`, `file:///..` (always this machine), `forebay://..` (never this machine), a path whose first part is a
    /// mount's name (or whose first folder isn't on this machine), else a local path. So `/tmp/..` is this machine's.
    pub(crate) fn of(client: &Client, text: &str) -> Outcome<Self> {
        let view = client.view();
        Self::parse(text, |name| view.mounts.iter().any(|mount| mount.name == *name))
    }

    fn parse(text: &str, is_mount: impl Fn(&MountName) -> bool) -> Outcome<Self> {
        if text == "-" {
            return Ok(Self::Standard);
        }
        if text.is_empty() {
            return Err(Failure::Usage("an empty path names nothing".to_string()));
        }
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::Local(path.into()));
        }
        if let Some(path) = text.strip_prefix("forebay:/") {
            let path = ForebayPath::parse_any(path)?;
            return Ok(if path.mount().is_temporary() { Self::Temporary(path) } else { Self::Mounted(path) });
        }
        let Some(rest) = text.strip_prefix('/') else { return Ok(Self::Local(text.into())) };
        if let Ok(path) = text.parse::<ForebayPath>()
            && is_mount(path.mount())
        {
            return Ok(Self::Mounted(path));
        }
        let first = rest.split('/').next().unwrap_or(rest);
        if rest.contains('/') && !PathBuf::from(format!("/{first}")).exists() {
            return Err(Failure::Failed(forebay_types::Error::not_found(format!(
                "{text}: {first:?} is neither a mount nor a folder of this machine: `forebay mount ls` lists the mounts"
            ))));
        }
        Ok(Self::Local(text.into()))
    }

    /// Whether the text says that it is a folder.
    pub(crate) fn is_folder_by_name(&self) -> bool {
        match self {
            Self::Standard => false,
            Self::Mounted(path) | Self::Temporary(path) => path.is_folder(),
            Self::Local(path) => path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir(),
        }
    }

    /// The last part of the path.
    pub(crate) fn file_name(&self) -> Outcome<String> {
        let name = match self {
            Self::Standard => None,
            Self::Mounted(path) | Self::Temporary(path) => {
                path.key().as_str().rsplit('/').find(|part| !part.is_empty()).map(str::to_string)
            }
            Self::Local(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        };
        name.ok_or_else(|| Failure::Usage(format!("{self} has no file name: say the whole path of the copy")))
    }

    /// `name` (parts between slashes) below this place, which is taken as a folder.
    pub(crate) fn join(&self, name: &str) -> Outcome<Self> {
        match self {
            Self::Standard => Ok(Self::Standard),
            Self::Mounted(folder) => Ok(Self::Mounted(below(folder, name)?)),
            Self::Temporary(folder) => Ok(Self::Temporary(below(folder, name)?)),
            Self::Local(folder) => {
                // Keys are byte-exact, file systems are not: what would land elsewhere is refused.
                if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
                    return Err(Failure::Failed(forebay_types::Error::invalid(format!(
                        "the key {name:?} can't be a path of this machine: copy that object by itself, to a name that can"
                    ))));
                }
                Ok(Self::Local(folder.join(name)))
            }
        }
    }
}

fn below(folder: &ForebayPath, name: &str) -> Outcome<ForebayPath> {
    let key = folder.key().as_str();
    let slash = if key.is_empty() || key.ends_with('/') { "" } else { "/" };
    Ok(ForebayPath::new(folder.mount().clone(), Key::new(format!("{key}{slash}{name}"))?))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard => f.write_str("-"),
            Self::Mounted(path) => path.fmt(f),
            Self::Temporary(path) => write!(f, "forebay:/{path}"),
            Self::Local(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Place {
        Place::parse(text, |name| name.as_str() == "lake").unwrap()
    }

    #[test]
    fn mounts_come_before_folders_of_this_machine() {
        assert!(matches!(parse("/lake/x"), Place::Mounted(_)));
        assert_eq!(parse("/etc/hosts"), Place::Local("/etc/hosts".into()));
        assert_eq!(parse("file:///lake/x"), Place::Local("/lake/x".into()));
        assert_eq!(parse("lake/x"), Place::Local("lake/x".into()));
        assert_eq!(parse("-"), Place::Standard);
        assert_eq!(parse("/tmp/x"), Place::Local("/tmp/x".into()));
        assert!(matches!(parse("forebay://tmp/a/x"), Place::Temporary(path) if path.key().as_str() == "a/x"));
        assert!(matches!(parse("forebay://etc/x"), Place::Mounted(_)));
        for place in ["forebay://tmp/a/x", "forebay://tmp/"] {
            assert_eq!(parse(place).to_string(), place);
        }
        assert!(Place::parse("forebay:///x", |_| true).is_err());
        assert!(Place::parse("/nomount/x", |_| false).is_err());
    }

    #[test]
    fn keys_that_leave_the_folder_are_refused() {
        let folder = Place::Local("out".into());
        assert_eq!(folder.join("a/b").unwrap(), Place::Local("out/a/b".into()));
        for key in ["../x", "a//b", "a/./b", "/x", ""] {
            assert!(folder.join(key).is_err(), "{key}");
        }
    }
}
