//! How a path of the namespace is written and read back.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Key, MountName, Result};

/// What a user writes: `/lake/sales/2024.parquet`, a mount's name and a key below it, byte for byte.
///
/// ```
/// # use forebay_types::ForebayPath;
/// let path: ForebayPath = "/lake/a//b ".parse().unwrap();
/// assert_eq!((path.mount().as_str(), path.key().as_str()), ("lake", "a//b "));
/// assert_eq!(path.to_string(), "/lake/a//b ");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ForebayPath {
    mount: MountName,
    key: Key,
}

impl ForebayPath {
    /// The path of `key` below `mount`.
    pub fn new(mount: MountName, key: Key) -> Self {
        Self { mount, key }
    }

    /// The mount's name.
    pub fn mount(&self) -> &MountName {
        &self.mount
    }

    /// What stands below the mount; empty for the mount itself.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether everything below it is meant: it is a mount, or its key ends with `/`.
    pub fn is_folder(&self) -> bool {
        let key = self.key.as_str();
        key.is_empty() || key.ends_with('/')
    }

    /// A path below a mount, as it is parsed, or one of temporary data, below `/tmp`. `Invalid` for what is neither.
    pub fn parse_any(text: &str) -> Result<Self> {
        match text.strip_prefix("/tmp").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => {
                let path = Self::new(MountName::temporary(), Key::new(rest.strip_prefix('/').unwrap_or(rest))?);
                debug_assert!(path.mount.is_temporary(), "{text} is below no mount");
                Ok(path)
            }
            None => text.parse(),
        }
    }

    /// The path of everything below it. `Invalid` where that is too long.
    pub fn as_folder(&self) -> Result<Self> {
        if self.is_folder() {
            return Ok(self.clone());
        }
        Ok(Self::new(self.mount.clone(), Key::new(format!("{}/", self.key))?))
    }
}

impl FromStr for ForebayPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(Error::invalid(format!("{text:?} is not a path: write /MOUNT/KEY, as in /lake/sales/x.parquet")));
        };
        let (mount, key) = rest.split_once('/').unwrap_or((rest, ""));
        if mount.is_empty() {
            return Err(Error::invalid(format!("{text:?} names no mount: write /MOUNT/KEY, as in /lake/sales/x.parquet")));
        }
        if mount == MountName::temporary().as_str() {
            return Err(Error::invalid(format!(
                "{text:?} is temporary data, and below no mount: `forebay node` shows and changes it"
            )));
        }
        let mount = mount.parse::<MountName>().map_err(|error| error.context(format!("{text:?}")))?;
        Ok(Self { mount, key: Key::new(key).map_err(|error| error.context(format!("{text:?}")))? })
    }
}

impl fmt::Display for ForebayPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.mount, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_mount_is_said_to_name_none() {
        for path in ["/", "//", "//x"] {
            let error = path.parse::<ForebayPath>().expect_err("it is no path");
            assert!(error.message().contains("names no mount: write /MOUNT/KEY"), "{error}");
        }
    }

    #[test]
    fn temporary_data_is_said_to_be_elsewhere() {
        for path in ["/tmp", "/tmp/", "/tmp/a/b"] {
            let error = path.parse::<ForebayPath>().expect_err("no mount has that name");
            assert!(error.message().contains(path) && error.message().contains("forebay node"), "{error}");
            let any = ForebayPath::parse_any(path).expect("who asks for any path takes it");
            assert!(
                any.mount().is_temporary()
                    && path.strip_prefix("/tmp").is_some_and(|key| key.trim_start_matches('/') == any.key().as_str())
            );
        }
        assert!("/tmpx/a".parse::<ForebayPath>().is_ok());
        assert!(!ForebayPath::parse_any("/tmpx/a").expect("a mount's").mount().is_temporary());
        assert!(ForebayPath::parse_any("tmp/a").is_err());
    }
}
