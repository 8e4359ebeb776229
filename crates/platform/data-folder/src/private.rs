use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use forebay_types::{Error, Result, ResultExt};

/// What the group and others may do with a file.
const OTHERS: u32 = 0o077;

/// Makes a folder, and those on the way to it, that nobody but its owner may look into: what is cached is as private as what it
/// was read from. One of an earlier version that others may look into is closed to them.
pub fn make_private_folder(path: &Path) -> Result<()> {
    let shown = path.display();
    DirBuilder::new().recursive(true).mode(0o700).create(path).context(|| format!("{shown}: the folder can't be made"))?;
    let mode = fs::metadata(path).context(|| path.display())?.mode();
    if mode & OTHERS != 0 {
        let doing =
            || format!("{shown}: other users may look into this folder, and it can't be closed to them: `chmod 700 {shown}`");
        fs::set_permissions(path, Permissions::from_mode(0o700)).context(doing)?;
    }
    Ok(())
}

/// Refuses a file with secrets that others than its owner may read or change.
pub fn check_private_file(path: &Path) -> Result<()> {
    let shown = path.display();
    let mode = fs::metadata(path).context(|| path.display())?.mode();
    if mode & OTHERS != 0 {
        let mode = mode & 0o777;
        return Err(Error::invalid(format!(
            "{shown}: other users may read or change this file (mode {mode:04o}): `chmod 600 {shown}`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use forebay_types::ErrorKind;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn folders_are_their_owner_s_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("a/b"), folder.path().join("old"));
        make_private_folder(&new).unwrap();
        assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o700, 0o700));
        fs::create_dir(&old).unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o755)).unwrap();
        make_private_folder(&old).unwrap();
        assert_eq!(mode(&old), 0o700);
    }

    #[test]
    fn a_file_of_secrets_that_others_may_read_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.toml");
        fs::write(&file, "secret").unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false), (0o644, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            match check_private_file(&file) {
                Ok(()) => assert!(good, "{mode:o}"),
                Err(error) => {
                    assert!(!good && error.kind() == ErrorKind::Invalid, "{mode:o}: {error}");
                    assert!(error.to_string().contains(&format!("`chmod 600 {}`", file.display())), "{error}");
                }
            }
        }
    }
}
