//! The file of an SQLite database.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use forebay_data_folder::FileLock;
use forebay_types::{Error, Result, ResultExt};

/// Makes the folder and the database's file where they are not there, for this user only, and returns the file's
/// absolute path. Blocks.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf> {
    let doing = || format!("metadata database {}", path.display());
    let Some(name) = path.file_name() else {
        return Err(Error::invalid(format!("metadata database {}: this is a folder: name a file in it", path.display())));
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).context(doing)?;
    let path = folder.canonicalize().context(doing)?.join(name);
    if path.is_dir() {
        return Err(Error::invalid(format!("metadata database {}: this is a folder: name a file in it", path.display())));
    }
    // SQLite makes its other files with the mode of this one.
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).context(doing)?;
    Ok(path)
}

/// The lock that one process holds on a database's file; free again when this is dropped or the process dies.
pub(crate) fn lock(path: &Path) -> Result<FileLock> {
    let lock_path = path.with_extension("lock");
    let doing = || format!("lock file {}", lock_path.display());
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&lock_path).context(doing)?;
    match FileLock::take(file).context(doing)? {
        Ok(mut file) => {
            file.set_len(0).context(doing)?;
            file.rewind().context(doing)?;
            write!(file, "{}", std::process::id()).context(doing)?;
            Ok(file)
        }
        Err(mut file) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            Err(Error::invalid(format!(
                "{} is in use by another forebay (process {}): stop that one, or choose another data folder",
                path.display(),
                if holder.is_empty() { "unknown" } else { &holder }
            )))
        }
    }
}
