//! Folders that the environment names.

use std::ffi::OsString;
use std::path::PathBuf;

/// The folder that a variable names.
pub fn named_by(variable: &str) -> Option<PathBuf> {
    absolute(std::env::var_os(variable))
}

/// This user's folder for what lives as long as a session, where there is one.
pub(crate) fn runtime_folder() -> Option<PathBuf> {
    named_by("XDG_RUNTIME_DIR")
}

/// What is empty or relative names none: it would be a folder wherever a command happens to run.
fn absolute(named: Option<OsString>) -> Option<PathBuf> {
    named.map(PathBuf::from).filter(|folder| folder.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_or_relative_names_no_folder() {
        for (named, folder) in [(None, None), (Some(""), None), (Some("here"), None), (Some("/run/user/1"), Some("/run/user/1"))]
        {
            assert_eq!(absolute(named.map(OsString::from)), folder.map(PathBuf::from), "{named:?}");
        }
    }
}
