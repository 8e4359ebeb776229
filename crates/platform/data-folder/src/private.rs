//! Files and folders that are for their owner alone.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use forebay_types::{Error, Result, ResultExt};

/// What the group and others may do with a file.
const OTHERS: u32 = 0o077;
const GROUP_READS: u32 = 0o040;
/// Longest file that holds a secret.
const SECRET_BYTES_MAX: u64 = 8 << 10;

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

/// Refuses a file with secrets that is another user's, or that others than its owner may read or change. `Denied`, with the remedy.
pub fn check_private_file(path: &Path) -> Result<()> {
    check(path, &fs::metadata(path).context(|| path.display())?)
}

/// What a file of secrets holds, as [`check_private_file`] wants it to be; none where there is none. `Invalid` where it is longer
/// than any secret, or no text.
pub fn read_private_file(path: &Path) -> Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(|| path.display()),
    };
    // Of what is open, not of what has its name by now.
    check(path, &file.metadata().context(|| path.display())?)?;
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).context(|| path.display())?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(Error::invalid(format!("{}: {SECRET_BYTES_MAX} bytes at most hold a secret", path.display())));
    }
    Ok(Some(text))
}

fn check(path: &Path, meta: &Metadata) -> Result<()> {
    let (shown, mode) = (path.display(), meta.mode());
    let user = rustix::process::geteuid().as_raw();
    if meta.uid() != user && meta.uid() != 0 && user != 0 {
        return Err(Error::denied(format!("{shown}: this file is another user's: `chown {user} {shown}`")));
    }
    // What root gives to a group is meant for it: the secrets of a container come so.
    let others = if meta.uid() == 0 && user != 0 { OTHERS & !GROUP_READS } else { OTHERS };
    if mode & others != 0 {
        let mode = mode & 0o777;
        return Err(Error::denied(format!(
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
            match read_private_file(&file) {
                Ok(text) => assert!(good && text.as_deref() == Some("secret"), "{mode:o}"),
                Err(error) => {
                    assert!(!good && error.kind() == ErrorKind::Denied, "{mode:o}: {error}");
                    assert!(check_private_file(&file).is_err(), "{mode:o}");
                    assert!(error.to_string().contains(&format!("`chmod 600 {}`", file.display())), "{error}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        assert_eq!(read_private_file(&file).unwrap(), None);
        fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_private_file(&file).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
